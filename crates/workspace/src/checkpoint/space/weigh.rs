//! Which snapshots go, and what that gives back.

use std::collections::{HashMap, HashSet};

use tolka_facts::Time;

use super::{Git, Halt, IsNeeded, Policy, Snapshot};
use crate::checkpoint::CheckpointError;

/// A store that was too large is brought down to this part of what it may have, in percent: the next save should not
/// make it too large again.
const TARGET: u64 = 80;

/// Where in `snapshots` those are that are too old.
pub(super) fn too_old(snapshots: &[Snapshot], oldest: Time, is_needed: IsNeeded<'_>) -> Vec<usize> {
    let may_go = |at: &usize| snapshots[*at].taken < oldest && !is_needed(&snapshots[*at]);
    (0..snapshots.len()).filter(may_go).collect()
}

/// Where those are, besides the `chosen`, that are too much for a store of `bytes`: the oldest first, and one at least if
/// any may go.
pub(super) async fn too_much(
    git: &Git,
    snapshots: &[Snapshot],
    chosen: &[usize],
    bytes: u64,
    policy: &Policy,
    is_needed: IsNeeded<'_>,
    halt: &Halt,
) -> Result<Vec<usize>, CheckpointError> {
    if bytes <= policy.most_bytes {
        return Ok(Vec::new());
    }
    let chosen: HashSet<usize> = chosen.iter().copied().collect();
    let others = (0..snapshots.len()).filter(|at| !chosen.contains(at));
    let (mut order, mut rest): (Vec<usize>, Vec<usize>) = others.partition(|at| is_needed(&snapshots[*at]));
    let needed = order.len();
    // The latest first: each weighs what no later one has.
    rest.reverse();
    order.extend(rest);
    let weights = weights(git, snapshots, &order, halt).await?;
    let all: u64 = weights.iter().sum();
    // The disk takes more than git says, for blocks that are not full; by how much is known when all is weighed.
    let fitting = u128::from(all) * u128::from(policy.most_bytes) * u128::from(TARGET) / 100 / u128::from(bytes.max(1));
    let mut sum = 0_u128;
    let fits = |weight: &&u64| {
        sum += u128::from(**weight);
        sum <= fitting
    };
    let kept = weights.iter().take_while(fits).count().max(needed).min(order.len().saturating_sub(1).max(needed));
    Ok(order.split_off(kept))
}

/// What only the `chosen` hold, about, of a store of `bytes`.
pub(super) async fn only_of(
    git: &Git,
    snapshots: &[Snapshot],
    chosen: &[usize],
    bytes: u64,
    halt: &Halt,
) -> Result<u64, CheckpointError> {
    if chosen.is_empty() {
        return Ok(0);
    }
    let gone: HashSet<usize> = chosen.iter().copied().collect();
    let mut order: Vec<usize> = (0..snapshots.len()).filter(|at| !gone.contains(at)).collect();
    let kept = order.len();
    order.extend(chosen);
    let weights = weights(git, snapshots, &order, halt).await?;
    let (all, going): (u64, u64) = (weights.iter().sum(), weights[kept..].iter().sum());
    let share = u128::from(going) * u128::from(bytes) / u128::from(all.max(1));
    Ok(u64::try_from(share).unwrap_or(u64::MAX))
}

/// For each in this order what it holds that none before it does.
async fn weights(git: &Git, snapshots: &[Snapshot], order: &[usize], halt: &Halt) -> Result<Vec<u64>, CheckpointError> {
    if order.is_empty() {
        return Ok(Vec::new());
    }
    let commits = order.iter().map(|at| snapshots[*at].commit.as_str()).collect::<Vec<_>>();
    let args = ["rev-list", "--objects", "--no-object-names", "--in-commit-order", "--no-walk=unsorted", "--stdin"];
    let objects = git.run(&args, (commits.join("\n") + "\n").as_bytes(), halt).await?;
    let sized = sizes(git, &objects.out, halt).await?;
    // A commit stands before what is its own. One that two sessions have weighs once.
    let mut places = HashMap::new();
    for (at, commit) in commits.iter().enumerate() {
        places.entry(*commit).or_insert(at);
    }
    let (mut weights, mut at) = (vec![0; order.len()], 0);
    for (name, size) in sized {
        at = places.get(name.as_str()).copied().unwrap_or(at);
        weights[at] += size;
    }
    Ok(weights)
}

/// What each of these objects takes, in the order of their names' lines.
pub(super) async fn sizes(git: &Git, names: &[u8], halt: &Halt) -> Result<Vec<(String, u64)>, CheckpointError> {
    let format = "--batch-check=%(objectname) %(objectsize:disk)";
    let listed = git.run(&["cat-file", "--buffer", format], names, halt).await?;
    let text = String::from_utf8_lossy(&listed.out).into_owned();
    let sized = text.lines().filter_map(|line| line.split_once(' '));
    Ok(sized.filter_map(|(name, size)| Some((name.to_owned(), size.parse().ok()?))).collect())
}
