//! The table of what is carried, held to the encoder.

use proptest::prelude::*;
use tolka_dialect::{Carriage, Dialect};
use tolka_facts::Event;

use crate::properties::tame;
use crate::support::cases;
use crate::{name, values};

#[test]
fn there_is_a_row_for_every_event_in_order() {
    let rows: Vec<_> = Dialect::Acp.carriage().iter().map(|(name, _)| *name).collect();
    assert_eq!(rows, Event::NAMES);
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn events_give_the_frames_of_their_rows(run in tame()) {
        for (fact, frames) in run.facts.iter().zip(run.told(Dialect::Acp)) {
            let event = fact.event.name();
            let row = Dialect::Acp.carriage().iter().find(|(name, _)| *name == event).unwrap().1;
            if let Carriage::Never(_) = row {
                prop_assert!(frames.is_empty(), "{event} is told");
            }
            // Any update of an agent may have no word of ours, and is told as it came.
            if event != "foreign" {
                for frame in values(&frames) {
                    prop_assert!(row.frames().contains(&name(&frame)), "{event} gives {}", name(&frame));
                }
            }
        }
    }
}
