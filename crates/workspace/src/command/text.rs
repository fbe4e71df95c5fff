//! Bytes of a pipe as text: a character that was cut in two by the reading stays whole, and bytes that are no
//! characters are shown as U+FFFD.

#[derive(Debug, Default)]
pub(super) struct Repair {
    /// The beginning of a character whose rest has not come: at most three bytes.
    cut: Vec<u8>,
}

impl Repair {
    pub(super) fn piece(&mut self, bytes: &[u8]) -> String {
        self.cut.extend_from_slice(bytes);
        let whole = self.cut.len() - unfinished(&self.cut);
        let piece = String::from_utf8_lossy(&self.cut[..whole]).into_owned();
        self.cut.drain(..whole);
        piece
    }

    /// After the last piece: what was cut there has no rest.
    pub(super) fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.cut)).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for from in 0..tail.len() {
        match std::str::from_utf8(&tail[from..]) {
            Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return tail.len() - from,
            _ => {}
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], cuts: &[usize]) -> String {
        let mut repair = Repair::default();
        let (mut text, mut from) = (String::new(), 0);
        let mut cuts = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect::<Vec<_>>();
        cuts.sort_unstable();
        for cut in cuts {
            text += &repair.piece(&bytes[from..cut]);
            from = cut;
        }
        text + &repair.piece(&bytes[from..]) + &repair.rest()
    }

    #[test]
    fn a_cut_character_stays_whole_and_a_broken_one_is_shown() {
        assert_eq!(all("a€😀".as_bytes(), &[2, 5, 6, 7]), "a€😀");
        assert_eq!(all(b"a\xffb\xe2\x82", &[1]), "a\u{fffd}b\u{fffd}");
    }

    proptest! {
        #[test]
        fn where_it_is_cut_makes_no_difference(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xe2), Just(0x82), Just(0xac), Just(0xf0)], 0..40),
            cuts in prop::collection::vec(any::<usize>(), 0..12),
        ) {
            prop_assert_eq!(all(&bytes, &cuts), String::from_utf8_lossy(&bytes));
        }
    }
}
