//! A workspace, a data folder beside it, and git's own view of what was saved there.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tolka_facts::SessionId;
use tolka_workspace::checkpoint::Caps;
use tolka_workspace::{CheckpointError, Checkpoints, Save, Saved};

/// Of everything that is not about sessions.
pub(crate) fn session() -> SessionId {
    SessionId::from("ses_1")
}

pub(crate) const BUDGET: Duration = Duration::from_secs(60);

pub(crate) struct House {
    pub(crate) checkpoints: Checkpoints,
    pub(crate) workspace: PathBuf,
    pub(crate) data: PathBuf,
    caps: Caps,
    _folder: tempfile::TempDir,
}

/// What a path in a snapshot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File(Vec<u8>),
    Program(Vec<u8>),
    Link(Vec<u8>),
}

pub(crate) type Tree = BTreeMap<Vec<u8>, Entry>;

impl House {
    pub(crate) fn new() -> Self {
        House::with_caps(Caps::default())
    }

    pub(crate) fn with_caps(caps: Caps) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, data) = (folder.path().join("workspace"), folder.path().join("data"));
        fs::create_dir(&workspace).unwrap();
        House { checkpoints: Checkpoints::with_caps(&data, caps), workspace, data, caps, _folder: folder }
    }

    /// As after a restart.
    pub(crate) fn reopen(&mut self) {
        self.checkpoints = Checkpoints::with_caps(&self.data, self.caps);
    }

    pub(crate) fn reopen_with(&mut self, caps: Caps) {
        self.caps = caps;
        self.reopen();
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) async fn save(&self) -> Saved {
        self.try_save().await.unwrap()
    }

    pub(crate) async fn try_save(&self) -> Result<Saved, CheckpointError> {
        self.checkpoints.save(&self.workspace, &session(), Save::within(BUDGET, "Before: a test")).await
    }

    /// The one store that there is.
    pub(crate) fn store(&self) -> PathBuf {
        let mut stores = fs::read_dir(self.data.join("checkpoints")).unwrap();
        let store = stores.next().unwrap().unwrap().path();
        assert!(stores.next().is_none(), "one workspace has one store");
        store
    }

    /// Stock git on the store, without the workspace.
    pub(crate) fn git(&self, args: &[&str]) -> Vec<u8> {
        git(&self.store(), &[&["--git-dir", "."], args].concat())
    }

    pub(crate) fn tree(&self, commit: &str) -> String {
        text(self.git(&["rev-parse", &format!("{commit}^{{tree}}")]))
    }

    pub(crate) fn snapshot(&self, commit: &str) -> Tree {
        let listed = self.git(&["ls-tree", "-r", "-z", commit]);
        let items = listed.split(|byte| *byte == 0).filter(|item| !item.is_empty());
        items
            .map(|item| {
                let tab = item.iter().position(|byte| *byte == b'\t').unwrap();
                let about = std::str::from_utf8(&item[..tab]).unwrap().split(' ').collect::<Vec<_>>();
                let content = || self.git(&["cat-file", "blob", about[2]]);
                let entry = match about[0] {
                    "100644" => Entry::File(content()),
                    "100755" => Entry::Program(content()),
                    "120000" => Entry::Link(content()),
                    mode => panic!("{mode} is no content: {:?}", OsStr::from_bytes(&item[tab + 1..])),
                };
                (item[tab + 1..].to_owned(), entry)
            })
            .collect()
    }

    pub(crate) fn paths(&self, commit: &str) -> Vec<String> {
        self.snapshot(commit).into_keys().map(|path| String::from_utf8(path).unwrap()).collect()
    }

    /// Objects that are damaged or missing, if any.
    pub(crate) fn check(&self) {
        assert_eq!(text(self.git(&["fsck", "--strict", "--no-dangling", "--no-progress"])), "");
    }

    pub(crate) fn refs(&self) -> Vec<String> {
        let mut refs: Vec<String> =
            text(self.git(&["for-each-ref", "--format=%(objectname)"])).lines().map(str::to_owned).collect();
        refs.sort();
        refs
    }
}

/// Runs git as a person would, in a folder, and fails with its words.
pub(crate) fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Person", "-c", "user.email=person@example.com"]).args(args).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap().trim().to_owned()
}

/// Everything beneath a folder, as it is on the disk, without anything of git's doing.
pub(crate) fn disk(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    walk(folder, b"", &mut tree);
    tree
}

fn walk(folder: &Path, prefix: &[u8], tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = [prefix, entry.file_name().as_bytes()].concat();
        let found = entry.metadata().unwrap();
        if found.is_dir() {
            walk(&entry.path(), &[path.as_slice(), b"/"].concat(), tree);
        } else if found.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            tree.insert(path, Entry::Link(target.as_os_str().as_bytes().to_owned()));
        } else {
            let content = fs::read(entry.path()).unwrap();
            let is_program = found.permissions().mode() & 0o100 != 0;
            tree.insert(path, if is_program { Entry::Program(content) } else { Entry::File(content) });
        }
    }
}
