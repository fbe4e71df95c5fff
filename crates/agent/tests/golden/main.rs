//! Every recording, told in every dialect, held against a stream that a person has read: `tests/golden`, one
//! frame per line. After a change that is meant, `UPDATE_GOLDEN=1` writes them anew; then read the difference.
//!
//! The same facts show that a telling may be cut anywhere: `encode(whole) == encode(prefix) ++ resume`.

#![allow(clippy::unwrap_used, reason = "clippy sees tests only in functions that are marked so, and these help them")]

mod session;

use proptest::prelude::*;
use tolka_dialect::{Dialect, Encoder, Frames};
use tolka_facts::{Fact, NoBlobs, Time, Tip};

use session::{Answer, BEGAN, Session, root};

const TELLINGS: [(&str, &str, Answer); 15] = [
    ("claude-cancel", "tests/data/recordings/acp/claude-cancel.jsonl", Answer::Allow),
    ("claude-perm", "tests/data/recordings/acp/claude-perm.jsonl", Answer::Allow),
    ("claude-perm-rejected", "tests/data/recordings/acp/claude-perm.jsonl", Answer::Reject),
    ("claude-rich", "tests/data/recordings/acp/claude-rich.jsonl", Answer::Allow),
    ("codex", "tests/data/recordings/acp/codex.jsonl", Answer::Allow),
    ("codex-cancel", "tests/data/recordings/acp/codex-cancel.jsonl", Answer::Allow),
    ("copilot", "tests/data/recordings/acp/copilot.jsonl", Answer::Allow),
    ("demo", "tests/data/recordings/tolka/demo.jsonl", Answer::Allow),
    ("fast-agent", "tests/data/recordings/acp/fast-agent.jsonl", Answer::Allow),
    ("gemini", "tests/data/recordings/acp/gemini.jsonl", Answer::Allow),
    ("kimi", "tests/data/recordings/acp/kimi.jsonl", Answer::Allow),
    ("opencode-cancel", "tests/data/recordings/acp/opencode-cancel.jsonl", Answer::Allow),
    ("opencode-perm", "tests/data/recordings/acp/opencode-perm.jsonl", Answer::Allow),
    ("opencode-perm-rejected", "tests/data/recordings/acp/opencode-perm.jsonl", Answer::Reject),
    ("opencode-rich", "tests/data/recordings/acp/opencode-rich.jsonl", Answer::Allow),
];

fn encode(encoder: &mut dyn Encoder, tip: &mut Tip, facts: &[Fact]) -> Vec<String> {
    let mut frames = Frames::default();
    for fact in facts {
        tip.apply(fact);
        encoder.encode(fact, tip, &NoBlobs, &mut frames);
    }
    frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
}

/// As a reader elsewhere takes it up: the encoder from its state, the tip as the journal keeps it.
fn taken_up(dialect: Dialect, state: &[u8], tip: &Tip) -> (Box<dyn Encoder>, Tip) {
    let tip = serde_json::from_slice(&serde_json::to_vec(tip).unwrap()).unwrap();
    (dialect.resume(state).unwrap(), tip)
}

/// A telling that goes on from what was kept after any fact tells the next one alike and keeps the same. By
/// that, step by step, it tells the whole rest alike, wherever it was cut.
fn check_every_cut(name: &str, dialect: Dialect, facts: &[Fact]) {
    let (mut encoder, mut tip) = (dialect.encoder(), Tip::default());
    for fact in facts {
        let (mut other, mut other_tip) = taken_up(dialect, &encoder.state(), &tip);
        let place = format!("{name} in {dialect}, cut before fact {}", fact.seq);
        if tip.is_idle() {
            let told = encode(dialect.encoder().as_mut(), &mut tip.clone(), std::slice::from_ref(fact));
            let going_on = encode(other.as_mut(), &mut other_tip.clone(), std::slice::from_ref(fact));
            assert_eq!(told, going_on, "{place}, with an encoder that knows nothing");
        }
        let whole = encode(encoder.as_mut(), &mut tip, std::slice::from_ref(fact));
        let rest = encode(other.as_mut(), &mut other_tip, std::slice::from_ref(fact));
        assert_eq!(whole, rest, "{place}");
        assert_eq!(encoder.state(), other.state(), "{place}: what is kept");
        assert_eq!(tip, other_tip, "{place}: the tip");
    }
}

