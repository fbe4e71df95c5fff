//! Git's own words for what differs.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use tolka_facts::event::FileOperation;

use crate::checkpoint::git::{Git, Halt, Output};
use crate::checkpoint::modes::{Mode, Modes};
use crate::checkpoint::{CheckpointError, Span};

/// For the kernel's limit on arguments, which is far higher.
const ARGUMENTS: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum Kind {
    File,
    Program,
    Link,
}

/// What a path is in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::checkpoint) struct Entry {
    pub(in crate::checkpoint) kind: Kind,
    /// The name of its content.
    pub(in crate::checkpoint) blob: String,
    pub(in crate::checkpoint) mode: Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::checkpoint) struct Lines {
    pub(in crate::checkpoint) added: u64,
    pub(in crate::checkpoint) removed: u64,
    pub(in crate::checkpoint) is_binary: bool,
}

/// A path that is not the same in two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::checkpoint) struct Difference {
    pub(in crate::checkpoint) path: PathBuf,
    /// `None`: it was not there.
    pub(in crate::checkpoint) was: Option<Entry>,
    pub(in crate::checkpoint) is: Option<Entry>,
    pub(in crate::checkpoint) lines: Lines,
}

impl Difference {
    pub(in crate::checkpoint) fn operation(&self) -> FileOperation {
        match (&self.was, &self.is) {
            (None, _) => FileOperation::Create,
            (_, None) => FileOperation::Delete,
            (Some(_), Some(_)) => FileOperation::Update,
        }
    }
}

/// What differs, in the order of paths, with its lines. Of `paths` alone, if they are few; the caller still has to sort
/// out what lies beneath them.
pub(in crate::checkpoint) async fn between(
    git: &Git,
    from: &str,
    to: &str,
    paths: &[PathBuf],
    halt: &Halt,
) -> Result<Vec<Difference>, CheckpointError> {
    let mut args: Vec<OsString> = ["diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--full-index"]
        .into_iter()
        .chain([from, to, "--"])
        .map(OsString::from)
        .collect();
    // To git one that leads out is an error.
    let is_plain = |path: &PathBuf| {
        !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
    };
    let bytes: usize = paths.iter().map(|path| path.as_os_str().len() + 1).sum();
    if bytes <= ARGUMENTS && paths.iter().all(is_plain) {
        args.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    }
    let commits = [from, to];
    let (output, modes) = tokio::join!(git.run(&args, b"", halt), Modes::of(git, &commits, halt));
    let (output, modes) = match (output, modes) {
        (Err(error), _) | (_, Err(error)) => return Err(known(git, &commits, error, halt).await),
        (Ok(output), Ok(modes)) => (output, modes),
    };
    let mut differences = parse(&output)?.pop().unwrap_or_default();
    let lines = lines(&output);
    for difference in &mut differences {
        difference.lines = lines.get(difference.path.as_os_str()).copied().unwrap_or_default();
    }
    let [before, after] = modes.as_slice() else { return Err(unread()) };
    let found = of_mode(&mut differences, before, after);
    let paths: Vec<PathBuf> = found.iter().map(|difference| difference.path.clone()).collect();
    let names = entries(git, to, &paths, halt).await?;
    for mut difference in found {
        // One that is only in the modes is in no tree: somebody's own.
        let Some(name) = names.get(&difference.path) else { continue };
        [&mut difference.was, &mut difference.is].into_iter().flatten().for_each(|entry| entry.blob.clone_from(name));
        differences.push(difference);
    }
    differences.sort_by(|a, b| a.path.as_os_str().as_bytes().cmp(b.path.as_os_str().as_bytes()));
    Ok(differences)
}

/// Says of all differences what their modes are, and gives those of which nothing else differs; these are without the
/// names of their contents.
fn of_mode(differences: &mut [Difference], before: &Modes, after: &Modes) -> Vec<Difference> {
    for Difference { path, was, is, .. } in &mut *differences {
        for (side, modes) in [(was, before), (is, after)] {
            side.iter_mut().filter(|entry| entry.kind != Kind::Link).for_each(|entry| entry.mode = modes.mode(path));
        }
    }
    let known: HashSet<&Path> = differences.iter().map(|difference| difference.path.as_path()).collect();
    let more = before.differing(after).filter(|path| !known.contains(path));
    more.map(|path| {
        let modes = [before, after].map(|modes| modes.mode(path));
        let is_program = modes.iter().any(|mode| matches!(mode, Mode::Odd(odd) if odd & 0o100 != 0));
        let kind = if is_program { Kind::Program } else { Kind::File };
        let [was, is] = modes.map(|mode| Some(Entry { kind, blob: String::new(), mode }));
        Difference { path: path.to_owned(), was, is, lines: Lines::default() }
    })
    .collect()
}

/// The names of what some files hold: those of `paths` that are there.
pub(super) async fn entries(
    git: &Git,
    commit: &str,
    paths: &[PathBuf],
    halt: &Halt,
) -> Result<HashMap<PathBuf, String>, CheckpointError> {
    let (mut names, mut from) = (HashMap::new(), 0);
    while from < paths.len() {
        let mut args: Vec<OsString> = ["ls-tree", "-z", "--full-tree", commit, "--"].map(OsString::from).into();
        let mut bytes = 0;
        let fit = paths[from..].iter().take_while(|path| {
            bytes += path.as_os_str().len() + 1;
            bytes <= ARGUMENTS
        });
        let to = from + fit.count().max(1);
        args.extend(paths[from..to].iter().map(|path| path.as_os_str().to_owned()));
        from = to;
        let output = git.run(&args, b"", halt).await?;
        names.extend(output.items().filter_map(listed).map(|(path, entry)| (path, entry.blob)));
    }
    Ok(names)
}

