//! Search engines on loopback that speak as the real ones do, and refuse what they refuse.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tolka_agent::native::model::{Endpoint, Secret};
use tolka_agent::native::permission::Rules;
use tolka_agent::native::web::{Engine, Search, Web};
use tolka_facts::ToolKind;

use crate::dialects::smithy;
use crate::hall::Hall;

const KEY: &str = "key-of-nobody";

/// What it was asked, and where it is.
async fn engine(kind: Engine) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<(String, Value)>>>::default();
    let heard = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
            let mut body = vec![0; length];
            socket.read_exact(&mut body).await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (status, answer) = answer(kind, &head, &body);
            heard.lock().unwrap().push((head, body));
            let answer = answer.to_string();
            let length = answer.len();
            let head =
                format!("HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
            let _ = socket.write_all(format!("{head}connection: close\r\n\r\n{answer}").as_bytes()).await;
        }
    });
    (url, asked)
}

/// As their documents show it.
fn answer(kind: Engine, head: &str, body: &Value) -> (u16, Value) {
    let line = head.lines().next().unwrap();
    if line.contains("teapot") || body["query"] == "teapot" {
        return (429, json!({ "error": format!("too many, {KEY}") }));
    }
    match kind {
        Engine::SearXng if line.starts_with("GET /search?q=rust+sse&format=json ") => (
            200,
            json!({
                "query": "rust sse", "number_of_results": 2, "answers": [], "suggestions": [],
                "results": [
                    { "url": "https://a.test/", "title": "A", "content": "About A", "engine": "x", "score": 1.0 },
                    { "url": "https://b.test/", "title": "B", "content": "", "publishedDate": null },
                    { "url": "", "title": "no address" },
                ],
            }),
        ),
        Engine::Brave
            if line.starts_with("GET /web/search?q=rust+sse&count=2 ")
                && head.contains(&format!("x-subscription-token: {KEY}")) =>
        {
            (
                200,
                json!({
                    "type": "search", "query": { "original": "rust sse" }, "mixed": {},
                    "web": { "type": "search", "results": [
                        { "title": "A", "url": "https://a.test/", "description": "About <strong>A</strong> &amp; more", "language": "en" },
                        { "title": "B", "url": "https://b.test/", "description": "" },
                        { "title": "C", "url": "https://c.test/", "description": "one too many" },
                    ] },
                }),
            )
        }
        Engine::Tavily
            if line.starts_with("POST /search ") && head.contains(&format!("authorization: Bearer {KEY}")) =>
        {
            assert_eq!(*body, json!({ "query": "rust sse", "max_results": 2 }));
            (
                200,
                json!({
                    "query": "rust sse", "answer": null, "images": [], "response_time": 0.5,
                    "results": [
                        { "title": "A", "url": "https://a.test/", "content": "About A & more", "score": 0.9, "raw_content": null },
                        { "title": "B", "url": "https://b.test/", "content": "", "score": 0.1 },
                    ],
                }),
            )
        }
        Engine::SearXng => (403, json!({})),
        Engine::Brave | Engine::Tavily => {
            (401, json!({ "detail": { "error": "Unauthorized: missing or invalid API key." } }))
        }
    }
}

fn searching(engine: Engine, url: &str, key: Option<&str>) -> Web {
    let mut endpoint = Endpoint::new(url);
    endpoint.key = key.map(Secret::new);
    Web { search: Some(Arc::new(Search { engine, endpoint })), ..Web::default() }
}

#[tokio::test]
async fn each_engine_is_asked_in_its_way_and_answers_in_ours() {
    for kind in Engine::ALL {
        let (url, asked) = engine(kind).await;
        let key = kind.needs_key().then_some(KEY);
        let mut hall = Hall::on_the_web(searching(kind, &url, key));
        let ended = hall.call("websearch", json!({ "query": "rust sse", "num_results": "2" })).await;
        let about = if kind == Engine::SearXng { "About A" } else { "About A & more" };
        let results = json!([
            { "title": "A", "url": "https://a.test/", "snippet": about },
            { "title": "B", "url": "https://b.test/", "snippet": "" },
        ]);
        let output = ended.went_well().output();
        assert_eq!(output["metadata"], json!({ "query": "rust sse", "count": 2, "results": results }), "{kind}");
        assert_eq!(output["output"], format!("1. A\n   https://a.test/\n   {about}\n2. B\n   https://b.test/"));
        let told = json!({ "type": "web_search_result", "query": "rust sse", "results": results, "count": 2 });
        assert_eq!(smithy(&hall, &ended), told);
        assert_eq!(ended.tool.kind, ToolKind::Fetch);
        assert_eq!(asked.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_engine_that_refuses_is_an_error_that_says_what_to_do() {
    for (kind, words) in [
        (Engine::SearXng, "`json` under `search.formats`"),
        (Engine::Brave, "`search_key` in tolka.toml"),
        (Engine::Tavily, "`search_key` in tolka.toml"),
    ] {
        let (url, _asked) = engine(kind).await;
        let mut hall = Hall::on_the_web(searching(kind, &url, None));
        let query = if kind == Engine::SearXng { "something else" } else { "rust sse" };
        hall.call("websearch", json!({ "query": query })).await.failed(words);
        let mut hall = Hall::on_the_web(searching(kind, &url, Some(KEY)));
        let ended = hall.call("websearch", json!({ "query": "teapot" })).await;
        ended.failed("it wants no more questions for now");
        assert!(!ended.error().contains(KEY), "{}", ended.error());
    }
    let mut hall = Hall::on_the_web(searching(Engine::SearXng, "http://127.0.0.1:1", None));
    hall.call("websearch", json!({ "query": "x" })).await.failed("it cannot be reached");
}

#[tokio::test]
async fn without_an_engine_there_is_no_search() {
    let mut hall = Hall::on_the_web(Web::default());
    let offered = |hall: &Hall| hall.tools.specs("build").into_iter().any(|spec| spec.name == "websearch");
    assert!(!offered(&hall));
    hall.call("websearch", json!({ "query": "x" })).await.failed("no search engine is configured here");
    let (url, asked) = engine(Engine::SearXng).await;
    let mut hall = Hall::made(Rules::default(), |_| Vec::new(), searching(Engine::SearXng, &url, None));
    assert!(offered(&hall));
    hall.call("websearch", json!({ "query": "rust sse" })).await.went_well();
    assert_eq!(hall.asked()[0].permission, "websearch");
    hall.call("websearch", json!({})).await.failed("`query` is missing");
    hall.call("websearch", json!({ "query": "x".repeat(2000) })).await.failed("longer than 1000 bytes");
    assert_eq!(asked.lock().unwrap().len(), 1);
}
