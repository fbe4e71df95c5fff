//! How much git takes in at once.
//!
//! Git writes its index, and puts new objects in their places, when it is done with all that it was given:
//! killed before, it has kept nothing. So it is given what fits well into a budget. Each batch that is done
//! stays done, and a workspace which is too large for one budget gets there with the next ones.

/// Every batch writes the whole index, so there should not be many.
const PATHS: usize = 5_000;

/// A second of work for a busy machine: what is lost at the end of a budget is at most this.
const BYTES: u64 = 16 << 20;

/// A file or link that the index must learn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    pub(super) path: Vec<u8>,
    /// When it was listed.
    pub(super) size: u64,
}

/// All of them in their order. One that is larger than a batch is a batch of its own.
pub(super) fn batches(mut left: &[Present]) -> impl Iterator<Item = &[Present]> {
    std::iter::from_fn(move || {
        let (batch, rest) = left.split_at(first(left));
        left = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

/// How many are in the first batch.
fn first(left: &[Present]) -> usize {
    let mut bytes = 0_u64;
    let fits = |present: &&Present| {
        bytes = bytes.saturating_add(present.size);
        bytes <= BYTES
    };
    let fitting = left.iter().take(PATHS).take_while(fits).count();
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
    fn a_batch_ends_with_its_paths_or_its_bytes() {
        assert_eq!(counts(&[]), [0_usize; 0]);
        assert_eq!(counts(&[0; 2 * PATHS + 1]), [PATHS, PATHS, 1]);
        assert_eq!(counts(&[BYTES / 2, BYTES / 2, 1]), [2, 1]);
        assert_eq!(counts(&[1, BYTES, 1]), [1, 1, 1]);
        assert_eq!(counts(&[1, BYTES + 1, u64::MAX, 1, 1]), [1, 1, 1, 2]);
    }

    proptest! {
        #[test]
        fn batches_are_all_there_is_and_each_as_large_as_it_may_be(
            sizes in prop::collection::vec(prop_oneof![0..BYTES / 4, 0..BYTES * 2], 0..40),
        ) {
            let all = present(&sizes);
            let cut = batches(&all).collect::<Vec<_>>();
            prop_assert_eq!(&cut.concat(), &all);
            let bytes = |batch: &[Present]| batch.iter().map(|present| present.size).sum::<u64>();
            prop_assert!(cut.iter().all(|batch| batch.len() == 1 || bytes(batch) <= BYTES));
            prop_assert!(cut.windows(2).all(|pair| bytes(pair[0]) + pair[1][0].size > BYTES));
        }
    }
}
