//! MCP servers, to those who only look.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::StatusCode;
use reqwest::{Client, Url};
use serde_json::json;
use tolka_mcp::{Config, Hub, Piped, Program, Reach, Ways};

use crate::host::Host;

/// Notes where something is started, and starts nothing.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<PathBuf>>);

impl Ways for Noting {
    fn start(&self, program: &Program<'_>) -> std::io::Result<Piped> {
        self.0.lock().unwrap().push(program.workspace.to_owned());
        Err(std::io::Error::other("it was only noted"))
    }

    fn client(&self, _: &Url) -> Result<Client, String> {
        Err("nobody is reached in these tests".to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn to_look_starts_nothing_and_ends_nothing() {
    let ways = Arc::new(Noting::default());
    let reach = Reach::Program { command: vec!["files".to_owned()], env: Vec::new() };
    let off = Config { enabled: false, ..Config::new("off", reach.clone()) };
    let hub = Arc::new(Hub::new(vec![Config::new("files", reach.clone()), off], ways.clone()));
    let host = Host::with_servers(hub.clone()).await;
    let (_, made) = host.post("/session", json!({})).await;
    let session = made["id"].as_str().unwrap();
    let top = host.workspace("");
    let used = hub.of_folder(Path::new(&top)).servers()[0].clone();
    hub.add_to_session(session, Path::new(&top), Config::new("own", reach)).unwrap();

    for n in 0..40 {
        let folder = host.workspace(&format!("folder-{n}"));
        std::fs::create_dir(&folder).unwrap();
        let listed = json!({ "files": { "status": "disabled" }, "off": { "status": "disabled" } });
        for (path, expected) in [("/mcp", listed), ("/command", json!([])), ("/experimental/resource", json!({}))] {
            assert_eq!(host.get(&format!("{path}?directory={folder}")).await, (StatusCode::OK, expected), "{path}");
        }
        let (status, ours) = host.get(&format!("/v1/mcp?workspace={folder}")).await;
        let states: Vec<_> = ours["servers"].as_array().unwrap().iter().map(|server| &server["status"]).collect();
        assert_eq!((status, states), (StatusCode::OK, vec![&json!("idle"), &json!("disabled")]));
    }
    let (_, ours) = host.get(&format!("/v1/sessions/{session}/mcp")).await;
    let names: Vec<_> = ours["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["files", "off", "own"]);
    // What was looked at would have been started before this one.
    used.connect();
    used.settled(Duration::from_secs(120)).await;
    let started = ways.0.lock().unwrap().clone();
    assert!(!started.is_empty() && started.iter().all(|folder| folder == Path::new(&top)), "{started:?}");
    assert!(Arc::ptr_eq(&used, &hub.of_folder(Path::new(&top)).servers()[0]), "it was not put away for those");
}
