//! What files held when a snapshot was taken.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::CheckpointError;
use super::git::{Git, Halt};
use crate::limits;

/// For the kernel's limit on arguments, which is far higher.
const ARGUMENTS: usize = 64 << 10;

/// For each path what is in the snapshot, in the same order. `None`: no file is there, or one that is too large.
pub(super) async fn read(
    git: &Git,
    commit: &str,
    paths: &[&Path],
    halt: &Halt,
) -> Result<Vec<Option<Vec<u8>>>, CheckpointError> {
    let mut contents = vec![None; paths.len()];
    let mut wanted: Vec<(usize, String)> = Vec::new();
    let mut left = limits::TOGETHER;
    let mut from = 0;
    while from < paths.len() {
        let mut bytes = 0;
        let fit = paths[from..].iter().take_while(|path| {
            bytes += path.as_os_str().len() + 1;
            bytes <= ARGUMENTS
        });
        let to = from + fit.count().max(1);
        let found = blobs(git, commit, &paths[from..to], halt).await?;
        for (index, path) in paths[from..to].iter().enumerate() {
            if let Some(blob) = found
                .get(path.as_os_str().as_bytes())
                .filter(|blob| blob.size as u64 <= limits::KEPT && blob.size <= left)
            {
                left -= blob.size;
                wanted.push((from + index, blob.name.clone()));
            }
        }
        from = to;
    }
    let names: Vec<&str> = wanted.iter().map(|(_, name)| name.as_str()).collect();
    for ((index, _), content) in wanted.iter().zip(objects(git, &names, halt).await?) {
        contents[*index] = Some(content);
    }
    Ok(contents)
}

/// What objects hold, in their order. All of it is in memory.
pub(super) async fn objects(git: &Git, names: &[&str], halt: &Halt) -> Result<Vec<Vec<u8>>, CheckpointError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
    let output = git.run(&["cat-file", "--batch"], lines.as_bytes(), halt).await?;
    let mut rest = output.out.as_slice();
    let mut contents = Vec::with_capacity(names.len());
    for name in names {
        let missing = || CheckpointError::Git { command: "cat-file".to_owned(), words: format!("{name} is missing") };
        let (content, after) = object(rest).ok_or_else(missing)?;
        contents.push(content.to_owned());
        rest = after;
    }
    Ok(contents)
}

struct Blob {
    name: String,
    size: usize,
}

/// The files among some paths.
async fn blobs(
    git: &Git,
    commit: &str,
    paths: &[&Path],
    halt: &Halt,
) -> Result<HashMap<Vec<u8>, Blob>, CheckpointError> {
    // To git one that leads out is an error, and one with a slash at its end a folder's content. Neither names a file.
    let is_plain = |path: &&&Path| {
        let is_normal = path.components().all(|part| matches!(part, Component::Normal(_)));
        is_normal && !path.as_os_str().is_empty() && path.components().as_path().as_os_str() == path.as_os_str()
    };
    let paths = paths.iter().filter(is_plain).map(|path| path.as_os_str());
    let fixed = ["ls-tree", "-z", "-l", "--full-tree", commit, "--"].into_iter().map(OsStr::new);
    let args: Vec<&OsStr> = fixed.chain(paths).collect();
    if args.last() == Some(&OsStr::new("--")) {
        return Ok(HashMap::new());
    }
    let output = git.run(&args, b"", halt).await?;
    Ok(output.items().filter_map(blob).collect())
}

/// `<mode> SP blob SP <name> SP+ <size> TAB <path>`, of a file. A link has no content of its own.
fn blob(item: &[u8]) -> Option<(Vec<u8>, Blob)> {
    let tab = item.iter().position(|byte| *byte == b'\t')?;
    let mut about = std::str::from_utf8(&item[..tab]).ok()?.split_ascii_whitespace();
    let is_file = about.next()?.starts_with("100");
    let (_, name, size) = (about.next()?, about.next()?, about.next()?);
    let blob = Blob { name: name.to_owned(), size: size.parse().ok()? };
    is_file.then(|| (item[tab + 1..].to_owned(), blob))
}

/// `<name> SP blob SP <size> LF <content> LF`, and what follows.
fn object(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let size: usize = std::str::from_utf8(&bytes[..end]).ok()?.rsplit(' ').next()?.parse().ok()?;
    let content = bytes.get(end + 1..)?.get(..size)?;
    Some((content, bytes.get(end + 1 + size + 1..)?))
}
