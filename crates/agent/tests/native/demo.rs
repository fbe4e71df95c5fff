//! The demo: its model is a script, all else is as with any other.

use tolka_agent::Pace;
use tolka_agent::native::demo::Demo;
use tolka_facts::event::Stop;
use tolka_facts::{Event, Fact};

use crate::hall::{Hall, Person};
use crate::told::check_dialects;

fn count(facts: &[Fact], is_so: impl Fn(&Event) -> bool) -> usize {
    facts.iter().filter(|fact| is_so(&fact.event)).count()
}

/// Whether the person says yes or no: it goes on to its end, shows everything, and no dialect stumbles over it.
#[tokio::test]
async fn the_demo_goes_through_the_loop() {
    for person in [Person::Allows, Person::Rejects] {
        let mut hall = Hall::open(vec![Demo::new(Pace::AtOnce)]);
        hall.settings.rules = Demo::rules();
        hall.person = person;
        let ended = hall.say("Make me a TODO app").await;
        assert_eq!((ended.stop, ended.failure), (Stop::EndTurn, None), "{person:?}");
        assert_eq!(hall.say("And again").await.stop, Stop::EndTurn, "{person:?}");
        let facts = hall.facts();
        assert!(count(&facts, |event| matches!(event, Event::PermissionAsked(_))) > 0, "{person:?}");
        assert!(count(&facts, |event| matches!(event, Event::ThoughtAppended(_))) > 0, "{person:?}");
        assert!(count(&facts, |event| matches!(event, Event::FileChanged(_))) > 0, "{person:?}");
        check_dialects(&facts, &hall.memory);
    }
}
