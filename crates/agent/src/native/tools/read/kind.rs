//! What is in a file, from its bytes: an ending says what somebody wished.

/// Pictures of more bytes no provider takes.
pub(in crate::native::tools) const PICTURE: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native::tools) enum Kind {
    Text,
    /// Text of another encoding, or a few broken letters.
    BrokenText,
    /// With its MIME type, one of those that models look at.
    Picture(&'static str),
    /// With words for it.
    Binary(&'static str),
}

const SIGNS: &[(&[u8], Kind)] = &[
    (b"\x89PNG\r\n\x1a\n", Kind::Picture("image/png")),
    (b"\xff\xd8\xff", Kind::Picture("image/jpeg")),
    (b"GIF87a", Kind::Picture("image/gif")),
    (b"GIF89a", Kind::Picture("image/gif")),
    (b"%PDF-", Kind::Binary("a PDF document")),
    (b"PK\x03\x04", Kind::Binary("a zip archive, or a document in one")),
    (b"\x1f\x8b", Kind::Binary("gzip")),
    (b"BZh", Kind::Binary("bzip2")),
    (b"\xfd7zXZ\0", Kind::Binary("xz")),
    (b"\x28\xb5\x2f\xfd", Kind::Binary("zstd")),
    (b"\x7fELF", Kind::Binary("a program or library")),
    (b"\xcf\xfa\xed\xfe", Kind::Binary("a program or library")),
    (b"\0asm", Kind::Binary("WebAssembly")),
    (b"SQLite format 3\0", Kind::Binary("an SQLite database")),
    (b"\xca\xfe\xba\xbe", Kind::Binary("a Java class")),
    (b"OggS", Kind::Binary("audio or video")),
    (b"ID3", Kind::Binary("audio")),
    (b"wOFF", Kind::Binary("a font")),
    (b"wOF2", Kind::Binary("a font")),
];

impl Kind {
    pub(in crate::native::tools) fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            return Kind::Picture("image/webp");
        }
        let is_text = std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
        let sign = SIGNS.iter().find(|(sign, _)| bytes.starts_with(sign)).map(|(_, kind)| *kind);
        match (is_text, sign) {
            (true, _) => Kind::Text,
            (false, Some(kind)) => kind,
            (false, None) if bytes.contains(&0) => Kind::Binary("of an unknown kind"),
            (false, None) => {
                let odd = bytes.iter().filter(|byte| matches!(byte, 1..=8 | 14..=26 | 28..=31 | 127)).count();
                match odd * 50 > bytes.len() {
                    true => Kind::Binary("of an unknown kind"),
                    false => Kind::BrokenText,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_its_bytes() {
        for (bytes, kind) in [
            (&b""[..], Kind::Text),
            (b"BZh is how it begins", Kind::Text),
            ("ö".as_bytes(), Kind::Text),
            (b"caf\xe9 au lait", Kind::BrokenText),
            (b"\x89PNG\r\n\x1a\n\0\0", Kind::Picture("image/png")),
            (b"RIFF\x01\0\0\0WEBPVP8 \xff", Kind::Picture("image/webp")),
            (b"a\0b", Kind::Binary("of an unknown kind")),
            (b"\x01\x02\xff\x03", Kind::Binary("of an unknown kind")),
        ] {
            assert_eq!(Kind::of(bytes), kind, "{bytes:?}");
        }
    }
}
