//! Text of any size. What is long stands in a blob that is named by its content; the fact holds its
//! head, so that a list can be drawn without reading the blob.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Longer values leave the fact and become a blob.
pub const INLINE_LIMIT: usize = 32 * 1024;
const HEAD: usize = 1024;

/// SHA-256 of the content, as lower-case hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(transparent)]
pub struct Hash(String);

impl Hash {
    pub fn of(content: &[u8]) -> Self {
        use fmt::Write;
        let digest = Sha256::digest(content);
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        Hash(hex)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hash {
    fn from(hex: String) -> Self {
        Hash(hex)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BlobRef {
    pub hash: Hash,
    pub size: u64,
}

/// Where blobs are read. They never change, so reading one is as pure as reading a fact.
pub trait Blobs {
    /// `None` when the blob is gone: its session was purged while somebody was still reading.
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>>;
}

/// For streams in which nothing is long.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn blob(&self, _: &Hash) -> Option<Vec<u8>> {
        None
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub enum Body {
    Inline(String),
    Blob {
        head: String,
        #[serde(flatten)]
        blob: BlobRef,
    },
}

impl Body {
    /// What can be shown without reading a blob.
    pub fn head(&self) -> &str {
        match self {
            Body::Inline(text) => text,
            Body::Blob { head, .. } => head,
        }
    }

    pub fn len(&self) -> u64 {
        match self {
            Body::Inline(text) => text.len() as u64,
            Body::Blob { blob, .. } => blob.size,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The whole text. Should its blob be gone, the head and a note that says so.
    pub fn text<'a>(&'a self, blobs: &dyn Blobs) -> Cow<'a, str> {
        match self {
            Body::Inline(text) => Cow::Borrowed(text),
            Body::Blob { head, blob } => match blobs.blob(&blob.hash).map(String::from_utf8) {
                Some(Ok(text)) => Cow::Owned(text),
                _ => Cow::Owned(format!("{head}\n[{} bytes are no longer kept]", blob.size)),
            },
        }
    }

    /// Moves a long text out to `put`, which must have made it durable when it returns.
    pub fn spill(&mut self, put: &mut dyn FnMut(&[u8])) {
        if let Body::Inline(text) = self
            && text.len() > INLINE_LIMIT
        {
            put(text.as_bytes());
            let blob = BlobRef { hash: Hash::of(text.as_bytes()), size: text.len() as u64 };
            *self = Body::Blob { head: text[..text.floor_char_boundary(HEAD)].to_owned(), blob };
        }
    }

    /// Takes a text that was moved out back in.
    pub fn fill(&mut self, blobs: &dyn Blobs) {
        if self.blob().is_some() {
            *self = Body::Inline(self.text(blobs).into_owned());
        }
    }

    pub fn blob(&self) -> Option<&BlobRef> {
        match self {
            Body::Inline(_) => None,
            Body::Blob { blob, .. } => Some(blob),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Body::Inline(text) => write!(f, "{text:?}"),
            Body::Blob { blob, .. } => write!(f, "blob {} of {} bytes", blob.hash.as_str(), blob.size),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::Inline(String::new())
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        Body::Inline(text.to_owned())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Body::Inline(text)
    }
}
