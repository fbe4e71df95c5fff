use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tolka_facts::event::MessageHidden;
use tolka_facts::{Draft, Event, Fact, Message, Part, Role, Time, View};
use tolka_journal::{Append, Sqlite, SqliteOptions};

use super::*;

#[path = "../../../facts/tests/facts/runs.rs"]
pub(crate) mod runs;

/// Random sessions, each in a journal of its own making; `look` is shown them one by one.
fn sessions(cases: u32, look: &impl AsyncFn(&dyn Journal, &[Fact])) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let journal = Sqlite::open(&SqliteOptions::new(dir.path())).unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() });
    let made = std::cell::Cell::new(0);
    runner
        .run(&(runs::run(), prop::option::of(any::<prop::sample::Index>())), |(mut facts, hide)| {
            hide_one(&mut facts, hide);
            made.set(made.get() + 1);
            let session = SessionId::from(format!("ses_{}", made.get()));
            facts.iter_mut().for_each(|fact| fact.session = session.clone());
            runtime.block_on(async {
                let (mut tip, mut marks) = (Tip::default(), Vec::new());
                for fact in &facts {
                    tip.apply(fact);
                    marks.extend(Mark::of(fact, &tip).map(|mark| (mark.to_string(), fact.seq)));
                }
                let all = facts.iter().cloned().map(Arc::new).collect();
                journal.append(Append { facts: all, marks, ..Append::default() }).await.unwrap();
                look(journal.as_ref(), &facts).await;
            });
            Ok(())
        })
        .unwrap();
}

/// At the end of the session, one of the messages that it told; and once more, which says nothing new.
fn hide_one(facts: &mut Vec<Fact>, which: Option<prop::sample::Index>) {
    let told: Vec<MessageId> = facts
        .iter()
        .filter_map(|fact| match &fact.event {
            Event::PromptQueued(e) => Some(e.message.clone()),
            Event::StepStarted(e) => Some(e.message.clone()),
            _ => None,
        })
        .collect();
    let (Some(which), Some(last)) = (which, facts.last()) else { return };
    if !told.is_empty() {
        let message = which.get(&told).clone();
        let (session, seq, time) = (last.session.clone(), last.seq, last.time);
        let hide = |n| Draft::agent(MessageHidden { message: message.clone() }).stamp(session.clone(), seq + n, time);
        facts.extend([hide(1), hide(2)]);
    }
}

async fn pages(journal: &dyn Journal, facts: &[Fact], reach: Reach) -> Vec<(Page, Vec<Fact>)> {
    let Some(last) = facts.last() else { return Vec::new() };
    let (mut to, mut pages) = (last.seq, Vec::new());
    while to > 0 {
        let page = Page::back_from(journal, &last.session, to, reach).await.unwrap();
        let mut told = Vec::new();
        page.each(journal, |fact| told.push(fact.clone())).await.unwrap();
        assert!(page.tip.seq < to, "a page goes on");
        assert_eq!(page.has_more(), page.tip.seq > 0);
        to = page.tip.seq;
        pages.push((page, told));
    }
    pages.reverse();
    pages
}

#[test]
fn pages_are_all_facts_in_a_row_and_each_knows_what_was_before() {
    sessions(48, &async |journal, facts| {
        for reach in [Reach::turns(1), Reach::turns(3), Reach { turns: 2, facts: 7 }, Reach { turns: 9, facts: 1 }] {
            let (mut tip, mut told) = (Tip::default(), Vec::new());
            for (page, of_page) in pages(journal, facts, reach).await {
                assert_eq!(page.tip, tip);
                let starts = of_page.iter().filter(|fact| matches!(fact.event, Event::TurnStarted(_))).count();
                assert!(starts <= reach.turns && of_page.len() as u64 <= reach.facts);
                assert!(page.tip.is_idle() || of_page.len() as u64 == reach.facts, "cut only where it must be");
                of_page.iter().for_each(|fact| tip.apply(fact));
                told.extend(of_page);
            }
            assert_eq!(told, facts);
        }
    });
}

