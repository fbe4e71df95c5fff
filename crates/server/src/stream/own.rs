//! A reader that is behind: it encodes for itself, about one write at a time, when it is its turn.

use std::sync::Arc;

use tolka_journal::JournalError;

use super::budget::Held;
use super::chunk::Chunk;
use super::{Channel, Cursor, Follow, Tongues, Voice};

const PAGE: usize = 256;

/// What it goes on with from write to write. It can be lost at any time, and costs a look at the journal then.
pub(super) struct Own {
    follow: Follow,
    voice: Voice,
    /// What a voice remembers of an open turn can be large.
    held: Held,
    /// Facts to read at a time: not many more than become one write.
    limit: usize,
}

pub(super) enum Read {
    Chunk(Box<Own>, Chunk),
    /// What comes next it can share: the channel's log has it, or nobody has it yet.
    CaughtUp,
    /// Nothing will come any more: the session has been purged.
    Gone,
}

impl Own {
    fn new(tongues: &Tongues, channel: Arc<Channel>, cursor: Cursor) -> Self {
        Own {
            follow: Follow::new(tongues.journal().clone(), channel.scope(), cursor.before()),
            voice: Voice::new(tongues, channel),
            held: tongues.budget().hold(0),
            limit: PAGE,
        }
    }

    /// The frames after the cursor.
    pub(super) async fn read_on(
        mut own: Option<Box<Self>>,
        tongues: Tongues,
        channel: Arc<Channel>,
        cursor: Cursor,
    ) -> Result<Read, JournalError> {
        // On a channel that never rests the head would never be met.
        if tongues.log_has(&channel, cursor) {
            return Ok(Read::CaughtUp);
        }
        let turn = tongues.turn_behind(&mut own).await;
        let mut own = own.unwrap_or_else(|| Box::new(Own::new(&tongues, channel, cursor)));
        let page = own.follow.ready(own.limit).await?;
        if page.is_empty() {
            return Ok(if own.follow.is_gone().await? { Read::Gone } else { Read::CaughtUp });
        }
        let chunk = own.voice.speak(&page, cursor, tongues.budget().write()).await?;
        let told = page.partition_point(|entry| entry.place <= chunk.to);
        own.limit = if told < page.len() { told + 1 } else { (2 * own.limit).min(PAGE) };
        own.follow.rewind(chunk.to);
        own.held.set(own.voice.weight());
        drop(turn);
        own.voice.keep_states().await;
        Ok(Read::Chunk(own, chunk))
    }
}
