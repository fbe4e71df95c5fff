//! Control groups: the kernel's own count of processes and memory, where this process may make groups.
//!
//! A keeper goes into the group, starts its command, and leaves again: the command stays, with all that it will ever start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::limits::{Bound, Limits};

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "tolka-";

/// For the keepers and the sandbox, which are counted with the command.
const OURS: u32 = 64;

/// Where groups can be made: a folder for each of the controllers, which is the same one in version 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pids: PathBuf,
    memory: PathBuf,
    version: Version,
    /// Where this process is now.
    home: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Version {
    One,
    Two,
}

impl Place {
    /// The first that works, found by trying. Blocks, shortly.
    pub(super) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        Place::find_in(Path::new(ROOT), &own)
    }

    fn find_in(root: &Path, own: &str) -> Option<Self> {
        let place = Place::two(root, own).or_else(|| Place::one(root, own))?;
        place.sweep();
        let tried = Group::make(&place, &Limits::default()).ok()?;
        tried.enter().and_then(|()| tried.leave()).ok()?;
        Some(place)
    }

    /// Beneath the group that this process is in, or beside it: where the controllers are handed on.
    fn two(root: &Path, own: &str) -> Option<Self> {
        let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
        let here = beneath(root, path);
        let hands_on = |folder: &PathBuf| {
            let controllers = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
            let has = |name: &str| controllers.split_whitespace().any(|one| one == name);
            has("pids") && has("memory")
        };
        let beside = here.parent().filter(|parent| parent.starts_with(root)).map(Path::to_owned);
        let parent = [Some(here.clone()), beside].into_iter().flatten().find(hands_on)?;
        Some(Place { pids: parent.clone(), memory: parent, version: Version::Two, home: vec![here] })
    }

    fn one(root: &Path, own: &str) -> Option<Self> {
        let of = |controller: &str| {
            let fields = own.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
            let mut fields = fields.filter(|fields| fields.len() == 3);
            let found = fields.find(|fields| fields[1].split(',').any(|one| one == controller))?;
            Some(beneath(&root.join(controller), found[2]))
        };
        let (pids, memory) = (of("pids")?, of("memory")?);
        Some(Place { home: vec![pids.clone(), memory.clone()], pids, memory, version: Version::One })
    }

    /// Removes what keepers that were killed have left. One that somebody is in cannot be removed.
    fn sweep(&self) {
        for parent in self.parents() {
            for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
                if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                    let _ = fs::remove_dir(entry.path());
                }
            }
        }
    }

    fn parents(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.pids), Some(&self.memory).filter(|memory| **memory != self.pids)].into_iter().flatten()
    }
}

/// What is mounted is often the group itself, and the path from the machine's root leads nowhere then.
fn beneath(root: &Path, path: &str) -> PathBuf {
    let whole = root.join(path.trim_start_matches('/'));
    if whole.is_dir() { whole } else { root.to_owned() }
}

fn go(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
}

/// The group of one command. It is removed when this is dropped, if nobody is left in it.
pub(super) struct Group {
    place: Place,
    name: String,
}

impl Group {
    pub(super) fn make(place: &Place, limits: &Limits) -> io::Result<Self> {
        let group = Group { place: place.clone(), name: format!("{PREFIX}{}", std::process::id()) };
        for folder in group.folders() {
            fs::create_dir(folder)?;
        }
        let memory = limits.memory.to_string();
        fs::write(group.pids().join("pids.max"), limits.processes.saturating_add(OURS).to_string())?;
        match place.version {
            Version::One => fs::write(group.memory().join("memory.limit_in_bytes"), memory)?,
            Version::Two => {
                fs::write(group.memory().join("memory.max"), memory)?;
                // Not every kernel counts what is swapped out.
                let _ = fs::write(group.memory().join("memory.swap.max"), "0");
            }
        }
        Ok(group)
    }

