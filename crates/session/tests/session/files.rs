//! Contents that facts name by their hashes.

use tolka_agent::Teller;
use tolka_facts::event::{FileChanged, FileOperation};
use tolka_facts::{BlobRef, Draft, Event, Hash};
use tolka_journal::Journal;

use crate::{World, prompt, say};

const BEFORE: &[u8] = b"one\n";

fn after() -> Vec<u8> {
    // Bytes that are no text, and more than a fact holds.
    [0xff, 0x00, b'\n'].repeat(50_000)
}

pub(crate) async fn change(teller: &Teller) {
    let blob = |content: &[u8]| Some(BlobRef { hash: Hash::of(content), size: content.len() as u64 });
    let changed = FileChanged {
        path: "a".into(),
        operation: FileOperation::Update,
        before: blob(BEFORE),
        after: blob(&after()),
        added: 1,
        removed: 1,
        call: None,
        diff: None,
    };
    teller.tell_with(Draft::agent(changed), vec![BEFORE.to_vec(), after()]).await.unwrap();
    teller.settled().await.unwrap();
    say(teller, "changed").await;
}

/// More than may be on its way at once.
const MANY: u8 = 12;

fn large(n: u8) -> Vec<u8> {
    vec![n; 4 << 20]
}

pub(crate) async fn change_many(teller: &Teller) {
    for n in 0..MANY {
        let content = large(n);
        let changed = FileChanged {
            path: n.to_string(),
            operation: FileOperation::Create,
            before: None,
            after: Some(BlobRef { hash: Hash::of(&content), size: content.len() as u64 }),
            added: 1,
            removed: 0,
            call: None,
            diff: None,
        };
        teller.tell_with(Draft::agent(changed), vec![content]).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_too_much_for_the_memory_go_one_after_another() {
    let world = World::new();
    let session = world.session().await;
    world.desk.prompt(&session, prompt("change many files")).await.unwrap();
    world.ended(&session, 1).await;
    let facts = world.facts(&session).await;
    let paths = facts.iter().filter_map(|fact| match &fact.event {
        Event::FileChanged(e) => Some(e.path.clone()),
        _ => None,
    });
    assert_eq!(paths.collect::<Vec<_>>(), (0..MANY).map(|n| n.to_string()).collect::<Vec<_>>());
    for n in 0..MANY {
        assert_eq!(world.journal.blob(&Hash::of(&large(n))).unwrap(), Some(large(n)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_was_survives_and_goes_with_the_last_session_that_knows_it() {
    let world = World::new();
    let (one, two) = (world.session().await, world.session().await);
    for session in [&one, &two] {
        world.desk.prompt(session, prompt("change a file")).await.unwrap();
        world.ended(session, 1).await;
    }
    let world = world.crash();
    let facts = world.facts(&one).await;
    let changed = facts.iter().find_map(|fact| match &fact.event {
        Event::FileChanged(e) => Some(e),
        _ => None,
    });
    let (before, after_ref) = (changed.unwrap().before.as_ref().unwrap(), changed.unwrap().after.as_ref().unwrap());
    let kept = |blob: &BlobRef| world.journal.blob(&blob.hash).unwrap();
    assert_eq!((kept(before).as_deref(), kept(after_ref)), (Some(BEFORE), Some(after())));

    world.desk.delete(&one).await.unwrap();
    assert_eq!(world.desk.purge(&one).await.unwrap().freed.blobs, 0, "the other session has them too");
    assert_eq!(kept(before).as_deref(), Some(BEFORE));
    world.desk.delete(&two).await.unwrap();
    assert_eq!(world.desk.purge(&two).await.unwrap().freed.blobs, 2);
    assert_eq!((kept(before), kept(after_ref)), (None, None));
}
