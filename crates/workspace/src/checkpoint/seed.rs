//! A new store begins with what the workspace's own repository knows already.
//!
//! Git has read and stored most of the files there. What its index says of a file is taken over if the file has not
//! been touched since git read it, and the stored object if it is as long as the file; all else is read by us, as in a
//! workspace without a repository. Objects are linked, or copied: the repository may do with its own what it likes.
//! Nothing is written there, and wherever something is odd, nothing is taken over.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::CheckpointError;
use super::files::{self, blocking};
use super::git::{Git, Halt};
use super::index::{self, Belief, Known};
use super::links::{self, Linked};
use super::modes::{Looked, is_usual};

/// Of what is left of the budget: a workspace that takes longer is saved in the plain way, which gets further each time.
const SHARE: u32 = 3;

/// Attributes by which a stored object may be other than the file and yet as long.
const CONVERSIONS: &[&str] = &["filter", "ident", "working-tree-encoding"];

/// In a repository's configuration: names are not what they seem, hashes are others, or more of it stands elsewhere.
const ODD_SETTINGS: &[&str] =
    &["objectformat", "[filter", "[include", "ignorecase = true", "precomposeunicode", "attributesfile", "worktree ="];

/// In a person's own configuration.
const ODD_HABITS: &[&str] = &["[filter", "attributesfile"];

/// The first index of a store, until a run makes it its own.
const INDEX: &str = "index.seed";

/// Where git looks for objects besides its own folder, for one command.
const ALSO: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Where a store keeps the paths that its repository tracked though they were ignored.
const HELD: &str = "held";

/// Enough for every file of settings that people write.
const TEXT: u64 = 1 << 20;

/// Gives a store that is being made its first index, if it can, and tells what it has seen of the files in it.
pub(super) async fn sow(git: &Git, largest: u64, halt: &Halt) -> Result<Option<Looked>, CheckpointError> {
    let part = halt.part(SHARE);
    let sown = match plant(git, largest, &part).await {
        Ok(sown) => sown,
        Err(error @ CheckpointError::Stopped) => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "a checkpoint store begins without what the repository knows");
            // It may name objects that are not here.
            let index = git.dir.join(INDEX);
            blocking(move || files::remove_file(&index)).await?;
            None
        }
    };
    tracing::debug!(is_sown = sown.is_some(), workspace = %git.workspace.display(), "a new checkpoint store");
    Ok(sown)
}

async fn plant(git: &Git, largest: u64, halt: &Halt) -> Result<Option<Looked>, CheckpointError> {
    let workspace = git.workspace.clone();
    let Some(found) = blocking(move || Ok(Found::read(&workspace))).await? else { return Ok(None) };
    let (workspace, objects, all) = (git.workspace.clone(), found.objects.clone(), names(&found.known));
    // Nothing is linked yet: what is stored anew though it is there already gets another time from git, and a file of
    // the repository would with it.
    let doubted = blocking(move || Ok(found.doubted(&workspace, largest)));
    let (known, sizes) = tokio::join!(doubted, sizes(git, &objects, &all, halt));
    let ((mut known, looked), sizes) = (known?, sizes?);
    for known in &mut known {
        known.belief.take_if(|belief| sizes.get(&belief.object) != Some(&u64::from(belief.size)));
    }
    let wanted: Arc<[_]> = names(&known).into();
    let (dir, from, names) = (git.dir.clone(), objects.clone(), wanted.clone());
    let linked = blocking(move || links::link(&from, &dir.join("objects"), &names));
    let path = git.dir.join(INDEX);
    let written = blocking(move || write(&path, &index::encode(&known)));
    let (linked, written) = tokio::join!(linked, written);
    written?;
    match linked? {
        Linked::All => {}
        Linked::Elsewhere => copy(git, &objects, &wanted, halt).await?,
    }
    Ok(Some(looked))
}

/// On the disk when it returns: half of an index could be taken for a whole one.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let written = fs::File::create(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(CheckpointError::storage(path))
}

