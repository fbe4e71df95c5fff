//! Where what git obeys is: in the folders of repositories, and in those files of the work tree that a configuration names.
//!
//! The one list for all who guard it: what a sandbox binds, what is looked at after a command, and what the file tools ask
//! about. The search for repositories goes so deep and so far, and no further: see [`DEEPEST`] and [`FOLDERS`].

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::config::{self, Setting};
use super::see::content;
use crate::folder::{self, READ, is_git};

/// In each folder of a repository. The last says where the others really are.
const OBEYED: &[&str] = &["config", "config.worktree", "hooks", "commondir"];

/// Folders above a repository that is looked for in a workspace.
const DEEPEST: usize = 4;

/// Folders of a workspace in which repositories are looked for: some ten milliseconds before each command.
const FOLDERS: usize = 4_000;

/// Repositories of one workspace, and modules or worktrees of one of them.
const REPOSITORIES: usize = 200;

/// Files that one configuration may include, with what those include; git stops at ten inside each other.
const INCLUDED: usize = 50;

/// Who may change what is at a spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Nobody: it belongs to the repository of the workspace, or to a module of that.
    Own,
    /// Whoever is let: it belongs to another repository in the workspace, which may go, whole, at any time.
    Beside,
    /// The same: it is a file of the work tree, which people change and switch like all others.
    Tree,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// A repository as such, or the file that says where it is.
    Root,
    /// A folder of which all that is in it counts.
    Hooks,
    File,
}

/// A place that git obeys, whether something is there or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) role: Role,
}

/// A repository that has its work tree in a workspace, or the place where one would be.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The folder that is the work tree.
    tree: PathBuf,
    /// `.git` in it: a folder, a file, a link or nothing.
    own: PathBuf,
    /// Where git finds the repository: in the workspace, or elsewhere if git's own notes there agree. The first one has the
    /// index.
    pub(super) folders: Vec<PathBuf>,
    /// Of a worktree: the folder of the main repository, which it shares.
    pub(crate) common: Option<PathBuf>,
}

impl Repository {
    /// A worktree has its git folder in another repository, and shares most of that. One that its `.git` file merely
    /// claims is none: git's own note there must lead back here, or a file in the workspace could open any folder. But what
    /// lies in the workspace is opened by nothing that is said of it.
    pub(crate) fn of(workspace: &Path, tree: &Path) -> Self {
        let own = tree.join(".git");
        let (mut folders, mut common) = (Vec::new(), None);
        if let Some((elsewhere, shared)) = worktree(&own, tree) {
            common = Some(shared.clone());
            folders.extend([elsewhere, shared]);
        } else if own.symlink_metadata().map_or(true, |found| found.is_dir()) {
            folders.push(own.clone());
        } else {
            let claimed = named(&own, tree, "gitdir: ").or_else(|| own.canonicalize().ok());
            folders.extend(claimed.and_then(|claimed| inside(workspace, &claimed)).filter(|claimed| claimed.is_dir()));
        }
        if common.is_none()
            && let Some(folder) = folders.first()
            && let Some(shared) = named(&folder.join("commondir"), folder, "")
        {
            folders.extend(inside(workspace, &shared));
        }
        Repository { tree: tree.to_owned(), own, folders, common }
    }

    /// The repository of the workspace itself.
    pub(crate) fn of_workspace(workspace: &Path) -> Self {
        let mut found = Repository::of(workspace, workspace);
        // One without a work tree may have been opened as a workspace.
        if is_repository(workspace) {
            found.folders.push(workspace.to_owned());
        }
        found
    }

    /// Whether the folder that git uses is one that nobody can have put in the place of another: the only one, or that of a
    /// worktree.
    pub(super) fn is_sure(&self) -> bool {
        let has_common = |folder: &PathBuf| folder.join("commondir").symlink_metadata().is_ok();
        match self.common {
            Some(_) => true,
            None => self.folders.len() == 1 && !self.folders.iter().any(has_common),
        }
    }

    /// Its folders, with those of its modules.
    fn all_folders(&self) -> Vec<PathBuf> {
        let mut all = self.folders.clone();
        let mut next = 0;
        while let Some(folder) = all.get(next).cloned() {
            modules(&folder.join("modules"), DEEPEST, &mut all);
            next += 1;
        }
        all
    }

    /// What nobody may move, outermost first: else what is guarded inside would go with it, and another take its place.
    pub(crate) fn pinned(&self, workspace: &Path) -> Vec<PathBuf> {
        let mut pinned = Vec::new();
        for folder in self.all_folders().iter().filter(|folder| is_folder(folder)) {
            let tops = [Some(workspace), self.common.as_deref()];
            let top = tops.into_iter().flatten().find(|top| folder.starts_with(top)).unwrap_or(folder);
            let between = folder.ancestors().take_while(|above| *above != top && above.starts_with(top));
            pinned.extend(between.map(Path::to_owned));
            pinned.extend((Some(top) == self.common.as_deref()).then(|| top.to_owned()));
        }
        pinned.sort();
        pinned.dedup();
        pinned
    }

