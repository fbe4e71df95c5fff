//! New ids for what is copied.

use tolka_facts::{Hash, SessionId};

/// How many digits of time stand in an id, and how long what follows is.
const STAMP: usize = 12;
const TAIL: usize = 14;

/// The same for the same id, so that nobody has to remember which became which, and of the same time, so that they sort as
/// they did. An id that a client made up keeps its words.
pub(super) fn renewed(fork: &SessionId, id: &str) -> String {
    if id.is_empty() {
        return String::new();
    }
    let hash = Hash::of(format!("{fork}/{id}").as_bytes());
    let tail = &hash.as_str()[..TAIL];
    let stamped = id.split_once('_').and_then(|(kind, rest)| Some((kind, rest.get(..STAMP)?, rest.len())));
    match stamped.filter(|(_, stamp, len)| *len == STAMP + TAIL && stamp.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        Some((kind, stamp, _)) => format!("{kind}_{stamp}{tail}"),
        None => format!("{id}_{tail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tolka_facts::{Ids, Time};

    #[test]
    fn new_ids_sort_as_the_old_ones_and_are_nobody_elses() {
        let (ids, fork) = (Ids::seeded(7), SessionId::from("ses_1"));
        let old: Vec<_> = (0..500).map(|n| ids.message(Time::from_millis(1_794_702_342_312 + n / 5))).collect();
        let new: Vec<_> = old.iter().map(|id| renewed(&fork, id.as_str())).collect();
        assert!(new.is_sorted());
        assert!(new.iter().zip(&old).all(|(new, old)| new != old.as_str() && new.len() == old.as_str().len()));
        assert_ne!(renewed(&SessionId::from("ses_2"), old[0].as_str()), new[0]);
        assert_eq!(renewed(&fork, old[0].as_str()), new[0]);
        assert!(renewed(&fork, "mine").starts_with("mine_"));
        assert!(renewed(&fork, "msg_ärgerlicheszeichenundmehr").starts_with("msg_ärgerlicheszeichenundmehr_"));
        assert_eq!(renewed(&fork, ""), "");
    }
}