/// From now on these are saved though they are ignored. Whether some were not before. Blocks.
pub(super) fn hold(store: &Path, mut paths: Vec<Vec<u8>>) -> Result<bool, CheckpointError> {
    let mut all = if paths.is_empty() { Vec::new() } else { held(store) };
    paths.retain(|path| !all.contains(path));
    if paths.is_empty() {
        return Ok(false);
    }
    all.append(&mut paths);
    let bytes: Vec<u8> = all.iter().flat_map(|path| path.iter().chain(&[0])).copied().collect();
    let path = store.join(HELD);
    let new = path.with_added_extension("new");
    write(&new, &bytes)?;
    fs::rename(&new, &path).map_err(CheckpointError::storage(path))?;
    Ok(true)
}

/// What the repository of a workspace tracks. `None`: there is none, or its index is not understood.
pub(super) fn tracked(workspace: &Path) -> Option<HashSet<Vec<u8>>> {
    let repository = workspace.join(".git");
    let found = fs::symlink_metadata(&repository).ok().filter(|found| found.is_dir() || found.is_file())?;
    let folder = match found.is_dir() {
        true => repository,
        // Of a further work tree, it says where its index is.
        false => workspace.join(text_as_it_is(&repository).ok()?.strip_prefix("gitdir: ")?.trim_end()),
    };
    let known = index::parse(&index::content(index::open(&folder.join("index")).ok()?).ok()?)?;
    Some(known.into_iter().map(|known| known.path).collect())
}

/// The paths that are saved though they are ignored: the repository tracked them when they were first met, or a restore
/// made them. Blocks.
pub(super) fn held(store: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(store.join(HELD)).unwrap_or_default();
    bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_owned).collect()
}

/// What the repository's index says, and where its objects are.
#[derive(Debug)]
struct Found {
    known: Vec<Known>,
    objects: PathBuf,
    /// When the index was, in seconds and their billionths.
    written: (u32, u32),
    began: Duration,
}

impl Found {
    /// Blocks.
    fn read(workspace: &Path) -> Option<Self> {
        let repository = workspace.join(".git");
        if !fs::symlink_metadata(&repository).ok()?.is_dir() || is_odd(&repository) {
            return None;
        }
        let began = since_epoch(SystemTime::now())?;
        // Git replaces the whole file: what has been opened does not change any more.
        let file = index::open(&repository.join("index")).ok()?;
        let found = file.metadata().ok()?;
        let written = (u32::try_from(found.mtime()).ok()?, u32::try_from(found.mtime_nsec()).ok()?);
        let known = index::parse(&index::content(file).ok()?)?;
        if known.iter().any(|known| converts(workspace, &known.path)) {
            return None;
        }
        Some(Found { known, objects: repository.join("objects"), written, began })
    }

