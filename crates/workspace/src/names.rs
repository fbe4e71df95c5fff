//! Names of files in words. A name may be any bytes, and facts, JSON and lines of text take only some.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path as facts and answers have it: as it is if it is text, else quoted. [`meant`] gives it back exactly.
pub fn told(path: &Path) -> String {
    match path.to_str().filter(|text| !text.starts_with('"')) {
        Some(text) => text.to_owned(),
        None => quoted(path),
    }
}

/// The path that was told.
pub fn meant(told: &str) -> PathBuf {
    unquoted(told).map_or_else(|| PathBuf::from(told), |bytes| PathBuf::from(OsString::from_vec(bytes)))
}

/// A path as it is shown in lines: as it is, or quoted as git does where it holds what no line of text can. What is quoted
/// is the name of no other file.
pub fn shown(path: &Path) -> String {
    let is_plain = |text: &&str| !text.starts_with('"') && !text.chars().any(steers);
    path.to_str().filter(is_plain).map_or_else(|| quoted(path), str::to_owned)
}

/// Whether a letter begins a line, turns the order of others, or speaks to a terminal: a name could pass for another.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn quoted(path: &Path) -> String {
    let mut out = "\"".to_owned();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' | '"' => out.extend(['\\', c]),
                c if steers(c) => out.extend(c.escape_default()),
                c => out.push(c),
            }
        }
        out.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

/// `None` for what nobody quoted.
fn unquoted(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let letter = match c {
            '"' => return None,
            '\\' => rest.chars().next()?,
            c => {
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\\' | '"' => bytes.push(letter as u8),
            't' => bytes.push(b'\t'),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            'x' => {
                bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
                rest = &rest[2..];
            }
            'u' => {
                let (digits, after) = rest.strip_prefix('{')?.split_once('}')?;
                let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_is_meant_as_it_was_told(bytes in prop::collection::vec(any::<u8>(), 0..20), head in "[\"\\\\a]{0,3}") {
            let bytes = [head.as_bytes(), &bytes].concat();
            let path = Path::new(OsStr::from_bytes(&bytes));
            prop_assert_eq!(meant(&told(path)), path);
            prop_assert_eq!(meant(&shown(path)), path);
        }
    }

    #[test]
    fn text_is_told_as_it_is() {
        for (path, words) in [("a b/ä", "a b/ä"), ("two\nlines", "two\nlines"), ("\"x\"", "\"\\\"x\\\"\"")] {
            assert_eq!(told(Path::new(path)), words);
        }
        for (path, words) in [("two\nlines", "\"two\\nlines\""), ("a\u{202e}b", "\"a\\u{202e}b\""), ("ä b", "ä b")] {
            assert_eq!(shown(Path::new(path)), words);
        }
        for odd in ["\"", "\"a", "\"a\\q\"", "\"a\"b\"", "\"\\x4\""] {
            assert_eq!(meant(odd), Path::new(odd), "nobody told it so");
        }
    }
}
