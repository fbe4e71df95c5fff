//! A part in the place of a message: only whole messages go back.

use serde_json::{Value, json};

use crate::shop::Shop;

async fn parts(shop: &Shop, session: &str, message: &str) -> Vec<Value> {
    let told = shop.get(&format!("/session/{session}/message/{message}")).await.json();
    told["parts"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_begins_its_message_means_the_message() {
    let shop = Shop::open().await;
    let session = shop.new_session().await;
    let (prompt, answer) = shop.work(&session, &["write a.txt one", "and more"]).await;
    let (of_prompt, of_answer) = (parts(&shop, &session, &prompt).await, parts(&shop, &session, &answer).await);
    let said: Vec<&Value> = of_answer.iter().filter(|part| part["type"] == "text").collect();
    assert!(said.len() > 1, "{of_answer:?}");
    let path = format!("/session/{session}/revert");
    let inside = shop.post(&path, json!({ "messageID": answer, "partID": said[1]["id"] })).await;
    assert_eq!(inside.status, 400);
    assert!(inside.text().contains("Leave partID out"), "{}", inside.text());
    assert!(shop.path("a.txt").exists());
    for (message, part) in [(&prompt, &of_prompt[0]["id"]), (&answer, &of_answer[0]["id"]), (&answer, &said[0]["id"])] {
        let reverted = shop.post(&path, json!({ "messageID": message, "partID": part })).await.json();
        assert_eq!(reverted["revert"]["messageID"], prompt.as_str(), "{reverted}");
        assert!(!shop.path("a.txt").exists());
        shop.unrevert(&session).await;
        assert!(shop.path("a.txt").exists());
    }
}
