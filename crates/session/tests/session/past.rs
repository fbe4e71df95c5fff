//! What a mind remembers.

use tolka_agent::{Past, Teller};
use tolka_facts::{Part, Role};

use crate::{World, prompt, say, texts};

pub(crate) async fn tell(past: &dyn Past, teller: &Teller) {
    let remembered = past.remember().await.unwrap();
    let again = past.go_on(remembered.view.clone()).await.unwrap();
    assert_eq!(again.view, remembered.view, "nothing came since");
    let parts =
        remembered.view.messages.iter().flat_map(|message| message.parts.iter().map(|part| (message.role, part)));
    let words = parts.map(|(role, part)| {
        let text = match part {
            Part::Content(tolka_facts::Block::Text { text, .. }) => text.text(remembered.blobs.as_ref()).len(),
            Part::Text(said) => said.text.len(),
            _ => 0,
        };
        format!("{}{text}", if role == Role::User { "u" } else { "a" })
    });
    say(teller, &words.collect::<Vec<_>>().join(" ")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mind_that_is_opened_later_remembers_all_that_was_said() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("hello")).await.unwrap();
    world.desk.prompt(&session, prompt(&format!("measure{}", "x".repeat(100_000)))).await.unwrap();
    // More than a page of facts.
    world.desk.prompt(&session, prompt("burst")).await.unwrap();
    world.ended(&session, 3).await;
    let world = world.crash();
    world.desk.prompt(&session, prompt("remember")).await.unwrap();
    world.ended(&session, 4).await;
    let said = texts(&world.facts(&session).await).pop().unwrap();
    assert!(said.starts_with("u5 a5 u100007 a12 u5 a1 a1 "), "{said:.200}");
    assert!(said.ends_with(" a14 u8"), "the prompt that it works on is the last");
}
