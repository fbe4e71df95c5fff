//! The table of carriage against the encoder, both ways. Packets that end what was open count as told by the event that
//! caused them, so they stand in its row.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use tolka_dialect::onyx_steps::Encoder;
use tolka_dialect::{Carriage, Dialect};
use tolka_facts::{Event, Tip};

use crate::encode;
use crate::generate::journal;

#[test]
fn the_rows_are_the_events_in_their_order() {
    let names: Vec<_> = Dialect::OnyxSteps.carriage().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Event::NAMES);
}

#[test]
fn each_event_gives_the_packets_of_its_row_and_no_others() {
    let (mut runner, mut told, mut happened) = (TestRunner::deterministic(), BTreeSet::new(), BTreeSet::new());
    for _ in 0..1500 {
        let session = journal().new_tree(&mut runner).unwrap().current();
        let (mut encoder, mut tip) = (Encoder::default(), Tip::default());
        for fact in &session.facts {
            happened.insert(fact.event.name());
            for frame in encode(&mut encoder, &mut tip, std::slice::from_ref(fact), &session.blobs) {
                let packet: Value = serde_json::from_str(&frame).unwrap();
                told.insert((fact.event.name(), packet["type"].as_str().unwrap().to_owned()));
            }
        }
    }
    let rows = Dialect::OnyxSteps.carriage();
    let promised: BTreeSet<_> = rows
        .iter()
        .flat_map(|(event, carriage)| carriage.frames().iter().map(|frame| (*event, (*frame).to_owned())))
        .collect();
    assert_eq!(told, promised);
    for (event, carriage) in rows.iter().filter(|(event, _)| happened.contains(event)) {
        assert_eq!(told.iter().any(|(told, _)| told == event), !matches!(carriage, Carriage::Never(_)), "{event}");
    }
}
