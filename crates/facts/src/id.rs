//! Ids that carry a prefix and sort by the time they were made, as OpenCode's clients expect:
//! twelve hex digits of milliseconds and a counter, then fourteen characters that make the id unique.
//! Session ids run backwards, so that the newest session sorts first.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Fact, Time};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                $name(id.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                $name(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// `ses_…`, or `srv_…` for the server's own journal.
    SessionId,
    /// `trn_…`: one prompt and all that the agent did about it.
    TurnId,
    /// `msg_…`: a user's prompt, or one step of the agent.
    MessageId,
    /// `prt_…`: one run of text or thought.
    PartId,
    /// The agent's own name for a tool call; kept as it came.
    CallId,
    /// `per_…` or `que_…`: a permission or a question that waits for an answer.
    RequestId,
    /// `art_…`
    ArtifactId,
}

impl SessionId {
    /// The journal that the server keeps about itself.
    pub fn server() -> Self {
        SessionId::from("srv_tolka")
    }

    pub fn is_server(&self) -> bool {
        self.0.starts_with("srv_")
    }
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const STAMP_MASK: u64 = (1 << 48) - 1;

/// Makes ids. One per process, so that its counter keeps ids of one millisecond in order.
#[derive(Debug)]
pub struct Ids {
    /// The last stamp given out: (milliseconds << 12 | counter), so that a fetch and a compare suffice.
    last: AtomicU64,
    seed: u64,
    made: AtomicU64,
}

impl Ids {
    /// `seed` must differ between processes; a test that wants the same ids every time passes a constant.
    pub fn seeded(seed: u64) -> Self {
        Ids { last: AtomicU64::new(0), seed, made: AtomicU64::new(0) }
    }

    pub fn session(&self, now: Time) -> SessionId {
        SessionId(self.id("ses", !self.stamp(now)))
    }

    pub fn turn(&self, now: Time) -> TurnId {
        TurnId(self.id("trn", self.stamp(now)))
    }

    pub fn message(&self, now: Time) -> MessageId {
        MessageId(self.id("msg", self.stamp(now)))
    }

    pub fn part(&self, now: Time) -> PartId {
        PartId(self.id("prt", self.stamp(now)))
    }

    pub fn permission(&self, now: Time) -> RequestId {
        RequestId(self.id("per", self.stamp(now)))
    }

    pub fn question(&self, now: Time) -> RequestId {
        RequestId(self.id("que", self.stamp(now)))
    }

    pub fn artifact(&self, now: Time) -> ArtifactId {
        ArtifactId(self.id("art", self.stamp(now)))
    }

    fn stamp(&self, now: Time) -> u64 {
        let wanted = now.millis() << 12;
        let next = |last: u64| (last + 1).max(wanted + 1);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(last.unwrap_or_default())
    }

    fn id(&self, prefix: &str, stamp: u64) -> String {
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let digest = Sha256::new().chain_update(self.seed.to_le_bytes()).chain_update(n.to_le_bytes()).finalize();
        let tail: String = digest.iter().take(14).map(|b| char::from(BASE62[usize::from(*b) % 62])).collect();
        format!("{prefix}_{:012x}{tail}", stamp & STAMP_MASK)
    }
}

/// An id for something that a dialect names and the facts do not (an OpenCode event, the part of a
/// tool): made from where it stands in the journal, so that it is the same in every telling and sorts
/// in the order of the telling.
pub fn derived_id(prefix: &str, time: Time, seq: u64, n: u32) -> String {
    let mut id = String::with_capacity(prefix.len() + 27);
    push_stamp(&mut id, prefix, time);
    push_base62(&mut id, seq, 10);
    push_base62(&mut id, u64::from(n), 4);
    id
}

/// An id for an event that tells a fact, on a feed where many sessions speak: two of them may tell their fact of the same
/// number in the same millisecond, so the session has a part in it. It sorts in the order of its session's telling.
pub fn event_id(prefix: &str, fact: &Fact, n: u32) -> String {
    let mut id = String::with_capacity(prefix.len() + 27);
    push_stamp(&mut id, prefix, fact.time);
    push_base62(&mut id, fact.seq, 6);
    push_base62(&mut id, u64::from(n), 4);
    // FNV-1a: spread is all that is asked of it.
    let spread = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    push_base62(&mut id, fact.session.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, spread), 4);
    id
}

fn push_stamp(id: &mut String, prefix: &str, time: Time) {
    id.push_str(prefix);
    id.push('_');
    let stamp = (time.millis() << 12) & STAMP_MASK;
    for shift in (0..12).rev() {
        let digit = (stamp >> (shift * 4)) & 0xf;
        id.push(char::from(b"0123456789abcdef"[digit as usize]));
    }
}

fn push_base62(out: &mut String, mut value: u64, width: usize) {
    let mut digits = [b'0'; 16];
    for slot in digits[..width].iter_mut().rev() {
        *slot = BASE62[(value % 62) as usize];
        value /= 62;
    }
    out.extend(digits[..width].iter().map(|d| char::from(*d)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_and_session_ids_descend() {
        let ids = Ids::seeded(7);
        let now = Time::from_millis(1_794_702_342_312);
        let messages: Vec<_> = (0..5000).map(|_| ids.message(now)).collect();
        assert!(messages.is_sorted());
        assert_eq!(messages[0].as_str().len(), "msg_1dc987a8d001xf0DoSxU0b7oQD".len());
        assert!(messages[0].as_str().starts_with("msg_1dc9878a8001"));
        let (older, newer) = (ids.session(now), ids.session(Time::from_millis(now.millis() + 1)));
        assert!(newer < older);
    }

    #[test]
    fn events_of_two_sessions_have_ids_of_their_own() {
        let at = |session: &str, seq, n| {
            let event = crate::event::SessionDeleted {};
            let fact = crate::Draft::client(event).stamp(SessionId::from(session), seq, Time::from_millis(1));
            event_id("evt", &fact, n)
        };
        let told = [at("ses_a", 1, 0), at("ses_a", 1, 1), at("ses_a", 2, 0), at("ses_a", 4000, 0)];
        assert!(told.is_sorted());
        assert_eq!(told[0].len(), "evt_1dc987a8d001xf0DoSxU0b7oQD".len());
        assert_ne!(at("ses_a", 1, 0), at("ses_b", 1, 0));
    }

    #[test]
    fn derived_ids_sort_in_the_order_of_the_telling() {
        let at = |ms, seq, n| derived_id("evt", Time::from_millis(ms), seq, n);
        let told = [at(1, 1, 0), at(1, 1, 1), at(1, 2, 0), at(1, 63, 0), at(2, 64, 0), at(2, 64, 62)];
        assert!(told.is_sorted());
        assert_eq!(told[0].len(), "evt_1dc987a8d001xf0DoSxU0b7oQD".len());
    }
}
