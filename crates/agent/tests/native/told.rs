//! Whatever the loop tells, no dialect breaks its own rules over it.

use tolka_dialect::{Dialect, Frames};
use tolka_facts::{Fact, Tip};

use crate::hall::Memory;

/// What `tolka check` would say of a session, told in every dialect.
pub(crate) fn check_dialects(facts: &[Fact], memory: &Memory) {
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        let (mut encoder, mut tip, mut frames) = (dialect.encoder(), Tip::default(), Frames::default());
        for fact in facts {
            tip.apply(fact);
            encoder.encode(fact, &tip, memory, &mut frames);
        }
        let (mut bytes, mut judge, mut found) = (Vec::new(), dialect.judge(), Vec::new());
        frames.iter().for_each(|frame| dialect.write_frame(frame, &mut bytes));
        judge.feed(&bytes, &mut found);
        judge.finish(&mut found);
        wrong.extend(found.iter().map(|finding| format!("{dialect}, {finding}")));
    }
    let told: Vec<String> = facts.iter().map(|fact| String::from_utf8(fact.to_json()).unwrap()).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), told.join("\n"));
}
