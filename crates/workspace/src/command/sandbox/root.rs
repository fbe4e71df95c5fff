//! What root may still do inside: work with files whoever they belong to. All else that makes it root would undo any
//! sandbox, by a mount or a look into another process.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

const KEPT: &[(&str, CapabilitySet)] = &[
    ("CAP_CHOWN", CapabilitySet::CHOWN),
    ("CAP_DAC_OVERRIDE", CapabilitySet::DAC_OVERRIDE),
    ("CAP_FOWNER", CapabilitySet::FOWNER),
    ("CAP_FSETID", CapabilitySet::FSETID),
    ("CAP_KILL", CapabilitySet::KILL),
    ("CAP_NET_BIND_SERVICE", CapabilitySet::NET_BIND_SERVICE),
    ("CAP_SETGID", CapabilitySet::SETGID),
    ("CAP_SETUID", CapabilitySet::SETUID),
];

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// For a thread that can gain no privileges by starting a program: what it gives up here is gone for all that it starts.
pub(super) fn give_up() -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?;
    let kept = KEPT.iter().fold(CapabilitySet::empty(), |kept, (_, one)| kept | *one);
    let permitted = held.permitted & kept;
    Ok(set_capabilities(None, CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() })?)
}

/// The names of those that are kept and there to be kept.
pub(super) fn kept() -> io::Result<Vec<&'static str>> {
    let held = rustix::thread::capabilities(None)?.permitted;
    Ok(KEPT.iter().filter(|(_, one)| held.contains(*one)).map(|(name, _)| *name).collect())
}