    /// What no command may change, and is there.
    pub(crate) fn guarded(&self, workspace: &Path) -> Vec<PathBuf> {
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_symlink());
        // A folder as such is not obeyed; a file says which folder is.
        let is_kept = |spot: &Spot| spot.kind == Kind::Own && (spot.role != Role::Root || spot.path.is_file());
        self.spots(workspace, Kind::Own).into_iter().filter(is_kept).map(|spot| spot.path).filter(is_there).collect()
    }

    /// All that git obeys of it, there or not.
    fn spots(&self, workspace: &Path, kind: Kind) -> Vec<Spot> {
        let mut spots = vec![Spot { path: self.own.clone(), kind, role: Role::Root }];
        let folders = self.all_folders();
        for folder in &folders {
            spots.push(Spot { path: folder.clone(), kind, role: Role::Root });
            of_folder(folder, kind, &mut spots);
            // The main repository's own notes of its worktrees; git takes them away itself.
            for note in children(&folder.join("worktrees")).take(REPOSITORIES).filter(|note| !folders.contains(note)) {
                spots.push(Spot { path: note.clone(), kind: Kind::Beside, role: Role::Root });
                of_folder(&note, Kind::Beside, &mut spots);
            }
        }
        spots.extend(self.named_spots(workspace, &folders, kind));
        spots
    }

    /// What its configuration names, as far as it lies in the workspace.
    fn named_spots(&self, workspace: &Path, folders: &[PathBuf], kind: Kind) -> Vec<Spot> {
        let mut found: BTreeMap<PathBuf, Role> = BTreeMap::new();
        for folder in folders.iter().map(Some).chain([None]) {
            let mut settings = Settings::default();
            let files = folder
                .map_or_else(persons, |folder| ["config", "config.worktree"].map(|name| folder.join(name)).into());
            files.iter().for_each(|file| settings.read(file, 0));
            // Modules have their work tree elsewhere; hooks run in it.
            let work_tree = settings.all.iter().rfind(|setting| setting.is("core", "worktree"));
            let tree = match (work_tree, folder) {
                (Some(setting), Some(folder)) => leading(folder, &setting.value),
                _ => self.tree.clone(),
            };
            let hooks = settings.all.iter().filter(|setting| setting.is("core", "hookspath"));
            found.extend(hooks.map(|setting| (leading(&tree, &setting.value), Role::Hooks)));
            found.extend(settings.included.into_iter().map(|file| (file, Role::File)));
        }
        let spot = |(path, role): (PathBuf, Role)| {
            let path = inside(workspace, &path)?;
            let is_of_folder = folders.iter().any(|folder| path.starts_with(folder));
            Some(Spot { path, kind: if is_of_folder { kind } else { Kind::Tree }, role })
        };
        found.into_iter().filter_map(spot).collect()
    }
}

/// All that git obeys in a workspace, there or not, each place once.
pub(super) fn spots(workspace: &Path) -> Vec<Spot> {
    let own = Repository::of_workspace(workspace);
    let mut spots = own.spots(workspace, Kind::Own);
    for found in others(workspace) {
        match found {
            Other::Tree(tree) => spots.extend(Repository::of(workspace, &tree).spots(workspace, Kind::Beside)),
            Other::Folder(folder) => {
                spots.push(Spot { path: folder.clone(), kind: Kind::Beside, role: Role::Root });
                of_folder(&folder, Kind::Beside, &mut spots);
            }
        }
    }
    once(spots)
}

/// Whether this path in the workspace is, or is in, what git obeys: a folder of a repository, or a file of the work tree that
/// people may well change, and that runs as them when they use git.
pub fn is_named(workspace: &Path, path: &Path) -> bool {
    let path = workspace.join(path);
    let trees = path.ancestors().skip(1).filter(|above| above.starts_with(workspace));
    let repositories = trees.filter(|tree| *tree == workspace || tree.join(".git").symlink_metadata().is_ok());
    let mut found = repositories.map(|tree| Repository::of(workspace, tree));
    found.any(|found| {
        let folders = found.all_folders();
        let mut named = found.named_spots(workspace, &folders, Kind::Own).into_iter().map(|spot| spot.path);
        // Those that are whole, or called so, nobody writes into at all.
        let is_open = |folder: &&PathBuf| !is_repository(folder) && !folder.iter().any(is_git);
        folders.iter().filter(is_open).any(|folder| path.starts_with(folder))
            || named.any(|named| path.starts_with(named))
    })
}

/// Of two at one place, the stricter, and what is seen of more.
fn once(mut spots: Vec<Spot>) -> Vec<Spot> {
    spots.sort_by(|one, other| one.path.cmp(&other.path).then((one.role, one.kind).cmp(&(other.role, other.kind))));
    spots.dedup_by(|later, kept| {
        let is_same = later.path == kept.path;
        if is_same {
            kept.kind = kept.kind.min(later.kind);
        }
        is_same
    });
    spots
}

fn of_folder(folder: &Path, kind: Kind, spots: &mut Vec<Spot>) {
    let role = |name: &str| if name == "hooks" { Role::Hooks } else { Role::File };
    spots.extend(OBEYED.iter().map(|name| Spot { path: folder.join(name), kind, role: role(name) }));
}

