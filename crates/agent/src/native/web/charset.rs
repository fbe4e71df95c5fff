//! Bytes as text, in the encoding that they are in: as a byte order mark says, else the server, else the page itself. Where
//! nobody knows it, UTF-8 if that fits, and else what the web of old was written in.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Pages tell their encoding within so many bytes.
const HEAD: usize = 1024;

/// Text, and what it was read as.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::native) struct Decoded {
    pub(in crate::native) text: String,
    pub(in crate::native) encoding: &'static str,
    /// Some of it is no letter of that encoding.
    pub(in crate::native) is_broken: bool,
}

pub(in crate::native) fn decoded(bytes: &[u8], told: Option<&str>) -> Decoded {
    let named = told.and_then(|name| Encoding::for_label(name.as_bytes()));
    let usual = || if is_utf8(bytes) { UTF_8 } else { WINDOWS_1252 };
    let encoding = named.or_else(|| by_page(bytes)).unwrap_or_else(usual);
    // A byte order mark wins over all that is said elsewhere.
    let (text, encoding, is_broken) = encoding.decode(bytes);
    Decoded { text: text.into_owned(), encoding: encoding.name(), is_broken }
}

/// The last letter may be cut in two.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// `<meta charset=…>`, `<meta … content="…; charset=…">` or `<?xml … encoding="…"?>`.
fn by_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]).to_ascii_lowercase();
    let meta = || head.match_indices("<meta").find_map(|(at, _)| after(tag(&head[at..]), "charset"));
    let xml = || head.trim_start().strip_prefix("<?xml").and_then(|rest| after(tag(rest), "encoding"));
    let encoding = xml().or_else(meta).and_then(|name| Encoding::for_label(name.as_bytes()))?;
    // It could be read as letters of one byte, so it is not of two.
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

fn tag(text: &str) -> &str {
    text.split('>').next().unwrap_or_default()
}

fn after<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(name)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end =
        value.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '?')).unwrap_or(value.len());
    Some(&value[..end]).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_what_it_is() {
        let cases: [(&[u8], Option<&str>, &str, &str); 11] = [
            (b"gr\xc3\xbcn", None, "grün", "UTF-8"),
            (b"gr\xfcn", None, "grün", "windows-1252"),
            (b"gr\xfcn", Some("ISO-8859-1"), "grün", "windows-1252"),
            (b"gr\xc3\xbcn", Some("no-such-thing"), "grün", "UTF-8"),
            (b"\xef\xbb\xbfgr\xc3\xbcn", Some("latin1"), "grün", "UTF-8"),
            (b"\xff\xfeg\0r\0", Some("utf-8"), "gr", "UTF-16LE"),
            (b"<meta charset=koi8-r>\xd0", None, "<meta charset=koi8-r>п", "KOI8-R"),
            (b"<META http-equiv=x CONTENT='text/html; charset=shift_jis'>", None, "", "Shift_JIS"),
            (b"<?xml version='1.0' encoding='ISO-8859-2'?>\xb1", None, "", "ISO-8859-2"),
            (b"<meta charset=utf-16>gr\xc3\xbcn", None, "<meta charset=utf-16>grün", "UTF-8"),
            (b"a\xe2\x82", None, "a\u{fffd}", "UTF-8"),
        ];
        for (bytes, told, text, encoding) in cases {
            let read = decoded(bytes, told);
            assert_eq!(read.encoding, encoding, "{bytes:?}");
            assert!(text.is_empty() || read.text == text, "{read:?}");
        }
        assert!(
            decoded(b"gr\xfcn", Some("utf-8")).is_broken,
            "what the server says is believed, and what is wrong is said"
        );
    }
}
