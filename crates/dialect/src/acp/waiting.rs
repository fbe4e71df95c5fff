//! Which response belongs to which request, for whoever reads both sides of a conversation, or one.

use serde::Serialize;
use tolka_facts::Json;

use super::method::Side;
use crate::recent::Recent;

/// Who asks and never gets an answer is forgotten after so many of its side.
const REMEMBERED: usize = 4096;

/// Requests without a response. Each side counts its own: the same id may stand for two.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    of_client: Recent<T>,
    of_agent: Recent<T>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting { of_client: Recent::of(REMEMBERED), of_agent: Recent::of(REMEMBERED) }
    }
}

/// An id as it is written: the number 1 and the text "1" are two.
pub(super) fn written(id: &impl Serialize) -> String {
    Json::of(id).get().to_owned()
}

impl<T> Waiting<T> {
    /// The requests that a side sent, by their ids as they are written.
    pub(super) fn of(&mut self, from: Side) -> &mut Recent<T> {
        match from {
            Side::Client => &mut self.of_client,
            Side::Agent => &mut self.of_agent,
        }
    }

    /// The request of this id that waits, and who sent it. `by` says who responds, where that is known; else the
    /// response's own shape must.
    pub(super) fn take(&mut self, by: Option<Side>, id: &str, is_of_client: bool) -> Option<(Side, T)> {
        let from: &[Side] = match by {
            Some(Side::Agent) => &[Side::Client],
            Some(Side::Client) => &[Side::Agent],
            None if is_of_client => &[Side::Agent, Side::Client],
            None => &[Side::Client, Side::Agent],
        };
        from.iter().find_map(|from| Some((*from, self.of(*from).remove(id)?)))
    }

    /// Whether a request that is not known may have been forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.of_client.is_full() || self.of_agent.is_full()
    }
}
