//! Paths as wires want them.

/// A workspace that nobody told stands for the root.
pub(crate) fn absolute(path: &str, workspace: &str) -> String {
    match is_absolute(path) {
        true => path.to_owned(),
        false => format!("{}/{}", workspace.trim_end_matches('/'), path.strip_prefix("./").unwrap_or(path)),
    }
}

pub(crate) fn is_absolute(path: &str) -> bool {
    let has_drive = |path: &[u8]| matches!(path, [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    path.starts_with('/') || path.starts_with(r"\\") || has_drive(path.as_bytes())
}
