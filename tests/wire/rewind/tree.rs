//! A folder as it is: every path with its kind, its bytes and whether it can be run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    File { bytes: Vec<u8>, runs: bool },
    Link(PathBuf),
}

pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// Without `.git`.
pub(crate) fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    walk(folder, Path::new(""), &|path| path != Path::new(".git"), &mut found);
    found
}

/// The person's own repository, byte for byte.
pub(crate) fn repository(folder: &Path) -> Tree {
    let mut found = Tree::new();
    walk(&folder.join(".git"), Path::new(""), &|_| true, &mut found);
    found
}

fn walk(root: &Path, at: &Path, is_wanted: &dyn Fn(&Path) -> bool, found: &mut Tree) {
    let Ok(entries) = fs::read_dir(root.join(at)) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = at.join(entry.file_name());
        if !is_wanted(&path) {
            continue;
        }
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            walk(root, &path, is_wanted, found);
        } else if kind.is_symlink() {
            found.insert(path, Entry::Link(fs::read_link(entry.path()).unwrap()));
        } else {
            let runs = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            found.insert(path, Entry::File { bytes: fs::read(entry.path()).unwrap(), runs });
        }
    }
}

/// The paths that differ, for a person to read.
pub(crate) fn differences(left: &Tree, right: &Tree) -> Vec<String> {
    let paths = left.keys().chain(right.keys()).collect::<std::collections::BTreeSet<_>>();
    let shown = |tree: &Tree, path: &PathBuf| match tree.get(path) {
        None => "nothing".to_owned(),
        Some(Entry::Link(to)) => format!("-> {}", to.display()),
        Some(Entry::File { bytes, runs }) => {
            format!(
                "{:?}{}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(40)]),
                if *runs { " (runs)" } else { "" }
            )
        }
    };
    let differs = paths.into_iter().filter(|path| left.get(*path) != right.get(*path));
    differs.map(|path| format!("{:?}: {} / {}", path, shown(left, path), shown(right, path))).collect()
}

#[track_caller]
pub(crate) fn assert_same(is: &Tree, should: &Tree, what: &str) {
    let differences = differences(is, should);
    assert!(differences.is_empty(), "{what}: is / should be:\n{}", differences.join("\n"));
}

/// As a shell understands it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = String::from_utf8(path.as_os_str().as_bytes().to_vec()).unwrap();
    format!("'{}'", text.replace('\'', r"'\''"))
}