    /// With the belief in those files only that are as the index has them, and the modes of those. Blocks.
    fn doubted(mut self, workspace: &Path, largest: u64) -> (Vec<Known>, Looked) {
        let (written, began) = (self.written, self.began);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = self.known.len().div_ceil(threads).max(1);
        let look = |known: &mut Known| {
            let mode = doubt(workspace, known, written, began, largest).filter(|mode| !is_usual(*mode))?;
            Some((PathBuf::from(OsStr::from_bytes(&known.path)), mode))
        };
        let odd = std::thread::scope(|scope| {
            let parts = self.known.chunks_mut(share);
            let look = |part: &mut [Known]| part.iter_mut().filter_map(look).collect::<Vec<_>>();
            let looks: Vec<_> = parts.map(|part| scope.spawn(move || look(part))).collect();
            looks.into_iter().flat_map(|look| look.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        (self.known, Looked::new(odd, began))
    }
}

/// Whether a file that git may have obeyed says that objects are not what files hold.
fn is_odd(repository: &Path) -> bool {
    let says = |path: PathBuf, words: &[&str]| match text(&path) {
        Ok(text) => words.iter().any(|word| text.contains(word)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let own = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from).join("git");
    ["config", "config.worktree"].iter().any(|name| says(repository.join(name), ODD_SETTINGS))
        || [home.join(".gitconfig"), own.join("config"), "/etc/gitconfig".into()]
            .into_iter()
            .any(|path| says(path, ODD_HABITS))
        || [repository.join("info/attributes"), own.join("attributes"), "/etc/gitattributes".into()]
            .into_iter()
            .any(|path| says(path, CONVERSIONS))
}

fn converts(workspace: &Path, path: &[u8]) -> bool {
    let is_attributes = path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
    is_attributes
        && match text(&workspace.join(OsStr::from_bytes(path))) {
            Ok(text) => CONVERSIONS.iter().any(|word| text.contains(word)),
            Err(_) => true,
        }
}

fn text_as_it_is(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > TEXT {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// In small letters. The filter of large files makes objects that are shorter than any file it is for.
fn text(path: &Path) -> io::Result<String> {
    Ok(text_as_it_is(path)?.to_lowercase().replace("[filter \"lfs\"]", ""))
}

/// Gives up the belief in what may have been touched since; if it holds, the file's mode. Git compares seconds, as does
/// the one that will read our index; here it is billionths, and a file of the second in which this began may yet change
/// within it.
fn doubt(workspace: &Path, known: &mut Known, written: (u32, u32), began: Duration, largest: u64) -> Option<u32> {
    let belief = known.belief.take()?;
    let is_old = |time: (u32, u32)| u64::from(time.0) < began.as_secs();
    if belief.modified >= written || !is_old(belief.modified) || !is_old(belief.changed) {
        return None;
    }
    let found = fs::symlink_metadata(workspace.join(OsStr::from_bytes(&known.path))).ok()?;
    if found.len() > largest || !is_as_believed(&found, &belief, known.mode) {
        return None;
    }
    known.belief = Some(belief);
    Some(found.mode() & 0o777).filter(|_| found.is_file())
}

fn is_as_believed(found: &Metadata, belief: &Belief, mode: u32) -> bool {
    let is_program = found.mode() & 0o100 != 0;
    let is_kind = match mode {
        0o120_000 => found.is_symlink(),
        0o100_755 => found.is_file() && is_program,
        _ => found.is_file() && !is_program,
    };
    let at = |(seconds, rest): (u32, u32)| (i64::from(seconds), i64::from(rest));
    is_kind
        && (found.mtime(), found.mtime_nsec()) == at(belief.modified)
        && (found.ctime(), found.ctime_nsec()) == at(belief.changed)
        && found.ino() & u64::from(u32::MAX) == u64::from(belief.inode)
        && found.len() == u64::from(belief.size)
}

fn since_epoch(time: SystemTime) -> Option<Duration> {
    time.duration_since(SystemTime::UNIX_EPOCH).ok()
}

/// Each object once.
fn names(known: &[Known]) -> Vec<[u8; 20]> {
    let mut names: Vec<_> =
        known.iter().filter_map(|known| known.belief.as_ref().map(|belief| belief.object)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn lines(names: &[[u8; 20]]) -> String {
    names.iter().map(|name| links::hex(name) + "\n").collect()
}

/// How long those objects of another folder are that are there.
async fn sizes(
    git: &Git,
    objects: &Path,
    names: &[[u8; 20]],
    halt: &Halt,
) -> Result<HashMap<[u8; 20], u64>, CheckpointError> {
    let args = ["cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer"];
    let output = git.run_among(&[(ALSO, &quoted(objects))], &args, lines(names).as_bytes(), halt).await?;
    let text = String::from_utf8_lossy(&output.out);
    // One line for each, in their order; of what is missing it says so.
    let size = |line: &str| line.strip_prefix("blob ")?.parse().ok();
    Ok(names.iter().zip(text.lines()).filter_map(|(name, line)| Some((*name, size(line)?))).collect())
}

/// What the tree needs, from another file system.
async fn copy(git: &Git, objects: &Path, names: &[[u8; 20]], halt: &Halt) -> Result<(), CheckpointError> {
    let pack = git.dir.join("objects/pack/pack");
    let args = [OsStr::new("pack-objects"), OsStr::new("-q"), OsStr::new("--window=0"), pack.as_os_str()];
    git.run_among(&[(ALSO, &quoted(objects))], &args, lines(names).as_bytes(), halt).await.map(drop)
}

/// As git reads a list of folders.
fn quoted(folder: &Path) -> OsString {
    let mut quoted = OsString::from("\"");
    for byte in folder.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.push(OsStr::from_bytes(&[b'\\', *byte])),
            b'\n' => quoted.push("\\n"),
            _ => quoted.push(OsStr::from_bytes(&[*byte])),
        }
    }
    quoted.push("\"");
    quoted
}
