//! The file in which git keeps what it knows of a work tree, as far as a seed needs it.
//!
//! What stands in it of a file is a belief from the past. It is read here into [`Known`]s, which say what was
//! believed, and written anew with what was found to be true: nothing else of the person's index gets into ours.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Of a file's state as git remembers it: change time, modification time, device, inode, mode, owner, group and size.
const STAT: usize = 40;
const NAME: usize = 20;
const FIXED: usize = STAT + NAME + 2;

const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;

const MODULE: u32 = 0o160_000;

const EMPTY: [u8; NAME] = [
    0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4, 0x8c, 0x53,
    0x91,
];

/// Larger than any that people have.
const LARGEST: u64 = 1 << 30;

/// Whoever works in a folder may put anything in the place of an index: what is no plain file is not opened, and nobody
/// waits for it.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if found.is_file() && found.len() <= LARGEST { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Of one that was opened, however it grows meanwhile.
pub(crate) fn content(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A path that an index knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    /// `None`: nothing that it says of the file is to be relied upon.
    pub(super) belief: Option<Belief>,
}

/// What a file was when git last read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Belief {
    /// In seconds and their billionths.
    pub(super) changed: (u32, u32),
    pub(super) modified: (u32, u32),
    pub(super) inode: u32,
    pub(super) size: u32,
    pub(super) object: [u8; NAME],
    stat: [u8; STAT],
}

/// An entry of an index, as it stands there.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) path: &'a [u8],
    pub(super) mode: u32,
    /// When the file was changed last, in seconds, and be it in its mode alone. `None`: git does not rely on it.
    pub(super) changed: Option<u32>,
    fixed: &'a [u8],
}

impl Entry<'_> {
    fn is_content(&self) -> bool {
        matches!(self.mode, 0o100_644 | 0o100_755 | 0o120_000)
    }

    fn is_plain(&self) -> bool {
        let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git");
        self.path.split(|byte| *byte == b'/').all(is_plain)
    }

    fn known(&self) -> Option<Known> {
        let belief = if self.changed.is_some() { Some(belief(self.fixed)?) } else { None };
        Some(Known { path: self.path.to_owned(), mode: self.mode, belief })
    }
}

/// All files and links that an index knows, in its order. `None`: it is damaged, or of a kind that is not understood.
pub(super) fn parse(bytes: &[u8]) -> Option<Vec<Known>> {
    let mut all = Vec::new();
    each(bytes, |entry| {
        all.push(entry.known()?);
        Some(())
    })?;
    Some(all)
}

