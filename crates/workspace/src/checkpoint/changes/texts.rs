//! What changed files held, as far as anybody would read it.

use std::collections::HashMap;

use super::raw::Difference;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::contents::objects;
use crate::checkpoint::git::{Git, Halt};
use crate::limits;

#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) before: Option<Vec<u8>>,
    pub(super) after: Option<Vec<u8>>,
    /// One side is more than anybody reads, or all together are.
    pub(super) is_too_large: bool,
}

/// In the same order.
pub(super) async fn of(git: &Git, differences: &[Difference], halt: &Halt) -> Result<Vec<Texts>, CheckpointError> {
    let sizes = sizes(git, differences, halt).await?;
    let mut left = limits::TOGETHER as u64;
    let mut fits = Vec::with_capacity(differences.len());
    for difference in differences {
        let size = |side: &Option<_>| {
            side.as_ref().map_or(0, |entry: &super::Entry| sizes.get(&entry.blob).copied().unwrap_or(u64::MAX))
        };
        let (before, after) = (size(&difference.was), size(&difference.is));
        let is_fit = before <= limits::KEPT && after <= limits::KEPT && before + after <= left;
        left -= if is_fit { before + after } else { 0 };
        fits.push(is_fit);
    }
    let wanted = differences.iter().zip(&fits).filter(|(difference, is_fit)| **is_fit && !difference.lines.is_binary);
    let names: Vec<&str> = wanted.flat_map(|(difference, _)| blobs(difference)).collect();
    let mut contents = objects(git, &names, halt).await?.into_iter();
    let texts = differences.iter().zip(fits).map(|(difference, is_fit)| match is_fit && !difference.lines.is_binary {
        true => Texts {
            before: difference.was.as_ref().and_then(|_| contents.next()),
            after: difference.is.as_ref().and_then(|_| contents.next()),
            is_too_large: false,
        },
        false => Texts { is_too_large: !is_fit, ..Texts::default() },
    });
    Ok(texts.collect())
}

fn blobs(difference: &Difference) -> impl Iterator<Item = &str> {
    [&difference.was, &difference.is].into_iter().flatten().map(|entry| entry.blob.as_str())
}

async fn sizes(git: &Git, differences: &[Difference], halt: &Halt) -> Result<HashMap<String, u64>, CheckpointError> {
    let names: String = differences.iter().flat_map(blobs).map(|name| format!("{name}\n")).collect();
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let args = ["cat-file", "--batch-check=%(objectname) %(objectsize)"];
    let told = git.run(&args, names.as_bytes(), halt).await?;
    let told = String::from_utf8_lossy(&told.out).into_owned();
    let size = |line: &str| line.split_once(' ').and_then(|(name, size)| Some((name.to_owned(), size.parse().ok()?)));
    Ok(told.lines().filter_map(size).collect())
}