    /// What is started while this process is inside stays there.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.folders().iter().try_for_each(|folder| go(folder))
    }

    pub(super) fn leave(&self) -> io::Result<()> {
        self.place.home.iter().try_for_each(|home| go(home))
    }

    /// What the command came up against.
    pub(super) fn over(&self) -> Vec<Bound> {
        let counted = |file: PathBuf, name: &str| {
            let text = fs::read_to_string(file).unwrap_or_default();
            text.lines().filter_map(|line| line.split_once(' ')).any(|(key, count)| key == name && count.trim() != "0")
        };
        let killed = match self.place.version {
            Version::One => counted(self.memory().join("memory.oom_control"), "oom_kill"),
            Version::Two => counted(self.memory().join("memory.events"), "oom_kill"),
        };
        let refused = counted(self.pids().join("pids.events"), "max");
        [(refused, Bound::Processes), (killed, Bound::Memory)]
            .into_iter()
            .filter(|one| one.0)
            .map(|one| one.1)
            .collect()
    }

    /// Ends all that are in it, at once, where the kernel can.
    pub(super) fn kill(&self) {
        if self.place.version == Version::Two {
            let _ = fs::write(self.pids().join("cgroup.kill"), "1");
        }
    }

    fn pids(&self) -> PathBuf {
        self.place.pids.join(&self.name)
    }

    fn memory(&self) -> PathBuf {
        self.place.memory.join(&self.name)
    }

    fn folders(&self) -> Vec<PathBuf> {
        self.place.parents().map(|parent| parent.join(&self.name)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in self.folders() {
            // What has just ended may be counted for a moment longer.
            for _ in 0..50 {
                match fs::remove_dir(&folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        std::thread::sleep(std::time::Duration::from_millis(2));
                    }
                    _ => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_version_has_a_folder_for_each_controller() {
        let root = Path::new(ROOT);
        let place = Place::one(root, "5:pids:/a\n4:cpu,memory:/nowhere/at/all\n0::/\n").unwrap();
        assert!(place.pids.starts_with("/sys/fs/cgroup/pids") && place.memory.starts_with("/sys/fs/cgroup/memory"));
        assert_eq!(place.version, Version::One);
        assert_eq!(Place::one(root, "0::/user.slice\n"), None);
    }

    /// A folder in the place of the kernel's second version: it shows which files are written and read and where groups are
    /// made, and nothing of what a kernel does then.
    fn kernel(handing_on: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("slice/server")).unwrap();
        for folder in handing_on {
            fs::write(root.path().join(folder).join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        }
        root
    }

    const OWN: &str = "0::/slice/server\n";

    #[test]
    fn in_the_second_version_a_group_is_beneath_or_beside_where_controllers_are_handed_on() {
        for (handing_on, parent) in [
            (&["slice/server", "slice"][..], Some("slice/server")),
            (&["slice"], Some("slice")),
            // Not from further up, which is not handed to this process.
            (&[""], None),
            (&[], None),
        ] {
            let root = kernel(handing_on);
            let place = Place::two(root.path(), OWN);
            assert_eq!(place.as_ref().map(|place| place.pids.clone()), parent.map(|parent| root.path().join(parent)));
            assert!(place.is_none_or(|place| place.memory == place.pids && place.version == Version::Two));
        }
        let root = kernel(&["slice"]);
        fs::write(root.path().join("slice/cgroup.subtree_control"), "cpu pids\n").unwrap();
        assert_eq!(Place::two(root.path(), OWN), None, "memory is not handed on");
        // A container sees its own group as the root.
        let root = kernel(&[""]);
        let place = Place::two(root.path(), "0::/elsewhere/altogether\n").unwrap();
        assert_eq!((place.pids, place.home), (root.path().to_owned(), vec![root.path().to_owned()]));
    }

    #[test]
    fn in_the_second_version_bounds_are_set_kept_and_read() {
        let root = kernel(&["slice"]);
        let place = Place::find_in(root.path(), OWN).unwrap();
        let limits = Limits { processes: 100, memory: 1 << 20, ..Limits::default() };
        // The kernel removes a group's files with it; this one was tried with.
        let name = format!("slice/{PREFIX}{}", std::process::id());
        let of = |file: &str| root.path().join(&name).join(file);
        fs::remove_dir_all(root.path().join(&name)).unwrap();
        let group = Group::make(&place, &limits).unwrap();
        let read = |file: &str| fs::read_to_string(of(file)).unwrap();
        assert_eq!((read("pids.max"), read("memory.max")), ("164".to_owned(), (1 << 20).to_string()));
        assert_eq!(read("memory.swap.max"), "0");
        let me = std::process::id().to_string();
        group.enter().unwrap();
        assert_eq!(read("cgroup.procs"), me);
        group.leave().unwrap();
        assert_eq!(fs::read_to_string(root.path().join("slice/server/cgroup.procs")).unwrap(), me);
        for (pids, memory, over) in [
            ("max 0\n", "low 0\noom 3\noom_kill 0\n", vec![]),
            ("max 7\n", "oom_kill 0\n", vec![Bound::Processes]),
            ("max 0\n", "oom 1\noom_kill 2\n", vec![Bound::Memory]),
            ("max 1\n", "oom_kill 1\n", vec![Bound::Processes, Bound::Memory]),
        ] {
            fs::write(of("pids.events"), pids).unwrap();
            fs::write(of("memory.events"), memory).unwrap();
            assert_eq!(group.over(), over);
        }
        group.kill();
        assert_eq!(read("cgroup.kill"), "1");
    }

    #[test]
    fn what_keepers_that_were_killed_left_is_swept_and_nothing_else() {
        let root = kernel(&["slice"]);
        let at = |name: &str| root.path().join("slice").join(name);
        for name in ["tolka-1", "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        Place::two(root.path(), OWN).unwrap().sweep();
        assert!(!at("tolka-1").exists() && at("other").exists());
    }
}
