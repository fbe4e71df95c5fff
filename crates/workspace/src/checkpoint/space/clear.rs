//! Removes what no snapshot holds any more.
//!
//! Loose objects go one by one and take no room while they do. A pack cannot lose a part: it goes whole when nothing in it
//! is needed, and is written anew without the rest when little is. One at a time, so that what this takes of the disk
//! meanwhile is less than it gives back.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::weigh::sizes;
use super::{Git, Halt, Left};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::files::{self, blocking};

/// How much that nobody needs is left lying in packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum Thrift {
    Usual,
    /// There is too little room.
    Close,
    /// None: what was purged should be nowhere.
    Whole,
}

impl Thrift {
    /// A pack is written anew if less than this part of it is needed, in percent.
    fn least(self, pack: &Pack) -> u64 {
        match self {
            Thrift::Close => 75,
            // One that the workspace's own repository has as well hides nothing, and costs nothing.
            Thrift::Whole if !pack.is_shared => 100,
            Thrift::Usual | Thrift::Whole => 50,
        }
    }
}

/// A pack, and what is needed of it.
struct Pack {
    path: PathBuf,
    size: u64,
    /// The workspace's own repository has it too, by a hard link.
    is_shared: bool,
    objects: usize,
    needed: Vec<Name>,
}

/// Takes refs away, and all that nothing else refers to. The store must be held, as for a save.
pub(in crate::checkpoint) async fn remove(
    git: &Git,
    refs: &[String],
    thrift: Thrift,
    halt: &Halt,
) -> Result<Left, CheckpointError> {
    let (dir, index) = (git.dir.clone(), git.index.clone());
    blocking(move || {
        sweep_locks(&dir)?;
        // Caches that somebody's `git gc` made. They would go on naming what is gone.
        files::remove_file(&dir.join("objects/info/commit-graph"))?;
        files::remove_folder(&dir.join("objects/info/commit-graphs"))?;
        files::remove_file(&dir.join("objects/pack/multi-pack-index"))?;
        files::sweep(&dir, &index)
    })
    .await?;
    let deletions = refs.iter().map(|name| format!("delete {name}\n")).collect::<String>();
    git.run(&["update-ref", "--stdin"], deletions.as_bytes(), halt).await?;
    if git.run(&["for-each-ref", "--count=1", "refs/tolka"], b"", halt).await?.out.is_empty() {
        let dir = git.dir.clone();
        blocking(move || files::retire(&dir)).await?;
        return Ok(Left::Nothing);
    }
    git.run(&["prune", "--expire=now"], b"", halt).await?;
    clear_packs(git, thrift, halt).await?;
    Ok(Left::Others)
}

async fn clear_packs(git: &Git, thrift: Thrift, halt: &Halt) -> Result<(), CheckpointError> {
    let folder = git.dir.join("objects/pack");
    let packs = blocking(move || packs(&folder)).await?;
    if packs.is_empty() {
        return Ok(());
    }
    let args = ["rev-list", "--objects", "--no-object-names", "--all", "--indexed-objects"];
    let listed = git.run(&args, b"", halt).await?;
    let needed: Arc<HashSet<Name>> = Arc::new(listed.out.split(|byte| *byte == b'\n').filter_map(name).collect());
    for path in packs {
        let needed = needed.clone();
        let Some(pack) = blocking(move || Ok(Pack::open(path, &needed).ok())).await? else { continue };
        if is_good(git, &pack, thrift, halt).await?
            || (!pack.needed.is_empty() && !write_anew(git, &pack, halt).await?)
        {
            continue;
        }
        blocking(move || remove_pack(&pack.path)).await?;
    }
    // What is in a pack need not lie beside it as well.
    git.run(&["prune-packed", "-q"], b"", halt).await.map(drop)
}

/// Whether it may stay as it is.
async fn is_good(git: &Git, pack: &Pack, thrift: Thrift, halt: &Halt) -> Result<bool, CheckpointError> {
    if pack.needed.is_empty() || pack.needed.len() == pack.objects {
        return Ok(!pack.needed.is_empty());
    }
    let weight: u64 = sizes(git, lines(&pack.needed).as_bytes(), halt).await?.iter().map(|(_, size)| size).sum();
    Ok(weight.saturating_mul(100) >= pack.size.saturating_mul(thrift.least(pack)))
}

