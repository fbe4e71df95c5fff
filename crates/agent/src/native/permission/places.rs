//! Where the words of a command lead, for those commands that we vouch for: programs have ways of their own to reach out,
//! but these few look at what they are told to look at.

use std::path::{Path, PathBuf};

use tolka_workspace::obeyed::is_quiet;

use super::line::{Command, Word};

/// Where a command line runs.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    pub workspace: &'a Path,
    /// In which it starts, inside of the workspace.
    pub folder: &'a Path,
}

impl<'a> Ground<'a> {
    /// In the workspace itself.
    pub fn of(workspace: &'a Path) -> Self {
        Ground { workspace, folder: workspace }
    }
}

/// Nobody goes to more folders in one line whose commands we vouch for.
const FOLDERS: usize = 8;

/// Where a line may have come to: it may have gone to a folder, or failed to.
#[derive(Debug)]
pub(super) struct Whereabouts<'a> {
    workspace: &'a Path,
    /// Without links. `None`: there is no such folder, and then no links in it either.
    root: Option<PathBuf>,
    folders: Vec<PathBuf>,
    is_lost: bool,
}

impl<'a> Whereabouts<'a> {
    pub(super) fn new(ground: Ground<'a>) -> Self {
        let root = ground.workspace.canonicalize().ok();
        Whereabouts { workspace: ground.workspace, root, folders: vec![ground.folder.to_owned()], is_lost: false }
    }

    /// The places that the command names, from the workspace on, by every name that they have. `None`: it may lead out,
    /// or it cannot be told.
    pub(super) fn named(&self, command: &Command) -> Option<Vec<String>> {
        if self.is_lost || follows_links(command) || command.words.iter().any(|word| word.is_open) {
            return None;
        }
        let mut named = Vec::new();
        // An option may have its value behind a `=`, a revision its path behind a `:`.
        let places = command.words.iter().skip(1).flat_map(|word| {
            let whole = [word.text.as_str()].into_iter().filter(|text| text.contains(['=', ':']));
            whole.chain(word.text.split(['=', ':']))
        });
        for place in places.filter(|place| !place.is_empty() && *place != "/dev/null") {
            named.append(&mut self.inside(place)?);
        }
        Some(named)
    }

    /// Whether git, wherever the line may have come to, runs nothing that a repository names.
    pub(super) fn is_quiet(&self) -> bool {
        !self.is_lost && self.folders.iter().all(|folder| is_quiet(self.workspace, folder))
    }

    fn inside(&self, place: &str) -> Option<Vec<String>> {
        let is_up = place.split('/').any(|part| part == "..");
        if is_up || place.starts_with('~') {
            return None;
        }
        let mut names = Vec::new();
        for folder in &self.folders {
            let path = folder.join(place);
            let roots = [Some(self.workspace), self.root.as_deref()];
            let from = roots.into_iter().flatten().find_map(|root| path.strip_prefix(root).ok())?;
            names.push(tidy(from)?);
            let Some(root) = &self.root else { continue };
            // What is not there leads nowhere; where it would be, it would be by the links on the way.
            let there = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
            let real = there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?);
            names.push(tidy(real.strip_prefix(root).ok()?)?);
        }
        Some(names)
    }

    /// Goes where the command goes, if it is one that goes anywhere.
    pub(super) fn follow(&mut self, command: &Command) {
        match command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().as_slice() {
            ["cd", folder] if !folder.starts_with('-') && !folder.is_empty() && self.folders.len() < FOLDERS => {
                self.is_lost |= self.named(command).is_none();
                let more: Vec<_> = self.folders.iter().map(|known| known.join(folder)).collect();
                self.folders.extend(more);
            }
            ["cd" | "pushd" | "popd", ..] => self.is_lost = true,
            _ => {}
        }
    }
}

/// `ls -L` and its like look at what links lead to.
fn follows_links(command: &Command) -> bool {
    let is_it = |word: &Word| {
        let short =
            word.text.strip_prefix('-').is_some_and(|short| !short.starts_with('-') && short.contains(['L', 'H']));
        short || word.text.starts_with("--de")
    };
    command.program() == "ls" && command.words.iter().any(is_it)
}

/// A join with nothing leaves a slash behind; components do not have it.
fn tidy(path: &Path) -> Option<String> {
    path.components().collect::<PathBuf>().to_str().map(str::to_owned)
}
