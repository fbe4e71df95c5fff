//! Which ports a command listens on: a development server says so in words, the kernel in numbers.

use rustix::process::Pid;

/// Ports that a command listens on, or something that it started: of all that come from its keeper. Blocks, shortly.
pub fn listening(keeper: u32) -> Vec<u16> {
    let keeper = i32::try_from(keeper).ok().and_then(Pid::from_raw);
    keeper.map(of).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn of(keeper: Pid) -> Vec<u16> {
    use std::collections::{BTreeSet, HashSet};
    use std::fs;

    let mut found = BTreeSet::new();
    // By network, since a sandbox may have one of its own.
    let mut known: Vec<(String, Vec<(String, u16)>)> = Vec::new();
    for id in super::family::descendants(keeper) {
        let links = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let sockets = links.filter_map(|link| fs::read_link(link.path()).ok()?.into_os_string().into_string().ok());
        let sockets: HashSet<String> = sockets.filter(|name| name.starts_with("socket:[")).collect();
        let Ok(network) = fs::read_link(format!("/proc/{id}/ns/net")) else { continue };
        if sockets.is_empty() {
            continue;
        }
        let network = network.to_string_lossy().into_owned();
        if !known.iter().any(|(name, _)| *name == network) {
            let tables = ["tcp", "tcp6"].map(|name| fs::read_to_string(format!("/proc/{id}/net/{name}")));
            let listening = tables.iter().flatten().flat_map(|table| table.lines().filter_map(listener)).collect();
            known.push((network.clone(), listening));
        }
        let listening = known.iter().filter(|(name, _)| *name == network).flat_map(|(_, listening)| listening);
        found.extend(listening.filter(|(socket, _)| sockets.contains(socket)).map(|(_, port)| *port));
    }
    found.into_iter().collect()
}

#[cfg(not(target_os = "linux"))]
fn of(_: Pid) -> Vec<u16> {
    Vec::new()
}

/// A line of `/proc/net/tcp`, if it is of a socket that listens.
#[cfg(target_os = "linux")]
fn listener(line: &str) -> Option<(String, u16)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (*state == "0A").then(|| (format!("socket:[{inode}]"), port))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_listen_are_found() {
        let line =
            "   0: 0100007F:0FA0 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0";
        assert_eq!(listener(line), Some(("socket:[4711]".to_owned(), 4000)));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("  sl  local_address rem_address   st"), None);
    }
}
