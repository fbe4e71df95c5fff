//! How much git takes in at once.
//!
//! Git writes its index, and puts new objects in their places, when it is done with all that it was given:
//! killed before, it has kept nothing. So it is given what fits well into a budget. Each batch that is done
//! stays done, and a workspace which is too large for one budget gets there with the next ones.

/// The first one is done in no time, whatever the budget; each is larger than the one before by so much. Every batch writes
/// the whole index, so there should not be many.
const FIRST: Extent = Extent { paths: 50, bytes: 256 << 10 };
const GROWTH: u32 = 4;

/// A second of work for a busy machine: what is lost at the end of a budget is at most this.
const MOST: Extent = Extent { paths: 5_000, bytes: 16 << 20 };

/// What a batch may have.
#[derive(Debug, Clone, Copy)]
struct Extent {
    paths: usize,
    bytes: u64,
}

impl Extent {
    fn next(self) -> Self {
        let paths = self.paths.saturating_mul(GROWTH as usize).min(MOST.paths);
        Extent { paths, bytes: self.bytes.saturating_mul(GROWTH.into()).min(MOST.bytes) }
    }
}

/// A file or link that the index must learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) path: Vec<u8>,
    /// When it was listed.
    pub(super) size: u64,
}

/// All of them in their order. One that is larger than a batch is a batch of its own.
pub(super) fn batches(mut left: &[Present]) -> impl Iterator<Item = &[Present]> {
    let mut extent = FIRST;
    std::iter::from_fn(move || {
        let (batch, rest) = left.split_at(first(left, extent));
        (left, extent) = (rest, extent.next());
        (!batch.is_empty()).then_some(batch)
    })
}

/// How many are in the first batch.
fn first(left: &[Present], most: Extent) -> usize {
    let mut bytes = 0_u64;
    let fits = |present: &&Present| {
        bytes = bytes.saturating_add(present.size);
        bytes <= most.bytes
    };
    let fitting = left.iter().take(most.paths).take_while(fits).count();
    fitting.max(1).min(left.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn present(sizes: &[u64]) -> Vec<Present> {
        let numbered = sizes.iter().enumerate();
        numbered.map(|(n, size)| Present { path: n.to_string().into_bytes(), size: *size }).collect()
    }

    fn counts(sizes: &[u64]) -> Vec<usize> {
        batches(&present(sizes)).map(<[Present]>::len).collect()
    }

    #[test]
    fn batches_begin_small_and_end_with_their_paths_or_their_bytes() {
        assert_eq!(counts(&[]), [0_usize; 0]);
        assert_eq!(counts(&[0; 12_000]), [50, 200, 800, 3_200, 5_000, 2_750]);
        assert_eq!(counts(&[FIRST.bytes / 2, FIRST.bytes / 2, 1]), [2, 1]);
        assert_eq!(counts(&[1, FIRST.bytes, 1]), [1, 2]);
        assert_eq!(counts(&[1, MOST.bytes + 1, u64::MAX, 1, 1]), [1, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn batches_are_all_there_is_and_each_as_large_as_it_may_be(
            sizes in prop::collection::vec(prop_oneof![0..FIRST.bytes, 0..MOST.bytes * 2], 0..40),
        ) {
            let all = present(&sizes);
            let cut = batches(&all).collect::<Vec<_>>();
            prop_assert_eq!(&cut.concat(), &all);
            let bytes = |batch: &[Present]| batch.iter().map(|present| present.size).sum::<u64>();
            let mut extent = FIRST;
            for (at, batch) in cut.iter().enumerate() {
                prop_assert!(batch.len() == 1 || bytes(batch) <= extent.bytes);
                let next = cut.get(at + 1).map_or(u64::MAX, |next| next[0].size);
                prop_assert!(bytes(batch).saturating_add(next) > extent.bytes);
                extent = extent.next();
            }
        }
    }
}
