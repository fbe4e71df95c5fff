//! What a command may use up: processes, memory, disk. Its time and its output are bounded elsewhere.
//!
//! A control group is exact and costs nothing. Where none can be made the keeper counts, a few times a second: what grows
//! faster than that is larger than its bound for a moment.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::family;

/// Of one command, with all that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Where a control group counts, threads are counted too.
    pub processes: u32,
    /// In bytes.
    pub memory: u64,
    /// Bytes that one file may have.
    pub file_size: u64,
    /// Bytes that stay free on the disk of the workspace. Where fewer are, half of them.
    pub disk_left: u64,
}

impl Default for Limits {
    /// More than any build takes, and less than what makes a machine useless for its owner.
    fn default() -> Self {
        let memory = total_memory().map_or(8 << 30, |total| total / 4 * 3);
        Limits { processes: 2_000, memory, file_size: 20 << 30, disk_left: 512 << 20 }
    }
}

/// One that a command came up against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    Processes,
    Memory,
    FileSize,
    Disk,
}

impl Bound {
    /// For the one who ran it.
    pub fn words(self, limits: &Limits) -> String {
        match self {
            Bound::Processes => format!("it may have {} processes, and wanted more", limits.processes),
            Bound::Memory => format!("it may use {} of memory, and wanted more", size(limits.memory)),
            Bound::FileSize => format!("a file may have {}, and it wrote more", size(limits.file_size)),
            Bound::Disk => format!("it had filled the disk until {} were free", size(limits.disk_left)),
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..10_737_418_240 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

/// What the keeper itself looks after.
pub(super) struct Guard {
    limits: Limits,
    /// No control group does.
    counts: bool,
    place: PathBuf,
    least_free: u64,
}

impl Guard {
    /// Of the command that is about to be started here, which inherits what this process may do.
    pub(super) fn begin(limits: Limits, counts: bool, place: &Path) -> Self {
        lower(Resource::Fsize, limits.file_size);
        lower(Resource::Core, 0);
        if counts {
            // Of one process; of all together they are counted.
            lower(Resource::Data, limits.memory);
        }
        let free = free_bytes(place).unwrap_or(0);
        let least_free = if free >= limits.disk_left { limits.disk_left } else { free / 2 };
        Guard { limits, counts, place: place.to_owned(), least_free }
    }

    /// What is exceeded now.
    pub(super) fn over(&self) -> Option<Bound> {
        if free_bytes(&self.place).is_some_and(|free| free < self.least_free) {
            return Some(Bound::Disk);
        }
        if !self.counts {
            return None;
        }
        let (count, memory) = family::used();
        if count > self.limits.processes as usize {
            return Some(Bound::Processes);
        }
        (memory > self.limits.memory).then_some(Bound::Memory)
    }
}

/// Never more than it is already. What cannot be lowered stays.
fn lower(resource: Resource, most: u64) {
    let held = getrlimit(resource);
    let least = |held: Option<u64>| Some(held.map_or(most, |held| held.min(most)));
    let _ = setrlimit(resource, Rlimit { current: least(held.current), maximum: least(held.maximum) });
}

/// Bytes that are free on the disk that a place is on.
pub fn free_bytes(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

fn total_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