#[test]
fn a_message_that_was_hidden_later_is_known() {
    sessions(24, &async |journal, facts| {
        let Some(last) = facts.last() else { return };
        let told = facts.iter().filter_map(|fact| match &fact.event {
            Event::PromptQueued(e) => Some(&e.message),
            Event::StepStarted(e) => Some(&e.message),
            _ => None,
        });
        let told: Vec<&MessageId> = told.collect();
        let mut hides: Vec<(u64, MessageId)> = Vec::new();
        for fact in facts {
            if let Event::MessageHidden(e) = &fact.event
                && !hides.iter().any(|(_, known)| *known == e.message)
            {
                hides.push((fact.seq, e.message.clone()));
            }
        }
        let places = hides.iter().map(|(seq, _)| *seq).chain([0, last.seq]);
        let places: Vec<u64> = places.flat_map(|seq| [seq.saturating_sub(1), seq]).chain([u64::MAX]).collect();
        for (&after, &to) in places.iter().flat_map(|after| places.iter().map(move |to| (after, to))) {
            let found = hidden(journal, &last.session, after, to, told.iter().copied()).await.unwrap();
            let between = hides.iter().filter(|(seq, _)| *seq > after && *seq <= to);
            let expected: HashSet<MessageId> = between.map(|(_, message)| message.clone()).collect();
            assert_eq!(found, expected, "after {after}, up to {to}");
        }
    });
}

/// One view of two pages, by the rule that [`tolka_facts::Message`] tells.
fn glue(whole: &mut View, page: View) {
    for message in page.messages {
        let of_turn = |known: &Message| known.turn == message.turn;
        let by_agent = |known: &Message| of_turn(known) && known.role == Role::Agent;
        let target = whole.messages.iter().rposition(|known| by_agent(known) && known.id == message.id);
        let target = target.or_else(|| whole.messages.iter().rposition(by_agent));
        // A turn that says nothing ends with its prompt.
        let prompt = || whole.messages.iter().rposition(of_turn).filter(|_| message.parts.is_empty());
        match target.or_else(prompt).filter(|_| message.continued) {
            Some(at) => go_on(&mut whole.messages, at, message),
            None => whole.messages.push(Message { continued: false, ..message }),
        }
    }
    whole.asides.extend(page.asides);
    whole.tip = page.tip;
}

fn go_on(known: &mut [Message], at: usize, message: Message) {
    for part in message.parts {
        let same_call = |known: &Part| match (known, &part) {
            (Part::Tool(known), Part::Tool(tool)) => known.call == tool.call,
            _ => false,
        };
        let same_text = |known: &Part| match (known, &part) {
            (Part::Text(known), Part::Text(said)) | (Part::Thought(known), Part::Thought(said)) => {
                known.part == said.part
            }
            _ => false,
        };
        let of_turn = known.iter_mut().filter(|known| known.turn == message.turn);
        let call = of_turn.flat_map(|known| &mut known.parts).find(|known| same_call(known));
        if let Some(known) = call {
            *known = part;
        } else if let Some(known) = known[at].parts.last_mut().filter(|known| same_text(known)) {
            // What grew before the cut and not since is known to the earlier page alone.
            let grew = |part: &Part| match part {
                Part::Text(said) | Part::Thought(said) => said.last,
                Part::Content(_) | Part::Tool(_) => Time::default(),
            };
            let last = grew(known).max(grew(&part));
            *known = part;
            if let Part::Text(said) | Part::Thought(said) = known {
                said.last = last;
            }
        } else {
            known[at].parts.push(part);
        }
    }
    let known = &mut known[at];
    known.ended = known.ended.or(message.ended);
    known.usage = message.usage.or(known.usage);
    known.finish = message.finish.or(known.finish);
    known.kept = message.kept.or_else(|| known.kept.take());
    known.stop = message.stop.or(known.stop);
    known.stopped = message.stopped.or(known.stopped);
    known.failure = message.failure.or_else(|| known.failure.take());
}

#[test]
fn pages_glued_together_are_the_whole_session() {
    sessions(64, &async |journal, facts| {
        let mut whole = View::default();
        facts.iter().for_each(|fact| whole.apply(fact));
        let end = facts.len() as u64;
        let reaches = (1..4).map(Reach::turns);
        let cut = [1, 2, 5, 11].map(|facts| Reach { turns: 3, facts });
        for reach in reaches.chain(cut) {
            let mut glued = View::default();
            for (page, _) in pages(journal, facts, reach).await {
                glue(&mut glued, page.view(journal, end).await.unwrap());
            }
            assert_eq!((glued.messages, glued.asides), (whole.messages.clone(), whole.asides.clone()), "{reach:?}");
            assert_eq!(glued.tip, whole.tip);
        }
    });
}
