//! The processes that come from this one, however they tried to get away.
//!
//! On Linux a keeper is a subreaper: a process whose parent ends becomes its child, so that all of them stay
//! descendants, and having no child at all means that none is left. Elsewhere the process group is all there is.

use rustix::process::{Pid, Signal, kill_process_group};

#[cfg(target_os = "linux")]
pub(super) fn adopt() -> std::io::Result<()> {
    // Any pid means yes.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() -> std::io::Result<()> {
    Ok(())
}

/// Signals the group of the command, and every descendant that has left it. A process that goes meanwhile, or may not
/// be signalled, is passed over: the caller looks again.
pub(super) fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
    for pid in living() {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The descendants of this process that have not ended.
#[cfg(target_os = "linux")]
pub(super) fn living() -> Vec<Pid> {
    use std::collections::HashMap;

    let mut children: HashMap<i32, Vec<(i32, bool)>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let Some((parent, is_living)) = parent_in(&stat) else { continue };
        children.entry(parent).or_default().push((pid, is_living));
    }
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for (pid, is_living) in children.remove(&parent).into_iter().flatten() {
            parents.push(pid);
            if is_living {
                found.extend(Pid::from_raw(pid));
            }
        }
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(super) fn living() -> Vec<Pid> {
    Vec::new()
}

/// The parent, and whether it has not ended, from `/proc/<pid>/stat`: the name before them is in brackets and may
/// itself hold any character.
#[cfg(target_os = "linux")]
fn parent_in(stat: &[u8]) -> Option<(i32, bool)> {
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let is_living = !["Z", "X"].contains(&fields.next()?);
    Some((fields.next()?.parse().ok()?, is_living))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        assert_eq!(parent_in(b"12 (a) R 1 (b) S 34 12 12"), Some((34, true)));
        assert_eq!(parent_in(b"12 (x) Z 7 12"), Some((7, false)));
        assert_eq!(parent_in(b"12"), None);
    }
}
