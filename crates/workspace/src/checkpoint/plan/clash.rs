//! Files where folders must be, and folders where files must be.
//!
//! A path can be put back only if what stands in its way goes. Where that stays, the path stays as it is, too.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::path::Path;

use tolka_facts::event::KeptWhy;

use super::Verdict;
use crate::checkpoint::changes::Difference;

pub(super) fn settle<'a>(verdicts: &mut BTreeMap<&'a Path, Verdict>, differences: &'a [Difference]) {
    // What stands in a way is there now and not at the target, and so it is among the differences.
    let stays: HashSet<&Path> = differences
        .iter()
        .filter(|difference| difference.is.is_none() && verdicts.get(difference.path.as_path()) != Some(&Verdict::Goes))
        .map(|difference| difference.path.as_path())
        .collect();
    if stays.is_empty() {
        return;
    }
    for difference in differences.iter().filter(|difference| difference.was.is_none()) {
        let path = difference.path.as_path();
        let has_file_above = path.ancestors().skip(1).any(|folder| stays.contains(folder));
        if has_file_above || has_beneath(verdicts, &stays, path) {
            verdicts.entry(path).and_modify(|verdict| {
                if *verdict == Verdict::Goes {
                    *verdict = Verdict::Stays(KeptWhy::Conflict);
                }
            });
        }
    }
}

/// Whether something stays beneath the path. Paths are in the order of their parts, so all that is beneath one follows it.
fn has_beneath(verdicts: &BTreeMap<&Path, Verdict>, stays: &HashSet<&Path>, path: &Path) -> bool {
    let after = verdicts.range::<Path, _>((Bound::Excluded(path), Bound::Unbounded)).map(|(other, _)| *other);
    after.take_while(|other| other.starts_with(path)).any(|other| stays.contains(other))
}
