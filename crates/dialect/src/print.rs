//! A print of what a reader was told, by which a repetition is known. It has no seed and never changes: an encoder's state
//! must mean the same in every process and in every version.

const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Eight bytes at a time: what is told of a call may be long.
pub(crate) fn print(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last)).map(|word| u64::from_le_bytes(*word));
    // The length keeps a text apart from the same one with zeros behind it.
    words.fold(mixed(bytes.len() as u64), |print, word| mixed(print ^ word))
}

/// The low and the high half of the product: each bit of the one hangs on half of the others.
fn mixed(value: u64) -> u64 {
    let product = u128::from(value ^ SPREAD) * u128::from(SPREAD);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn it_is_the_same_for_ever() {
        let prints = [print(b""), print(b"a"), print(b"a longer text")];
        assert_eq!(prints, [15_074_728_693_083_421_371, 5_273_495_797_801_468_828, 16_938_968_713_942_212_133]);
    }

    #[test]
    fn texts_that_differ_little_have_prints_of_their_own() {
        let mut prints = HashSet::new();
        let mut told = 0;
        for length in 0..64 {
            let text = vec![0; length];
            for at in 0..length {
                for bit in 0..8 {
                    let mut other = text.clone();
                    other[at] ^= 1 << bit;
                    prints.insert(print(&other));
                    told += 1;
                }
            }
            prints.insert(print(&text));
            told += 1;
        }
        assert_eq!(prints.len(), told);
    }
}
