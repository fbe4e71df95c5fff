//! A file that changed, as this wire tells it: by its absolute path, with a diff by its path in the workspace.

use tolka_facts::Blobs;
use tolka_facts::event::FileOperation;

use super::diff::{self, Fate};
use super::patch;
use crate::edit::{Change, Edit};
use crate::path::absolute;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileEdit {
    pub(super) file: String,
    pub(super) diff: Option<String>,
}

impl FileEdit {
    pub(super) fn new(edit: &Edit<'_>, workspace: &str, blobs: &dyn Blobs) -> Self {
        let mut told = FileEdit::unknown(&edit.path, workspace);
        let path = in_workspace(&told.file, workspace);
        told.diff = match &edit.change {
            Change::Diff(diff) => diff.load(blobs).and_then(|diff| passed_on(&diff, edit.operation, &path)),
            Change::Texts { before, after } if diff::fits(before.len(), after.len()) => {
                let fate = match edit.operation {
                    FileOperation::Create if before.is_empty() => Fate::Created,
                    FileOperation::Delete if after.is_empty() => Fate::Deleted,
                    FileOperation::Create | FileOperation::Update | FileOperation::Delete => Fate::Updated,
                };
                let texts = before.load(blobs).zip(after.load(blobs));
                texts.and_then(|(before, after)| diff::unified(&path, fate, &before, &after))
            }
            Change::Texts { .. } | Change::Unknown => None,
        };
        told
    }

    pub(super) fn unknown(path: &str, workspace: &str) -> Self {
        FileEdit { file: absolute(path, workspace), diff: None }
    }
}

/// The path from the workspace on. One of another place is told from the root on: git takes no absolute path.
fn in_workspace(file: &str, workspace: &str) -> String {
    let (file, workspace) = (parts(file), parts(workspace));
    file.strip_prefix(&workspace[..]).unwrap_or(&file).join("/")
}

fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

/// A diff that somebody told, as far as it can be applied; named as git names files if it was not.
fn passed_on(told: &str, operation: FileOperation, path: &str) -> Option<String> {
    let patch = patch::read(told).ok()?;
    let mut diff = match patch.bare_hunks {
        None => told.to_owned(),
        Some(hunks) => {
            let fate = match operation {
                FileOperation::Create if told[hunks..].starts_with("@@ -0,0 ") => Fate::Created,
                FileOperation::Delete if told[hunks..].contains(" +0,0 @@") => Fate::Deleted,
                FileOperation::Create | FileOperation::Update | FileOperation::Delete => Fate::Updated,
            };
            diff::header(path, fate, false) + &told[hunks..]
        }
    };
    if !diff.ends_with('\n') {
        diff.push('\n');
    }
    Some(diff)
}

#[cfg(test)]
mod tests {
    use tolka_facts::{BlobRef, Hash};

    use super::*;
    use crate::edit::Text;

    #[test]
    fn a_file_is_told_by_its_absolute_path_and_diffed_by_its_own() {
        let told = |path: &str, workspace: &str| {
            let file = absolute(path, workspace);
            let own = in_workspace(&file, workspace);
            (file, own)
        };
        let pair = |file: &str, own: &str| (file.to_owned(), own.to_owned());
        assert_eq!(told("src/a.rs", "/home/me"), pair("/home/me/src/a.rs", "src/a.rs"));
        assert_eq!(told("./a.rs", "/home/me/"), pair("/home/me/a.rs", "a.rs"));
        assert_eq!(told("/home/me/a.rs", "/home/me"), pair("/home/me/a.rs", "a.rs"));
        assert_eq!(told("/home/mean/a.rs", "/home/me"), pair("/home/mean/a.rs", "home/mean/a.rs"));
        assert_eq!(told("../a.rs", "/home/me"), pair("/home/me/../a.rs", "home/a.rs"));
        assert_eq!(told("a.rs", ""), pair("/a.rs", "a.rs"));
    }

    #[test]
    fn a_diff_that_cannot_be_applied_is_not_passed_on() {
        let corrupt = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\n+b\n";
        assert_eq!(passed_on(corrupt, FileOperation::Update, "x"), None);
        let bare = "Index: /w/x\n=====\n--- /w/x\n+++ /w/x\n@@ -1 +1 @@\n-a\n+b";
        let headed = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(passed_on(bare, FileOperation::Update, "x").unwrap(), headed);
        assert_eq!(passed_on(headed, FileOperation::Update, "other").unwrap(), headed);
    }

    /// Counts what is read, and keeps nothing.
    #[derive(Default)]
    struct Reads(std::cell::Cell<u32>);

    impl Blobs for Reads {
        fn blob(&self, _: &Hash) -> Option<Vec<u8>> {
            self.0.set(self.0.get() + 1);
            None
        }
    }

    #[test]
    fn a_text_is_read_only_if_it_can_become_a_diff() {
        let reads = Reads::default();
        for (size, expected) in [(1024 * 1024 + 1, 0), (1024, 1)] {
            let blob = BlobRef { hash: Hash::of(b""), size };
            let change = Change::Texts { before: Text::Blob(&blob), after: Text::default() };
            let edit = Edit { path: "a".into(), operation: FileOperation::Delete, size: None, change };
            assert_eq!(FileEdit::new(&edit, "/w", &reads), FileEdit { file: "/w/a".to_owned(), diff: None });
            assert_eq!(reads.0.get(), expected, "{size}");
        }
    }
}
