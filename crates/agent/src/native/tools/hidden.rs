//! What no tool reads or writes, whoever allows it, and where names really lead.

use std::path::{Path, PathBuf};

use super::Tools;

/// What the kernel shows of itself and of this very process: no files, and no business of a model.
const OF_THE_KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// As many as Linux follows.
const LINKS: usize = 40;

/// What commands do not see is not read or written for them either, and nobody can allow it: it holds keys, or what Tolka
/// itself goes by.
pub(super) struct Hidden {
    workspace: PathBuf,
    /// Without links.
    root: PathBuf,
    places: Vec<PathBuf>,
}

impl Hidden {
    pub(super) fn of(tools: &Tools) -> Self {
        let root = tools.workspace.canonicalize().unwrap_or_else(|_| tools.workspace.clone());
        let mut places = tools.settings.shell.hidden();
        places.extend(OF_THE_KERNEL.map(PathBuf::from));
        Hidden { workspace: tools.workspace.clone(), root, places }
    }

    /// Of a path that is absolute, or from the workspace on.
    pub(super) fn has(&self, path: &str) -> bool {
        let file = self.workspace.join(path);
        // What leads nowhere has no other name.
        let real = real_place(&file).unwrap_or(file);
        // The workspace itself may lie in such a place: then it is seen, and what is around it is not.
        let is_around = |place: &PathBuf| self.root.starts_with(place) && real.starts_with(&self.root);
        self.places.iter().any(|place| real.starts_with(place) && !is_around(place))
    }
}

/// Where something is, or will be, from the workspace on and without links. `None`: it leads out, or nowhere.
pub(super) fn real_path(workspace: &Path, path: &str) -> Option<String> {
    let inside = real_place(&workspace.join(path))?;
    inside.strip_prefix(workspace.canonicalize().ok()?).ok()?.to_str().map(str::to_owned)
}

/// The same, absolute.
fn real_place(file: &Path) -> Option<PathBuf> {
    real_place_within(file, LINKS)
}

fn real_place_within(file: &Path, links: usize) -> Option<PathBuf> {
    let target = file.read_link().ok().filter(|_| links > 0 && file.canonicalize().is_err());
    // A link to what is not there yet: whoever writes it makes that.
    if let Some(target) = target {
        return real_place_within(&file.parent()?.join(target), links - 1);
    }
    let is_there = |folder: &&Path| folder.canonicalize().is_ok();
    let there = file.ancestors().find(is_there)?;
    let real = there.canonicalize().ok()?.join(file.strip_prefix(there).ok()?);
    // A join with nothing leaves a slash behind; components do not have it.
    Some(real.components().collect())
}
