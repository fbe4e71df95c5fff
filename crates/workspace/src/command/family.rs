//! The processes that come from this one, however they tried to get away.
//!
//! On Linux a keeper is a subreaper: a process whose parent ends becomes its child, so that all of them stay
//! descendants, and having no child at all means that none is left. Elsewhere the process group is all there is.

#[cfg(target_os = "linux")]
use std::collections::HashMap;

use rustix::process::{Pid, Signal, kill_process_group};

/// From here on no process of the same person gets at the environment, the memory or the open files of this one: keys are
/// in a server's, the leash is among a keeper's. It is not so for root's.
#[cfg(target_os = "linux")]
pub fn close_off() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Where it cannot be done, nothing else changes.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
pub fn close_off() {}

#[cfg(target_os = "linux")]
pub(super) fn adopt() -> std::io::Result<()> {
    // Any pid means yes.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn adopt() -> std::io::Result<()> {
    Ok(())
}

/// Ends what is left of the group of a command that has ended, where that is not known to be nothing.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(target_os = "linux")]
pub(super) fn sweep(_: Pid) {}

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
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).into_iter().flatten() {
            parents.push(process.id);
            if process.is_living {
                found.extend(Pid::from_raw(process.id));
            }
        }
    }
    found
}

#[cfg(not(target_os = "linux"))]
pub(super) fn living() -> Vec<Pid> {
    Vec::new()
}

/// How many descendants there are, and the bytes of memory that are theirs alone. A walk from parent to child: the
/// whole list of a machine's processes is too long to be read a few times a second.
#[cfg(target_os = "linux")]
pub(super) fn used() -> (usize, u64) {
    let (mut count, mut pages) = (0, 0);
    for id in descendants(rustix::process::getpid()) {
        count += 1;
        pages += own_pages(id).unwrap_or(0);
    }
    (count, pages.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn used() -> (usize, u64) {
    (0, 0)
}

/// All that come from this process, those that have ended and were not buried among them.
#[cfg(target_os = "linux")]
pub(super) fn descendants(from: Pid) -> Vec<i32> {
    let mut found = Vec::new();
    let mut parents = vec![from.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        // Those that each of its threads has started.
        for thread in std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children: Vec<i32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
            parents.extend(&children);
            found.extend(children);
        }
    }
    found
}

/// Resident, and shared with nobody.
#[cfg(target_os = "linux")]
fn own_pages(id: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/statm")).ok()?;
    let mut fields = text.split_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    Some(fields.next()??.saturating_sub(fields.next()??))
}

/// Ends all processes of a session. False: some are still there after a while.
#[cfg(target_os = "linux")]
pub(super) fn end_session(session: Pid) -> bool {
    let session = session.as_raw_nonzero().get();
    // A process may have started another one before it was killed.
    for _ in 0..300 {
        let mut is_any = false;
        for process in processes().filter(|process| process.session == session && process.is_living) {
            is_any = true;
            if let Some(id) = Pid::from_raw(process.id) {
                let _ = rustix::process::kill_process(id, Signal::KILL);
            }
        }
        if !is_any {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    false
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_session(_: Pid) -> bool {
    false
}

#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    session: i32,
    is_living: bool,
}

#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse::<i32>().ok()?;
        process(id, &std::fs::read(entry.path().join("stat")).ok()?)
    })
}

/// From `/proc/<id>/stat`: the name that comes first is in brackets and may itself hold any character.
#[cfg(target_os = "linux")]
fn process(id: i32, stat: &[u8]) -> Option<Process> {
    let rest = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = std::str::from_utf8(rest).ok()?.split_ascii_whitespace();
    let is_living = !["Z", "X"].contains(&fields.next()?);
    let (parent, _, session) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Process { id, parent: parent.parse().ok()?, session: session.parse().ok()?, is_living })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_hide_the_parent() {
        let found = Process { id: 12, parent: 34, session: 9, is_living: true };
        assert_eq!(process(12, b"12 (a) R 1 (b) S 34 12 9 0"), Some(found));
        assert!(!process(12, b"12 (x) Z 7 12 12").unwrap().is_living);
        assert_eq!(process(12, b"12"), None);
    }
}
