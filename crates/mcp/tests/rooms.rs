//! Whose servers are kept, and for how long.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::{Client, Url};
use tolka_mcp::{Config, Hub, Piped, Program, Reach, State, Ways};

#[derive(Debug)]
struct Nowhere;

impl Ways for Nowhere {
    fn start(&self, _: &Program<'_>) -> std::io::Result<Piped> {
        Err(std::io::Error::other("nothing is started in these tests"))
    }

    fn client(&self, _: &Url) -> Result<Client, String> {
        Err("nobody is reached in these tests".to_owned())
    }
}

fn config(name: &str) -> Config {
    Config::new(name, Reach::Program { command: vec![name.to_owned()], env: Vec::new() })
}

fn hub() -> Hub {
    Hub::new(vec![config("files")], Arc::new(Nowhere))
}

fn folder(n: usize) -> PathBuf {
    Path::new("/folder").join(n.to_string())
}

#[tokio::test]
async fn folders_that_are_worked_in_keep_their_servers_and_the_others_make_room() {
    let hub = hub();
    let servers: Vec<_> = (0..16).map(|n| hub.of_folder(&folder(n)).servers()[0].clone()).collect();
    for n in 100..200 {
        assert_eq!(hub.seen_in_folder(&folder(n))[0].status.state, State::Idle);
        hub.seen_in_session("ses", &folder(1));
    }
    let is_kept = |n: usize| Arc::ptr_eq(&servers[n], &hub.of_folder(&folder(n)).servers()[0]);
    assert!((0..16).all(is_kept), "looking is no use");
    is_kept(0);
    hub.of_folder(&folder(16));
    assert!((2..16).all(is_kept) && is_kept(0) && !is_kept(1), "the one that was not used for longest goes");
}

#[tokio::test]
async fn what_was_added_stays_and_more_than_can_be_kept_is_refused() {
    let hub = hub();
    let own = hub.add_to_session("ses_0", &folder(0), config("own")).unwrap();
    let beside = hub.add_to_folder(&folder(0), config("beside")).unwrap();
    for n in 1..100 {
        hub.of_session("ses_1", &folder(n));
    }
    let refused = (1..100).find_map(|n| hub.add_to_session(&format!("ses_{n}"), &folder(0), config("own")).err());
    assert!(refused.unwrap().to_string().contains("to 64 sessions and folders already"));
    let kit = hub.of_session("ses_0", &folder(0));
    assert!(Arc::ptr_eq(kit.get("own").unwrap(), &own) && Arc::ptr_eq(kit.get("beside").unwrap(), &beside));
    assert!(hub.add_to_session("ses_0", &folder(0), config("more")).is_ok(), "it has its place already");
    let names: Vec<String> =
        hub.seen_in_session("ses_0", &folder(0)).into_iter().map(|seen| seen.config.name).collect();
    assert_eq!(names, ["files", "beside", "own", "more"]);
    hub.forget("ses_1");
    hub.add_to_session("ses_99", &folder(0), config("own")).unwrap();
}