/// Writes what is needed of a pack into one of its own, under another name first: what is there is whole. False if it is
/// the same one.
async fn write_anew(git: &Git, pack: &Pack, halt: &Halt) -> Result<bool, CheckpointError> {
    let target = git.dir.join("objects/pack/pack");
    let args = ["pack-objects".as_ref(), "-q".as_ref(), "--threads=1".as_ref(), target.as_os_str()];
    let written = git.run(&args, lines(&pack.needed).as_bytes(), halt).await?.line();
    Ok(pack.path.file_stem().is_none_or(|stem| stem.to_string_lossy() != format!("pack-{written}")))
}

/// Whoever left these is gone: this run's gits are waited for.
fn sweep_locks(store: &Path) -> Result<(), CheckpointError> {
    files::remove_file(&store.join("packed-refs.lock"))?;
    files::remove_file(&store.join("packed-refs.new"))?;
    let sessions = fs::read_dir(store.join("refs/tolka")).into_iter().flatten().flatten();
    for left in sessions.flat_map(|session| fs::read_dir(session.path()).into_iter().flatten().flatten()) {
        if left.path().extension().is_some_and(|extension| extension == "lock") {
            files::remove_file(&left.path())?;
        }
    }
    Ok(())
}

type Name = [u8; 20];

fn name(hex: &[u8]) -> Option<Name> {
    let text = std::str::from_utf8(hex).ok().filter(|text| text.len() == 40)?;
    let mut name = Name::default();
    for (at, byte) in name.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(name)
}

fn lines(names: &[Name]) -> String {
    let hex = |name: &Name| name.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    names.iter().map(|name| hex(name) + "\n").collect()
}

/// The packs that can be read: those with an index.
fn packs(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CheckpointError::storage(folder)(error)),
    };
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|it| it == "pack");
    let (packs, rest): (Vec<_>, Vec<_>) = paths.into_iter().partition(is_pack);
    let (packs, halves): (Vec<_>, Vec<_>) = packs.into_iter().partition(|pack| pack.with_extension("idx").exists());
    // Halves of packs that were being removed, or linked, when somebody was killed.
    halves.iter().for_each(|half| drop(fs::remove_file(half)));
    rest.iter().filter(|path| !path.with_extension("pack").exists()).for_each(|path| drop(fs::remove_file(path)));
    Ok(packs)
}

/// Its index first: without it git does not see the rest, which may go piece by piece.
fn remove_pack(pack: &Path) -> Result<(), CheckpointError> {
    ["idx", "rev", "bitmap", "mtimes", "keep", "promisor", "pack"]
        .iter()
        .try_for_each(|extension| files::remove_file(&pack.with_extension(extension)))
}

impl Pack {
    /// By its index, if it is one of those that git writes today: eight bytes of header, 256 counts up to each first byte, then the names.
    fn open(path: PathBuf, needed: &HashSet<Name>) -> io::Result<Self> {
        const HEADER: [u8; 8] = *b"\xfftOc\0\0\0\x02";
        let about = path.metadata()?;
        let mut index = BufReader::with_capacity(1 << 16, fs::File::open(path.with_extension("idx"))?);
        let (mut header, mut counts) = ([0; 8], [0; 1024]);
        index.read_exact(&mut header)?;
        if header != HEADER {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no index of a pack that this version reads"));
        }
        index.read_exact(&mut counts)?;
        let [.., a, b, c, d] = counts;
        let objects = u32::from_be_bytes([a, b, c, d]) as usize;
        let mut pack = Pack { path, size: about.len(), is_shared: about.nlink() > 1, objects, needed: Vec::new() };
        let mut name = Name::default();
        for _ in 0..objects {
            index.read_exact(&mut name)?;
            if needed.contains(&name) {
                pack.needed.push(name);
            }
        }
        Ok(pack)
    }
}
