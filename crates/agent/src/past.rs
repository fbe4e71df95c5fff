//! What a session has been so far, for minds that must know it. A mind does not know the journal; it is handed this.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tolka_facts::{Blobs, NoBlobs, View};

#[derive(Debug, Clone, thiserror::Error)]
#[error("what was said before cannot be read: {0}")]
pub struct PastError(pub String);

/// The session up to the turn that runs, and where its long values are.
pub struct Remembered {
    pub view: View,
    pub blobs: Arc<dyn Blobs + Send + Sync>,
}

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembered").field("view", &self.view).finish_non_exhaustive()
    }
}

pub type Remembering<'a> = Pin<Box<dyn Future<Output = Result<Remembered, PastError>> + Send + 'a>>;

pub trait Past: Send + Sync + fmt::Debug {
    /// Everything that is durable now.
    fn remember(&self) -> Remembering<'_>;

    /// The same, from what was remembered before: only what came since has to be read. A past that cannot do that reads
    /// all.
    fn go_on(&self, known: View) -> Remembering<'_> {
        drop(known);
        self.remember()
    }
}

/// Of a session that has just begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPast;

impl Past for NoPast {
    fn remember(&self) -> Remembering<'_> {
        Box::pin(async { Ok(Remembered { view: View::default(), blobs: Arc::new(NoBlobs) }) })
    }
}