/// For each span what differs, without lines, by one git for all of them.
pub(in crate::checkpoint) async fn in_spans(
    git: &Git,
    spans: &[Span],
    halt: &Halt,
) -> Result<Vec<Vec<Difference>>, CheckpointError> {
    if spans.is_empty() {
        return Ok(Vec::new());
    }
    // A commit, and what to take for its parent.
    let lines: String = spans.iter().map(|span| format!("{} {}\n", span.to, span.from)).collect();
    let args = ["diff-tree", "--stdin", "--always", "-r", "-z", "--raw", "--no-renames", "--full-index"];
    let commits: Vec<&str> = spans.iter().flat_map(|span| [span.from.as_str(), &span.to]).collect();
    let (output, modes) = tokio::join!(git.run(&args, lines.as_bytes(), halt), Modes::of(git, &commits, halt));
    let (output, modes) = match (output, modes) {
        (Err(error), _) | (_, Err(error)) => return Err(known(git, &commits, error, halt).await),
        (Ok(output), Ok(modes)) => (output, modes),
    };
    let mut told = parse(&output)?;
    // What stands before the first name.
    told.remove(0);
    if told.len() != spans.len() {
        // What it does not know it repeats as it is, and goes on.
        return Err(known(git, &commits, unread(), halt).await);
    }
    for (differences, modes) in told.iter_mut().zip(modes.chunks_exact(2)) {
        let more = of_mode(differences, &modes[0], &modes[1]);
        differences.extend(more);
    }
    Ok(told)
}

/// The error for a person: whether it is the commits that nobody knows.
async fn known(git: &Git, commits: &[&str], error: CheckpointError, halt: &Halt) -> CheckpointError {
    if !matches!(error, CheckpointError::Git { .. }) {
        return error;
    }
    for commit in commits {
        if git.run(&["cat-file", "-e", &format!("{commit}^{{commit}}")], b"", halt).await.is_err() {
            return CheckpointError::Unknown { commit: (*commit).to_owned() };
        }
    }
    error
}

/// Differences in groups: each name of a commit begins another.
fn parse(output: &Output) -> Result<Vec<Vec<Difference>>, CheckpointError> {
    let mut groups = vec![Vec::new()];
    let mut items = output.items();
    while let Some(item) = items.next() {
        if let Some(about) = item.strip_prefix(b":") {
            let path = items.next().ok_or_else(unread)?;
            let difference = difference(about, path).ok_or_else(unread)?;
            if let Some(group) = groups.last_mut() {
                group.push(difference);
            }
        } else if !item.contains(&b'\t') {
            groups.push(Vec::new());
        }
    }
    Ok(groups)
}

/// `<mode> SP <mode> SP <blob> SP <blob> SP <letter>`
fn difference(about: &[u8], path: &[u8]) -> Option<Difference> {
    let mut words = std::str::from_utf8(about).ok()?.split(' ');
    let modes = (words.next()?, words.next()?);
    let (was, is) = (entry(modes.0, words.next()?)?, entry(modes.1, words.next()?)?);
    Some(Difference { path: PathBuf::from(OsStr::from_bytes(path)), was, is, lines: Lines::default() })
}

/// `None` is for a mode that no snapshot has.
fn entry(mode: &str, blob: &str) -> Option<Option<Entry>> {
    let kind = match mode {
        "000000" => return Some(None),
        "100644" => Kind::File,
        "100755" => Kind::Program,
        "120000" => Kind::Link,
        _ => return None,
    };
    Some(Some(Entry { kind, blob: blob.to_owned(), mode: Mode::default() }))
}

/// `<added> TAB <removed> TAB <path>`, with dashes for what is no text.
fn lines(output: &Output) -> HashMap<&OsStr, Lines> {
    let mut items = output.items();
    let mut lines = HashMap::new();
    while let Some(item) = items.next() {
        if item.starts_with(b":") {
            items.next();
            continue;
        }
        let mut parts = item.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let count = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
        let counted = match (count(added), count(removed)) {
            (Some(added), Some(removed)) => Lines { added, removed, is_binary: false },
            _ => Lines { is_binary: true, ..Lines::default() },
        };
        lines.insert(OsStr::from_bytes(path), counted);
    }
    lines
}

fn unread() -> CheckpointError {
    CheckpointError::Git { command: "diff-tree".to_owned(), words: "its answer makes no sense".to_owned() }
}

/// All files of a snapshot.
pub(in crate::checkpoint) async fn files(
    git: &Git,
    commit: &str,
    halt: &Halt,
) -> Result<Vec<(PathBuf, Entry)>, CheckpointError> {
    let output = git.run(&["ls-tree", "-r", "-z", "--full-tree", commit], b"", halt).await?;
    Ok(output.items().filter_map(listed).collect())
}

/// `<mode> SP <type> SP <blob> TAB <path>`
fn listed(item: &[u8]) -> Option<(PathBuf, Entry)> {
    let tab = item.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&item[..tab]).ok()?.split(' ');
    let (mode, _, blob) = (words.next()?, words.next()?, words.next()?);
    Some((Path::new(OsStr::from_bytes(&item[tab + 1..])).to_owned(), entry(mode, blob)??))
}
