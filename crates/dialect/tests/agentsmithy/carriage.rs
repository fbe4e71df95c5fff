//! The table of what is carried, held to the encoder.

use proptest::prelude::*;
use tolka_dialect::agentsmithy::Encoder;
use tolka_dialect::{Carriage, Dialect};
use tolka_facts::{Event, Tip};

use crate::generate::journal;
use crate::{encode, kind};

/// Any fact that is told may end the open segment.
const CLOSING: [&str; 3] = ["chat_end", "reasoning_end", "summary_end"];

#[test]
fn every_event_has_its_row() {
    let names: Vec<&str> = Dialect::AgentSmithy.carriage().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, Event::NAMES);
}

proptest! {
    #[test]
    fn a_fact_gives_the_frames_of_its_row(session in journal()) {
        let (mut encoder, mut tip) = (Encoder::default(), Tip::default());
        for fact in &session.facts {
            let name = fact.event.name();
            let (_, row) = Dialect::AgentSmithy.carriage().iter().find(|(event, _)| *event == name).unwrap();
            for frame in encode(&mut encoder, &mut tip, std::slice::from_ref(fact), &session.blobs) {
                let frame = kind(&serde_json::from_str(&frame).unwrap());
                prop_assert!(!matches!(row, Carriage::Never(_)), "{} is never told, and gave {}", name, frame);
                let is_named = row.frames().contains(&frame.as_str()) || CLOSING.contains(&frame.as_str());
                prop_assert!(is_named, "{} gave {}", name, frame);
            }
        }
    }
}
