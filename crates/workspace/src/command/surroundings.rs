//! The environment of commands: what they need and is known to be no secret. A key in the server's own
//! environment never reaches them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Level;

/// Passed on as they are. Who one is, where things are, how they are shown.
const PASSED: &[&str] = &[
    "CARGO_HOME",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Nobody sits there: what would ask or wait for a key press fails at once instead, and says so. `CI` is not among
/// them, since it makes tools treat warnings as errors and lock files as frozen.
const SET: &[(&str, &str)] = &[
    ("EDITOR", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("VISUAL", "false"),
];

/// What cannot do without a folder to write to in a home that cannot be written.
const CACHES: &[(&str, &str)] = &[("GOCACHE", "go-build"), ("npm_config_cache", "npm")];

pub(super) fn of(also: &[OsString]) -> impl Iterator<Item = (OsString, OsString)> {
    let is_wanted = |name: &OsStr| is_passed(name) || also.iter().any(|also| also == name) && !is_ours(name);
    let passed = std::env::vars_os().filter(move |(name, _)| is_wanted(name));
    passed.chain(SET.iter().map(|(name, value)| (name.into(), value.into())))
}

/// What is different in a sandbox.
pub(super) fn confined(level: Level, scratch: &Path) -> impl Iterator<Item = (OsString, OsString)> {
    let scratch = match level {
        Level::Bubblewrap => Path::new("/tmp"),
        Level::Landlock | Level::None => scratch,
    };
    let caches = CACHES.iter().map(|(name, folder)| (name.into(), scratch.join(folder).into()));
    caches.chain([("TMPDIR".into(), scratch.into())])
}

fn is_passed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    PASSED.contains(&name) || name.starts_with("LC_")
}

/// What Tolka is told by its environment is nobody else's: tokens are among it.
fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"TOLKA_")
}
