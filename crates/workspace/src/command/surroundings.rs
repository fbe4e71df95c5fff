//! The environment of commands: what they need and is known to be no secret. A key in the server's own
//! environment never reaches them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::Level;

/// Passed on as they are. Who one is, where things are, how they are shown.
const PASSED: &[&str] = &[
    "CARGO_HOME",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "NVM_DIR",
    "PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "REQUESTS_CA_BUNDLE",
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

/// The way to the network, as long as no password is written in it.
const PROXIES: &[&str] = &["ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

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

/// What one program is given besides. Under these names no loader and no shell on the way to it looks at them: they are
/// its own again when it is started, and no keeper and no sandbox is started with them.
const GIVEN: &str = "TOLKA_GIVEN_";

pub(super) fn given(env: &[(String, String)]) -> impl Iterator<Item = (String, &str)> {
    env.iter().map(|(name, value)| (format!("{GIVEN}{name}"), value.as_str()))
}

/// By its own names what this process holds for the program that it starts, and the names to be taken away.
pub(super) fn unwrapped() -> Vec<(OsString, OsString, OsString)> {
    let own = |(name, value): (OsString, OsString)| {
        let bare = name.to_str()?.strip_prefix(GIVEN)?.to_owned();
        Some((name, bare.into(), value))
    };
    std::env::vars_os().filter_map(own).collect()
}

pub(super) fn of() -> impl Iterator<Item = (OsString, OsString)> {
    let passed = std::env::vars_os().filter(|(name, value)| is_passed(name, value));
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

fn is_passed(name: &OsStr, value: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let is_proxy = || PROXIES.contains(&name.to_ascii_uppercase().as_str());
    let is_open = || !value.as_encoded_bytes().contains(&b'@');
    PASSED.contains(&name) || name.starts_with("LC_") || is_proxy() && is_open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_be_no_secret_is_passed() {
        let passed = |name: &str, value: &str| is_passed(OsStr::new(name), OsStr::new(value));
        for (name, value) in [("PATH", "/bin"), ("LC_ALL", "C"), ("https_proxy", "http://proxy:3128")] {
            assert!(passed(name, value), "{name}");
        }
        for name in ["OPENAI_API_KEY", "TOLKA_TOKEN", "SSH_AUTH_SOCK", "GITHUB_TOKEN", "LCX", "EDITOR"] {
            assert!(!passed(name, "x"), "{name}");
        }
        assert!(!passed("HTTP_PROXY", "http://me:secret@proxy"));
    }
}
