//! Landlock: the kernel itself, without any privilege. It knows only what is allowed, with all that is beneath; so
//! what is hidden is left out of everything that is allowed around it.
//!
//! The thread that is restricted is the one that starts the command. The keeper's other threads are not, and
//! neither signals nor debuggers of the command reach them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::super::order::Way;
use super::{Bounds, root};

/// With less, files cannot be moved between folders, and hardly anything works.
const LEAST: ABI = ABI::V2;

/// The latest that was tried. What a later kernel could restrict besides is left as it is.
const TRIED: ABI = ABI::V7;

/// Devices that everybody writes to.
const DEVICES: &[&str] =
    &["/dev/full", "/dev/null", "/dev/ptmx", "/dev/pts", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

const TEMPORARY: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Restricts this thread, and with it whatever it starts.
pub(in crate::command) fn restrict(bounds: &Bounds, way: &Way) -> io::Result<()> {
    let read = AccessFs::from_read(TRIED);
    let all = AccessFs::from_all(TRIED);
    let mut rules = Vec::new();
    for path in around(Path::new("/"), &bounds.hidden) {
        rules.extend(rule(&path, read));
    }
    // Names are not hidden: without this not even `/` could be listed.
    rules.extend(rule(Path::new("/"), AccessFs::ReadDir.into()));
    for path in TEMPORARY.iter().flat_map(|path| around(Path::new(path), &bounds.hidden)) {
        rules.extend(rule(&path, all));
    }
    // The workspace whole, even if something hidden is in it: else nothing could be made in the folder that holds that.
    for path in DEVICES.iter().map(Path::new).chain([bounds.scratch.as_path(), &bounds.workspace]) {
        rules.extend(rule(path, all));
    }
    for path in &bounds.writable {
        rules.extend(rule(path, all));
    }
    let port = match way {
        Way::Proxy { port, .. } => Some(NetPort::new(*port, AccessNet::ConnectTcp)),
        Way::Open | Way::Closed => None,
    };
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))
        .and_then(|rules| rules.set_compatibility(CompatLevel::BestEffort).handle_access(all))
        .and_then(|rules| rules.scope(Scope::from_all(TRIED)))
        .and_then(|rules| if *way == Way::Open { Ok(rules) } else { rules.handle_access(AccessNet::ConnectTcp) })
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rules(rules.into_iter().map(Ok::<_, landlock::RulesetError>)))
        .and_then(|ruleset| ruleset.add_rules(port.into_iter().map(Ok::<_, landlock::RulesetError>)))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    if root::is_root() {
        root::give_up()?;
    }
    match restricted.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("the kernel does not enforce it")),
    }
}

/// Whether the kernel can keep a command from connecting: Linux 6.7 and later.
pub(in crate::command) fn stops_connections() -> bool {
    let tried = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    tried.handle_access(AccessNet::ConnectTcp).and_then(Ruleset::create).is_ok()
}

/// For a sandbox that has bounds of its own: the keeper cannot be signalled, and no socket without a file be reached.
/// Where the kernel cannot do that, it is not done.
pub(in crate::command) fn cut_off() -> io::Result<()> {
    let cut_off = Ruleset::default()
        .scope(Scope::from_all(TRIED))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.restrict_self());
    cut_off.map(drop).map_err(io::Error::other)
}

/// `None` for what is gone, or may not be opened: that is not allowed then.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let is_folder = path.is_dir();
    let access = if is_folder { access } else { access & AccessFs::from_file(TRIED) };
    Some(PathBeneath::new(PathFd::new(path).ok()?, access))
}

/// The folder itself if nothing hidden is in it; else whatever is in it, without that.
fn around(folder: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|hidden| folder.starts_with(hidden)) {
        return Vec::new();
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // What a link leads to is allowed where it is, or not.
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    entries.flat_map(|entry| around(&entry.path(), hidden)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["a/b", "home/.ssh/keys", "home/code", "home/.config/gh", "home/.config/git"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        std::os::unix::fs::symlink(".ssh", path("home/link")).unwrap();
        let hidden = [path("home/.ssh"), path("home/.config/gh")];
        let mut found = around(folder.path(), &hidden);
        found.sort();
        assert_eq!(found, [path("a"), path("home/.config/git"), path("home/code")]);
        assert_eq!(around(&path("home/.ssh/keys"), &hidden), [] as [PathBuf; 0]);
    }
}
