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

use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use landlock::stops_connections;
use serde::{Deserialize, Serialize};

use crate::obeyed::Repository;

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
    ".colima",
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
    ".docker/desktop",
    ".docker/run",
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
    ".orbstack/run",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".rd",
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
    /// May be changed and not be moved: else what is guarded inside would go with it, and another take its place.
    pub(super) pinned: Vec<PathBuf>,
    /// What git obeys: to change it is to run something as the person, later and outside.
    pub(super) guarded: Vec<PathBuf>,
    pub(super) hidden: Vec<PathBuf>,
    /// For files that nobody needs for long.
    pub(super) scratch: PathBuf,
}

impl Bounds {
    pub(super) fn new(workspace: PathBuf, folder: PathBuf, scratch: PathBuf, hidden: &[PathBuf]) -> Self {
        let hidden = all_hidden(hidden).filter(|path| path != &workspace).collect();
        let repository = Repository::of_workspace(&workspace);
        let (pinned, guarded) = (repository.pinned(&workspace), repository.guarded(&workspace));
        let writable = repository.common.into_iter().collect();
        Bounds { folder, guarded, pinned, writable, hidden, scratch, workspace }
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

/// Bubblewrap's program, in `PATH` as this process was given it, and there in whole paths only, since others depend on
/// where one is.
pub(super) fn wrapper() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.find_map(|folder| Some(folder.join("bwrap")).filter(|program| program.is_file()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn stops_connections() -> bool {
    false
}
