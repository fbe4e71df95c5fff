use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::CallId;

/// How many ended calls a turn remembers, to tell a late update from a new call.
const REMEMBERED: usize = 1024;

/// The calls of a turn that have ended, the oldest first. Copies share them until a call ends: a session's tip is copied
/// for everybody who asks for it.
///
/// As JSON it is a list of ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(type = "Array<CallId>"))]
pub struct EndedCalls(Arc<VecDeque<Ended>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Ended {
    /// Of the id: every new call is looked for here in vain, and numbers side by side are looked through at once.
    print: u64,
    call: Arc<str>,
}

impl EndedCalls {
    pub fn contains(&self, call: &CallId) -> bool {
        let print = print(call.as_str());
        self.0.iter().any(|ended| ended.print == print && *ended.call == *call.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, call: &str) {
        let calls = Arc::make_mut(&mut self.0);
        if calls.len() == REMEMBERED {
            calls.pop_front();
        }
        calls.push_back(Ended { print: print(call), call: Arc::from(call) });
    }
}

/// FNV-1a: spread is all that is asked of it.
fn print(call: &str) -> u64 {
    call.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Serialize for EndedCalls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|ended| &*ended.call))
    }
}

impl<'de> Deserialize<'de> for EndedCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut ended = EndedCalls::default();
        Vec::<String>::deserialize(deserializer)?.iter().for_each(|call| ended.push(call));
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(calls: impl IntoIterator<Item = usize>) -> EndedCalls {
        let mut ended = EndedCalls::default();
        calls.into_iter().for_each(|n| ended.push(&format!("call_{n}")));
        ended
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let ended = ended(0..REMEMBERED + 2);
        let knows = |n: usize| ended.contains(&CallId::from(format!("call_{n}")));
        assert!(!knows(1) && knows(2) && knows(REMEMBERED + 1) && !knows(REMEMBERED + 2));
    }

    #[test]
    fn a_copy_is_shared_until_a_call_ends() {
        let one = ended(0..3);
        let mut other = one.clone();
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.push("call_3");
        assert_eq!((one, other), (ended(0..3), ended(0..4)));
    }

    #[test]
    fn they_are_kept_as_a_list() {
        let json = serde_json::to_string(&ended(0..2)).unwrap();
        assert_eq!(json, r#"["call_0","call_1"]"#);
        assert_eq!(serde_json::from_str::<EndedCalls>(&json).unwrap(), ended(0..2));
    }
}
