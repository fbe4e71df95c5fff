//! From `tolka.toml`, the environment and the command line to what the native agent is given.

use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// A path of the configuration: `~` is the home folder, and what is relative is so from the file's own folder.
pub(crate) fn beside(folder: Option<&Path>, path: &Path, environment: &Environment) -> PathBuf {
    if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), environment.get("HOME")) {
        return Path::new(home).join(rest);
    }
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}