fn check_golden(name: &str, dialect: Dialect, facts: &[Fact]) -> Result<(), String> {
    let told = encode(dialect.encoder().as_mut(), &mut Tip::default(), facts);
    let path = root().join(format!("tests/golden/{name}.{dialect}.jsonl"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, told.iter().map(|frame| format!("{frame}\n")).collect::<String>()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let expected: Vec<&str> = golden.lines().collect();
    let Some(at) =
        (0..told.len().max(expected.len())).find(|at| told.get(*at).map(String::as_str) != expected.get(*at).copied())
    else {
        return Ok(());
    };
    let shown = |line: Option<&str>| line.unwrap_or("(no such line)").to_owned();
    Err(format!(
        "tests/golden/{name}.{dialect}.jsonl, line {} of {}:\n  golden {}\n  told   {}",
        at + 1,
        expected.len(),
        shown(expected.get(at).copied()),
        shown(told.get(at).map(String::as_str)),
    ))
}

#[tokio::test]
async fn every_recording_is_told_as_its_golden_streams_say() {
    let mut wrong = Vec::new();
    for (name, path, answer) in TELLINGS {
        let facts = Session::play(path, answer).await;
        for dialect in Dialect::ALL {
            wrong.extend(check_golden(name, dialect, &facts).err());
        }
    }
    assert!(wrong.is_empty(), "{} streams differ; UPDATE_GOLDEN=1 writes them anew\n{}", wrong.len(), wrong.join("\n"));
}

/// What `tolka check` would say of each.
#[tokio::test]
async fn the_judge_has_nothing_against_any_telling() {
    let mut wrong = Vec::new();
    for (name, path, answer) in TELLINGS {
        let facts = Session::play(path, answer).await;
        for dialect in Dialect::ALL {
            let (mut bytes, mut judge, mut found) = (Vec::new(), dialect.judge(), Vec::new());
            for frame in encode(dialect.encoder().as_mut(), &mut Tip::default(), &facts) {
                dialect.write_frame(frame.as_bytes(), &mut bytes);
            }
            judge.feed(&bytes, &mut found);
            judge.finish(&mut found);
            wrong.extend(found.iter().map(|finding| format!("{name} in {dialect}, {finding}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_recording_can_be_cut_anywhere_in_every_dialect() {
    for (name, path, answer) in TELLINGS {
        let facts = Session::play(path, answer).await;
        assert_eq!(facts, Session::play(path, answer).await, "{name} is not played alike twice");
        Dialect::ALL.into_iter().for_each(|dialect| check_every_cut(name, dialect, &facts));
    }
}

/// Facts of several recordings behind each other in one session, some of them lost: orders that no agent
/// was seen to make.
fn session_of(pieces: &[(usize, Vec<bool>)], recorded: &[Vec<Fact>]) -> Vec<Fact> {
    let mut facts = Vec::<Fact>::new();
    for (which, lost) in pieces {
        let of_one = &recorded[which % recorded.len()];
        for (at, fact) in of_one.iter().enumerate().filter(|(at, _)| !lost.get(*at).copied().unwrap_or(false)) {
            let seq = facts.len() as u64 + 1;
            let time = Time::from_millis(BEGAN + seq + at as u64);
            facts.push(Fact { session: of_one[0].session.clone(), seq, time, ..fact.clone() });
        }
    }
    facts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_telling_is_its_beginning_and_its_rest(
        pieces in prop::collection::vec((any::<usize>(), prop::collection::vec(prop::bool::weighted(0.1), 400)), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        static RECORDED: std::sync::OnceLock<Vec<Vec<Fact>>> = std::sync::OnceLock::new();
        let recorded = RECORDED.get_or_init(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            TELLINGS.map(|(_, path, answer)| runtime.block_on(Session::play(path, answer))).to_vec()
        });
        let facts = session_of(&pieces, recorded);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(facts.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(facts.len());
        for dialect in Dialect::ALL {
            let whole = encode(dialect.encoder().as_mut(), &mut Tip::default(), &facts);
            let (mut encoder, mut tip, mut from, mut told) = (dialect.encoder(), Tip::default(), 0, Vec::new());
            for cut in &cuts {
                told.extend(encode(encoder.as_mut(), &mut tip, &facts[from..*cut]));
                (encoder, tip) = taken_up(dialect, &encoder.state(), &tip);
                from = *cut;
            }
            prop_assert_eq!(&whole, &told, "{}", dialect);
        }
    }
}
