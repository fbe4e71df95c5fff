//! A page of somebody else's gets nothing here either.

use serde_json::json;

use crate::agent::Obedient;
use crate::chat::message;
use crate::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_page_can_neither_prompt_nor_read() {
    let house = House::of(Obedient::ungated()).await;
    let foreign: [&[(&str, &str)]; 3] = [
        &[("Origin", "http://evil.example")],
        &[("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")],
    ];
    for headers in foreign {
        for (method, path) in [
            ("POST", "/api/chat"),
            ("GET", "/api/chat"),
            ("POST", "/api/dialogs"),
            ("GET", "/api/dialogs"),
            ("PATCH", "/api/dialogs/current?id=x"),
            ("DELETE", "/api/dialogs/x"),
            ("GET", "/health"),
        ] {
            let refused = house.open(method, path, headers, Some(message("hi").to_string())).await;
            assert_eq!(refused.header("access-control-allow-origin"), None);
            let refused = refused.whole().await;
            assert_eq!(refused.status, 403, "{method} {path}");
            assert!(refused.json()["detail"].as_str().unwrap().contains("another origin"), "{}", refused.text());
        }
    }
    assert_eq!(house.get("/api/dialogs").await.json(), json!({ "dialogs": [] }));
}