/// Shows every file and link that an index knows, in its order. `None`: as for [`parse`], and what was shown may be wrong.
pub(super) fn each(bytes: &[u8], mut show: impl FnMut(&Entry<'_>) -> Option<()>) -> Option<()> {
    let mut shown: Vec<u8> = Vec::new();
    walk(bytes, |entry| {
        if entry.is_content() && entry.path != shown {
            show(entry)?;
            shown.clear();
            shown.extend(entry.path);
        }
        Some(())
    })
}

/// Whether an index knows of modules, into which git looks by another git. `None`: as for [`parse`].
pub(crate) fn has_modules(bytes: &[u8]) -> Option<bool> {
    let mut has = false;
    walk(bytes, |entry| {
        has |= entry.mode == MODULE;
        Some(())
    })?;
    Some(has)
}

fn walk(bytes: &[u8], mut see: impl FnMut(&Entry<'_>) -> Option<()>) -> Option<()> {
    let header = bytes.get(..12)?;
    let version = number(header, 4)?;
    if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let (mut path, mut before): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    for _ in 0..number(header, 8)? {
        std::mem::swap(&mut path, &mut before);
        let (fixed, is_sure, next) = entry(bytes, at, version, &before, &mut path)?;
        at = next;
        let changed = if is_sure { Some(number(fixed, 0)?) } else { None };
        let entry = Entry { path: &path, mode: number(fixed, 24)?, changed, fixed };
        // The sides of a conflict have one path.
        let is_next = path > before || (path == before && !is_sure);
        if !is_next || !entry.is_plain() {
            return None;
        }
        see(&entry)?;
    }
    is_understood(bytes, at).then_some(())
}

/// What is fixed of an entry, whether git relies on it, and where the next begins. Its path goes into `path`.
fn entry<'a>(
    bytes: &'a [u8],
    start: usize,
    version: u32,
    before: &[u8],
    path: &mut Vec<u8>,
) -> Option<(&'a [u8], bool, usize)> {
    let fixed = bytes.get(start..start + FIXED)?;
    let flags = u16::from_be_bytes([fixed[FIXED - 2], fixed[FIXED - 1]]);
    let mut at = start + FIXED + if flags & EXTENDED == 0 { 0 } else { 2 };
    path.clear();
    if version == 4 {
        let (cut, next) = varint(bytes, at)?;
        at = next;
        path.extend(before.get(..before.len().checked_sub(cut)?)?);
    }
    let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
    path.extend(&bytes[at..at + length]);
    if flags & LENGTH != LENGTH && usize::from(flags & LENGTH) != path.len() {
        return None;
    }
    at += length;
    // At least one zero, and up to a multiple of eight.
    at = if version == 4 { at + 1 } else { start + (at - start) / 8 * 8 + 8 };
    Some((fixed, flags & (ASSUMED | EXTENDED | STAGE) == 0, at))
}

fn belief(fixed: &[u8]) -> Option<Belief> {
    Some(Belief {
        changed: (number(fixed, 0)?, number(fixed, 4)?),
        modified: (number(fixed, 8)?, number(fixed, 12)?),
        inode: number(fixed, 20)?,
        size: number(fixed, 36)?,
        object: fixed.get(STAT..STAT + NAME)?.try_into().ok()?,
        stat: fixed.get(..STAT)?.try_into().ok()?,
    })
}

/// Whether what follows the entries is whole and may be ignored.
fn is_understood(bytes: &[u8], mut at: usize) -> bool {
    let Some(end) = bytes.len().checked_sub(NAME) else { return false };
    while at < end {
        let (Some(name), Some(length)) = (bytes.get(at..at + 4), number(bytes, at + 4)) else { return false };
        // Those in small letters change the meaning of the entries. Of them a folder that stands for its files is
        // no content; an index that is split over two files is not all there is.
        if !name[0].is_ascii_uppercase() && name != b"sdir" {
            return false;
        }
        at = at.saturating_add(8).saturating_add(length as usize);
    }
    at == end
}

/// Git's numbers of any length.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((value, at));
        }
        value += 1;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A whole index. Where there is no belief, git looks at the file as at a changed one.
pub(super) fn encode(all: &[Known]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(all.len()).unwrap_or(u32::MAX).to_be_bytes());
    for known in all {
        let start = bytes.len();
        let mut stat = known.belief.as_ref().map_or([0; STAT], |belief| belief.stat);
        stat[24..28].copy_from_slice(&known.mode.to_be_bytes());
        bytes.extend(stat);
        bytes.extend(known.belief.as_ref().map_or(EMPTY, |belief| belief.object));
        bytes.extend(u16::try_from(known.path.len()).map_or(LENGTH, |length| length.min(LENGTH)).to_be_bytes());
        bytes.extend(&known.path);
        let length = (bytes.len() - start) / 8 * 8 + 8;
        bytes.resize(start + length, 0);
    }
    // In the place of a checksum: git takes zeros for one that nobody reckoned.
    bytes.extend([0; NAME]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_file_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [endless, pipe, plain] = ["endless", "pipe", "plain"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::fs::write(&plain, "index").unwrap();
        assert!(open(&endless).is_err() && open(&pipe).is_err());
        assert_eq!(content(open(&plain).unwrap()).unwrap(), b"index");
    }
}
