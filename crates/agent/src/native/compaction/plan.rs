//! What is summarised and what is kept as it is: a pure function of what is sent and of how much room there is.

use std::sync::Arc;

use tolka_facts::MessageId;

use super::Cause;
use super::size::tokens;
use crate::native::conversation::Segment;
use crate::native::model::Message;

/// Tokens that one request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) most: u64,
}

impl Room {
    /// So much of the latest stays as it is; the rest is for the summary and for what comes.
    fn kept(self) -> u64 {
        self.most / 4
    }

    /// What came last is what the model has not seen yet. It stays as long as there is room beside it.
    fn last(self) -> u64 {
        self.most / 2
    }

    /// Less than this is not worth a summary: soon there would have to be another.
    fn worth(self) -> u64 {
        self.most / 8
    }
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) old: Vec<Arc<Message>>,
    /// The first message that stays. `None`: none does.
    pub(super) keeps: Option<MessageId>,
}

impl Plan {
    /// `None` if there is nothing to summarise, or too little.
    pub(super) fn of(mut segments: Vec<Segment>, room: Room, cause: &Cause) -> Option<Plan> {
        let sizes: Vec<u64> =
            segments.iter().map(|segment| segment.said.iter().map(|said| tokens(said)).sum()).collect();
        let from = match cause {
            Cause::Steered(_) | Cause::Alone(_) => segments.len(),
            Cause::Full | Cause::Overflow => kept_from(&segments, &sizes, room),
        };
        let is_new = |at: &usize| segments[*at].message.is_some();
        let news = (0..from).filter(is_new);
        let is_worth_it = match cause {
            Cause::Steered(_) | Cause::Alone(_) | Cause::Overflow => news.count() > 0,
            Cause::Full => news.map(|at| sizes[at]).sum::<u64>() >= room.worth().max(1),
        };
        if !is_worth_it {
            return None;
        }
        let keeps = segments.get(from).and_then(|segment| segment.message.clone());
        segments.truncate(from);
        Some(Plan { old: segments.into_iter().flat_map(|segment| segment.said).collect(), keeps })
    }
}

/// The first of the latest that stay. What a person has just asked for stays in any case.
fn kept_from(segments: &[Segment], sizes: &[u64], room: Room) -> usize {
    let (mut from, mut kept) = (sizes.len(), 0);
    for (at, size) in sizes.iter().enumerate().rev() {
        let is_last = at + 1 == sizes.len();
        let most = match is_last {
            true if segments[at].is_asked => u64::MAX,
            true => room.last(),
            false => room.kept(),
        };
        kept += size;
        if kept > most {
            break;
        }
        from = at;
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::model::Input;

    const ROOM: Room = Room { most: 800 };

    /// Of so many tokens each; the first is a summary where it has no name.
    fn segments(sizes: &[u64], has_summary: bool) -> Vec<Segment> {
        let segment = |(at, size): (usize, &u64)| Segment {
            message: (at > 0 || !has_summary).then(|| MessageId::from(format!("msg_{at}"))),
            said: vec![Arc::new(Message::User(vec![Input::Text("x".repeat((*size * 7 / 2) as usize))]))],
            is_asked: false,
        };
        sizes.iter().enumerate().map(segment).collect()
    }

    fn keeps(sizes: &[u64], has_summary: bool, cause: &Cause) -> Option<(usize, Option<String>)> {
        let plan = Plan::of(segments(sizes, has_summary), ROOM, cause)?;
        Some((plan.old.len(), plan.keeps.map(|message| message.to_string())))
    }

    #[test]
    fn the_latest_stays_as_far_as_a_quarter_of_the_room_goes() {
        let some = |old: usize, keeps: &str| Some((old, Some(keeps.to_owned())));
        assert_eq!(keeps(&[300, 100, 90, 90], false, &Cause::Full), some(2, "msg_2"));
        assert_eq!(keeps(&[300, 100, 90, 390], false, &Cause::Full), some(3, "msg_3"), "the last, up to a half");
        assert_eq!(keeps(&[300, 100, 90, 410], false, &Cause::Full), Some((4, None)), "it is too long to stay");
    }

    #[test]
    fn what_was_just_asked_for_stays() {
        let mut segments = segments(&[300, 100, 2_000], false);
        segments[2].is_asked = true;
        let plan = Plan::of(segments, ROOM, &Cause::Full).unwrap();
        assert_eq!((plan.old.len(), plan.keeps), (2, Some("msg_2".into())));
    }

    #[test]
    fn too_little_is_not_worth_a_summary_unless_it_must_be() {
        assert_eq!(keeps(&[700, 60, 390], true, &Cause::Full), None, "a summary of the summary gains nothing");
        assert_eq!(keeps(&[700, 60, 390], true, &Cause::Overflow), Some((2, Some("msg_2".to_owned()))));
        assert_eq!(keeps(&[10, 10], false, &Cause::Overflow), None, "all of it stays");
        assert_eq!(keeps(&[], false, &Cause::Alone(String::new())), None);
        assert_eq!(keeps(&[700], true, &Cause::Alone(String::new())), None, "it was summarised before");
        assert_eq!(keeps(&[700, 1], true, &Cause::Alone(String::new())), Some((2, None)));
    }
}
