//! A text of a change, where it is kept.

use std::borrow::Cow;

use tolka_facts::{BlobRef, Blobs, Body};

#[derive(Debug, PartialEq)]
pub(crate) enum Text<'a> {
    /// The file itself, which need not be text.
    Blob(&'a BlobRef),
    Body(&'a Body),
    /// Out of an input or an output that had to be read anyway.
    Read(String),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text::Read(String::new())
    }
}

/// No file is an empty one.
impl<'a> From<&'a Option<BlobRef>> for Text<'a> {
    fn from(side: &'a Option<BlobRef>) -> Self {
        side.as_ref().map_or_else(Text::default, Text::Blob)
    }
}

impl Text<'_> {
    /// In bytes, known without reading.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Text::Blob(blob) => blob.size,
            Text::Body(body) => body.len(),
            Text::Read(text) => text.len() as u64,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `None` if it is no text, or no longer kept.
    pub(crate) fn load(&self, blobs: &dyn Blobs) -> Option<Cow<'_, str>> {
        let stored = |blob: &BlobRef| String::from_utf8(blobs.blob(&blob.hash)?).ok().map(Cow::Owned);
        match self {
            Text::Body(Body::Inline(text)) => Some(Cow::Borrowed(text)),
            Text::Read(text) => Some(Cow::Borrowed(text)),
            Text::Body(Body::Blob { blob, .. }) => stored(blob),
            Text::Blob(blob) => stored(blob),
        }
    }
}
