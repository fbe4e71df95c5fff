//! Strings of JSON, written straight out. `serde_json` looks at each byte by itself; where a wire repeats a whole text,
//! that is most of what telling it costs.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Writes a string that is made of pieces, as `serde_json` would write it.
pub(crate) fn quoted<'a>(pieces: impl IntoIterator<Item = &'a str>, out: &mut Vec<u8>) {
    out.push(b'"');
    pieces.into_iter().for_each(|piece| escaped(piece.as_bytes(), out));
    out.push(b'"');
}

fn escaped(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = special(text) {
        out.extend_from_slice(&text[..at]);
        escape(text[at], out);
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

/// The first byte that cannot stand in a string as it is.
fn special(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = (below(word, 0x20) | equal(word, b'"') | equal(word, b'\\')) & HIGHS;
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    rest.iter().position(is_special).map(|at| words.len() * 8 + at)
}

/// The high bit of each byte that is less than `limit`, which is at most 128. A borrow may mark a byte behind the first
/// such one, never before it.
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word
}

fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            let digit = |value: u8| b"0123456789abcdef"[usize::from(value)];
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 0xf)]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pieces: &[&str]) {
        let mut out = Vec::new();
        quoted(pieces.iter().copied(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&pieces.concat()).unwrap());
    }

    #[test]
    fn every_byte_at_every_place_of_a_word() {
        for byte in 0..0x80_u8 {
            for at in 0..17 {
                let mut text = vec![b'x'; 17];
                text[at] = byte;
                // Beside a byte that is found, one that a borrow could reach.
                text[(at + 1) % 17] = 0x21;
                check(&[std::str::from_utf8(&text).unwrap()]);
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_is_what_serde_json_writes(pieces in prop::collection::vec(any::<String>(), 0..4)) {
            check(&pieces.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}