/// A worktree's own folder and the one that it shares.
fn worktree(own: &Path, tree: &Path) -> Option<(PathBuf, PathBuf)> {
    let elsewhere = named(own, tree, "gitdir: ")?;
    let back = named(&elsewhere.join("gitdir"), &elsewhere, "")?;
    let common = named(&elsewhere.join("commondir"), &elsewhere, "")?;
    let is_so = back == own.canonicalize().ok()? && elsewhere.starts_with(common.join("worktrees"));
    is_so.then_some((elsewhere, common))
}

/// Whether git takes this folder for a repository, whatever it is called.
pub(super) fn is_repository(folder: &Path) -> bool {
    folder::is_repository(|name| folder.join(name).symlink_metadata().is_ok())
}

enum Other {
    /// A work tree: `.git` is in it.
    Tree(PathBuf),
    /// A repository by its layout.
    Folder(PathBuf),
}

/// The other repositories in a workspace, nearest first.
fn others(workspace: &Path) -> Vec<Other> {
    let mut found = Vec::new();
    let mut queue = VecDeque::from([(workspace.to_owned(), 0)]);
    let mut left = FOLDERS;
    while let Some((folder, depth)) = queue.pop_front() {
        if left == 0 || found.len() == REPOSITORIES {
            break;
        }
        left -= 1;
        if depth > 0 {
            if is_repository(&folder) {
                found.push(Other::Folder(folder));
                continue;
            }
            if folder.join(".git").symlink_metadata().is_ok() {
                found.push(Other::Tree(folder.clone()));
            }
        }
        if depth < DEEPEST {
            let is_searched =
                |child: &PathBuf| child.file_name().is_some_and(|name| !is_git(name) && name != "node_modules");
            queue.extend(children(&folder).filter(is_searched).map(|child| (child, depth + 1)));
        }
    }
    found
}

/// Repositories of modules, which are called as their places in the work tree are.
fn modules(folder: &Path, deepest: usize, found: &mut Vec<PathBuf>) {
    for child in children(folder) {
        if found.len() >= REPOSITORIES {
            return;
        }
        // One that was made useless may be made whole again by the next command.
        let is_any = ["HEAD", "config"].iter().any(|name| child.join(name).symlink_metadata().is_ok());
        match is_any {
            true => found.push(child),
            false if deepest > 0 => modules(&child, deepest - 1, found),
            false => {}
        }
    }
}

/// Folders in a folder, in the order of their names; links are none.
fn children(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter()
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// What configurations say, with what they include, whatever the conditions for that are.
#[derive(Debug, Default)]
struct Settings {
    all: Vec<Setting>,
    included: Vec<PathBuf>,
}

impl Settings {
    fn read(&mut self, file: &Path, depth: usize) {
        let Some(settings) = text(file).as_deref().and_then(config::read) else { return };
        for setting in settings {
            if matches!(setting.section.as_str(), "include" | "includeif") && setting.key == "path" {
                let path = leading(file.parent().unwrap_or(file), &setting.value);
                if depth < 10 && self.included.len() < INCLUDED && !self.included.contains(&path) {
                    self.included.push(path.clone());
                    self.read(&path, depth + 1);
                }
            } else {
                self.all.push(setting);
            }
        }
    }
}

/// The settings of one file alone. `None`: they cannot be known.
pub(super) fn settings(file: &Path) -> Option<Vec<Setting>> {
    config::read(&text(file)?)
}

fn text(file: &Path) -> Option<String> {
    let file = openat(CWD, file, READ, Mode::empty()).ok()?;
    content(file.into()).map(|content| String::from_utf8_lossy(&content).into_owned())
}

/// The person's own configurations.
fn persons() -> Vec<PathBuf> {
    let home = home();
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
    let files = [config.map(|config| config.join("git/config")), home.map(|home| home.join(".gitconfig"))];
    [PathBuf::from("/etc/gitconfig")].into_iter().chain(files.into_iter().flatten()).collect()
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Where a path in a configuration leads, without its dots.
fn leading(from: &Path, path: &str) -> PathBuf {
    let whole = match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => from.join(path),
    };
    let mut tidy = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(tidy.pop()),
            Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    tidy
}

/// The same place by a path from the workspace's own name on, without links as far as it is there. `None`: it lies outside.
fn inside(workspace: &Path, path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().find(|above| above.canonicalize().is_ok())?;
    let real = there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?);
    let rest = real.strip_prefix(workspace.canonicalize().ok()?).ok()?.to_owned();
    // A join with nothing leaves a slash behind; components do not have it.
    Some(workspace.join(rest).components().collect())
}

/// The path that a small file holds.
fn named(file: &Path, from: &Path, before: &str) -> Option<PathBuf> {
    let about = file.symlink_metadata().ok()?;
    if !about.is_file() || about.len() > 8192 {
        return None;
    }
    let file = openat(CWD, file, READ | OFlags::NOFOLLOW, Mode::empty()).ok()?;
    let text = String::from_utf8(content(file.into())?).ok()?;
    from.join(text.strip_prefix(before)?.trim_end_matches('\n')).canonicalize().ok()
}
