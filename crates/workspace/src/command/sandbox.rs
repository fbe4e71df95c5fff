//! What a command may see and change, in words that do not depend on who enforces them.
//!
//! It sees the machine, but not what opens other doors: keys, tokens, and what Tolka keeps itself. It changes its
//! workspace, the git folder of that where it lies elsewhere, and a scratch folder.

#[cfg(target_os = "linux")]
pub(super) mod bubblewrap;
#[cfg(target_os = "linux")]
pub(super) mod landlock;
#[cfg(target_os = "linux")]
mod root;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// In a person's home, what lets somebody be that person elsewhere.
const SECRETS: &[&str] = &[
    ".Xauthority",
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/sops",
    ".config/tolka",
    ".docker/config.json",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/opencode/auth.json",
    ".local/share/tolka",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
];

/// All paths are real ones, and there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Bounds {
    pub(super) workspace: PathBuf,
    /// Where it starts.
    pub(super) folder: PathBuf,
    /// What may be changed besides.
    pub(super) writable: Vec<PathBuf>,
    /// What git obeys: to change it is to run something as the person, later and outside.
    pub(super) guarded: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// For files that nobody needs for long.
    pub(super) scratch: PathBuf,
}

impl Bounds {
    pub(super) fn new(workspace: PathBuf, folder: PathBuf, scratch: PathBuf, hidden: &[PathBuf]) -> Self {
        let hidden = all_hidden(hidden).filter(|path| path != &workspace).collect();
        let writable = git_folders(&workspace);
        let repositories = writable.iter().cloned().chain([workspace.join(".git")]);
        let guarded = repositories.flat_map(|git| ["config", "config.worktree", "hooks"].map(|name| git.join(name)));
        let guarded = guarded.filter(|path| path.symlink_metadata().is_ok_and(|found| !found.is_symlink()));
        Bounds { folder, guarded: guarded.collect(), writable, hidden, scratch, workspace }
    }
}

/// The secrets of the person whose home this is, and these: those that are there, by their real names.
pub(super) fn all_hidden(more: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let secrets = home.into_iter().flat_map(|home| SECRETS.iter().map(move |secret| home.join(secret)));
    // A link is hidden where it leads to; the link itself says nothing.
    let real = secrets.chain(more.iter().cloned()).filter_map(|path| path.canonicalize().ok());
    real.filter(|path| path.parent().is_some())
}

/// A worktree has its git folder in another repository, and shares most of that. One that its `.git` file merely
/// claims is none: git's own note there must lead back here, or a file in the workspace could open any folder.
fn git_folders(workspace: &Path) -> Vec<PathBuf> {
    let find = || {
        let file = workspace.join(".git");
        let own = named(&file, workspace, "gitdir: ")?;
        let back = named(&own.join("gitdir"), &own, "")?;
        let common = named(&own.join("commondir"), &own, "")?;
        (back == file.canonicalize().ok()? && own.starts_with(common.join("worktrees"))).then_some(common)
    };
    find().into_iter().collect()
}

/// The path that a small file holds.
fn named(file: &Path, from: &Path, before: &str) -> Option<PathBuf> {
    let about = file.symlink_metadata().ok()?;
    if !about.is_file() || about.len() > 8192 {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    from.join(text.strip_prefix(before)?.trim_end_matches('\n')).canonicalize().ok()
}
