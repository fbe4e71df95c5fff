//! The commit that a turn names is there, for stock git, when the turn is told of.

use std::fs;
use std::process::Command;

use crate::http::{new_session, prompt};
use crate::recording::short_turn;
use crate::server::House;
use crate::sse::Stream;

#[test]
fn a_turn_starts_with_a_commit_that_stock_git_can_read() {
    let house = House::new();
    let agent = house.plays(&short_turn());
    fs::write(house.workspace().join("file"), "before").unwrap();
    let server = house.serve(&["--agent", &agent]);
    let session = new_session(server.address);
    let mut facts = Stream::open(server.address, &format!("/v1/sessions/{session}/events"), None).unwrap();
    prompt(server.address, &session);
    let started = facts.fact("turn_started");
    let commit = started["data"]["checkpoint"].as_str().unwrap();
    let mut stores = fs::read_dir(house.data().join("checkpoints")).unwrap();
    let store = stores.next().unwrap().unwrap().path();
    let shown = Command::new("git").arg("--git-dir").arg(store).args(["show", &format!("{commit}:file")]).output();
    let shown = shown.unwrap();
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), "before", "{}", String::from_utf8_lossy(&shown.stderr));
    facts.fact("turn_ended");
    let left: Vec<_> = fs::read_dir(house.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["file"], "nothing of ours is in the workspace");
}
