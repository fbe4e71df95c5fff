//! Tools of MCP servers: what they are called, who has leave, and what they give.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Url};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tolka_agent::native::model::Input;
use tolka_mcp::{Config, Hub, Piped, Program, Reach, State, Ways};

use crate::hall::{Hall, Person};

/// Servers in this process: each has the tools that its command names, and gives what they were told to.
#[derive(Debug, Default)]
struct Within(Arc<Mutex<Value>>);

impl Ways for Within {
    fn start(&self, program: &Program<'_>) -> std::io::Result<Piped> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (stdout, stdin) = tokio::io::split(ours);
        let talk = tokio::spawn(talk(theirs, program.command.to_vec(), self.0.clone()));
        Ok(Piped {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(tokio::io::empty()),
            leash: Box::new(talk),
        })
    }

    fn client(&self, _: &Url) -> Result<Client, String> {
        Err("nobody is reached in these tests".to_owned())
    }
}

async fn talk(us: DuplexStream, tools: Vec<String>, given: Arc<Mutex<Value>>) -> Option<()> {
    let (read, mut write) = tokio::io::split(us);
    let mut lines = BufReader::new(read).lines();
    loop {
        let asked: Value = serde_json::from_str(&lines.next_line().await.ok()??).unwrap();
        let result = match asked["method"].as_str()? {
            "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } }),
            "tools/list" => {
                let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
                json!({ "tools": tools })
            }
            "tools/call" => given.lock().unwrap().clone(),
            _ => continue,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        write.write_all(format!("{answer}\n").as_bytes()).await.ok()?;
    }
}

fn server(name: &str, tools: &[&str]) -> Config {
    let command = tools.iter().map(|&tool| tool.to_owned()).collect();
    Config::new(name, Reach::Program { command, env: Vec::new() })
}

fn words(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Lets these be there and no others; gives the names of their tools.
async fn only(hall: &Hall, hub: &Hub, names: &[&str]) -> Vec<String> {
    let kit = hub.of_folder(&hall.workspace);
    for server in kit.servers() {
        let state = if names.contains(&server.name()) { State::Ready } else { State::Disabled };
        match state {
            State::Ready => server.connect(),
            _ => server.disconnect(),
        }
        server.until(&[state], Duration::from_secs(60)).await.expect("it does as it is told");
    }
    let specs = hall.tools.specs("build").into_iter().filter(|spec| spec.description.starts_with("[MCP server"));
    specs.map(|spec| spec.name).collect()
}

#[tokio::test]
async fn leave_for_one_servers_tool_is_leave_for_no_others() {
    let ways = Within(Arc::new(Mutex::new(words("done"))));
    let hub = Arc::new(Hub::new(vec![server("a_b", &["c"]), server("a", &["b_c", "b:c"])], Arc::new(ways)));
    let mut hall = Hall::served(hub.clone());
    hall.person = Person::Chooses("always", None);
    let mut asked = Vec::new();
    let mut seen = Vec::new();
    // In sessions of their own, each with one of the servers alone: what was allowed counts in all of them.
    for server in ["a_b", "a", "a_b", "a"] {
        hall.another_session();
        let names = only(&hall, &hub, &[server]).await;
        for name in &names {
            hall.call(name, json!({})).await.went_well();
        }
        seen.extend(names);
        asked.push(hall.asked().len());
    }
    assert_eq!(asked, [1, 3, 3, 3], "each asks for itself, once: {:?}", hall.asked());
    let patterns: Vec<_> = hall.asked().into_iter().flat_map(|asked| asked.patterns).collect();
    assert_eq!(patterns, ["a_b:c", "a:b_c", "a:b:c"]);
    assert_eq!(seen[..3], seen[3..], "and is always called the same");
    let together = only(&hall, &hub, &["a", "a_b"]).await;
    assert_eq!(together.iter().collect::<std::collections::HashSet<_>>().len(), 3, "{together:?}");
}

#[tokio::test]
async fn pictures_are_shown_and_what_is_none_becomes_words() {
    let picture = |data: &str, mime: &str| json!({ "type": "image", "data": data, "mimeType": mime });
    let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n\0rest");
    let mut content = vec![
        picture(&png, "image/jpeg"),
        picture("this is no base64!", "image/png"),
        picture(&STANDARD.encode("text"), "image/png"),
        picture(&"A".repeat(6 << 20), "image/png"),
    ];
    content.extend((0..8).map(|_| picture(&png, "image/png")));
    let ways = Within(Arc::new(Mutex::new(json!({ "content": content }))));
    let hub = Arc::new(Hub::new(vec![server("a", &["show"])], Arc::new(ways)));
    let mut hall = Hall::served(hub.clone());
    let name = only(&hall, &hub, &["a"]).await.remove(0);
    let ended = hall.call(&name, json!({})).await;
    let content = &ended.went_well().outcome.content;
    let Input::Text(words) = &content[0] else { panic!("{content:?}") };
    for said in [
        "[a picture (image/png) that is no base64]",
        "[a picture (image/png) that is no PNG, JPEG, GIF or WebP]",
        "[a picture (image/png) of 4718592 bytes, more than models take]",
        "[one more picture is left out]",
    ] {
        assert!(words.contains(said), "{words}");
    }
    let pictures = content.iter().filter(|input| matches!(input, Input::Image { mime, .. } if mime == "image/png"));
    assert_eq!(pictures.count(), 8, "and what it is its bytes say");
}
