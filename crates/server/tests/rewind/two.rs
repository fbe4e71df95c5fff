//! Two sessions in one folder: neither takes back what the other did, and each is told what moved.

use serde_json::json;

use crate::shop::{Shop, kept, some};

#[tokio::test(flavor = "multi_thread")]
async fn what_both_touched_is_kept_and_the_other_is_told_what_moved() {
    let shop = Shop::open().await;
    let (one, two) = (shop.new_session().await, shop.new_session().await);
    let (first, _) = shop.work(&one, &["write own.txt one", "write shared.txt one"]).await;
    shop.work(&two, &["write shared.txt two", "write other.txt two"]).await;
    let reverted = shop.revert(&one, &first).await;
    assert_eq!(reverted["revert"]["messageID"], first.as_str());
    let names = ["own.txt", "shared.txt", "other.txt"];
    assert_eq!(shop.texts(names), [None, some("two\n"), some("two\n")]);
    let rewound = shop.facts_of(&one, "rewound").await.remove(0);
    assert_eq!(kept(&rewound), [("other.txt", "not_ours"), ("shared.txt", "conflict")]);
    let moved = shop.facts_until(&two, "files_moved", 1).await;
    assert_eq!(moved[0]["by"], one.as_str());
    assert_eq!(moved[0]["changes"]["files"][0]["path"], "own.txt");
    assert_eq!(moved[0]["changes"]["count"], 1);
    assert_eq!(shop.facts_of(&one, "files_moved").await, [] as [serde_json::Value; 0]);

    shop.unrevert(&one).await;
    assert_eq!(shop.texts(names), [some("one\n"), some("two\n"), some("two\n")]);
    shop.facts_until(&two, "files_moved", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_other_works_nothing_of_it_is_taken_back() {
    let shop = Shop::open().await;
    let (one, two) = (shop.new_session().await, shop.new_session().await);
    shop.work(&one, &["write own.txt one"]).await;
    shop.hold(&two, &["write theirs.txt two"]).await;
    shop.work(&one, &["write own.txt more"]).await;
    let before = shop.before_prompts(&one).await;
    let done = shop.tell(&one, "restore", json!({ "checkpoint_id": before[0] })).await;
    assert_eq!(shop.texts(["own.txt", "theirs.txt"]), [None, some("two\n")]);
    assert_eq!(kept(&done), [("theirs.txt", "not_ours")]);
    shop.gate.send_replace(true);
}
