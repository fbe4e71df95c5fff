//! The environment of commands: what they need and is known to be no secret. A key in the server's own
//! environment never reaches them.

use std::ffi::{OsStr, OsString};

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

pub(super) fn of(also: &[OsString]) -> impl Iterator<Item = (OsString, OsString)> {
    let passed = std::env::vars_os().filter(|(name, _)| is_passed(name) || also.contains(name) && !is_ours(name));
    passed.chain(SET.iter().map(|(name, value)| (name.into(), value.into())))
}

fn is_passed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    PASSED.contains(&name) || name.starts_with("LC_")
}

/// What Tolka is told by its environment is nobody else's: tokens are among it.
fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"TOLKA_")
}
