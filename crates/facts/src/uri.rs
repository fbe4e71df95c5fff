use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// All but what stands for itself in every part of a URI, and the slashes of a path.
const IN_A_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A path, or a name without slashes, as it stands in a URI or in a header.
pub fn uri_path(path: &str) -> PercentEncode<'_> {
    utf8_percent_encode(path, IN_A_PATH)
}
