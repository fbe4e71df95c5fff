//! A server with the native agent, whose model does what the test says, in a folder that is a git repository.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Call, Script, Scripted};

use super::tree::{Tree, tree};
use crate::http::{Response, get, post};
use crate::native::stage::Talk;
use crate::server::{House, Server, until};

pub(crate) struct Stage {
    pub(crate) house: House,
    pub(crate) provider: Scripted,
    config: PathBuf,
}

impl Stage {
    pub(crate) fn set() -> Self {
        let (house, provider) = (House::new(), Scripted::start(Script::default()).unwrap());
        let config = house.data().with_file_name("tolka.toml");
        let text = format!(
            "model = \"scripted/hands\"\n[permissions]\nbash = \"allow\"\nedit = \"allow\"\n[providers.scripted]\nwire = \
             \"openai\"\nbase_url = \"{}\"\n[[providers.scripted.models]]\nid = \"hands\"\ncontext = 1000000\noutput = \
             8000\n",
            provider.openai_url()
        );
        std::fs::write(&config, text).unwrap();
        Stage { house, provider, config }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.house.workspace()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.workspace())
    }

    pub(crate) fn serve(&self) -> Server {
        self.serve_at(0)
    }

    pub(crate) fn serve_at(&self, port: u16) -> Server {
        Server::start(&self.house, port, &["--config", self.config.to_str().unwrap(), "--agent", "native"])
    }

    /// A user's repository, with what is in the folder committed.
    pub(crate) fn commit_all(&self) {
        for args in [&["init", "-q"] as &[&str], &["add", "-A"], &["commit", "-q", "--allow-empty", "-m", "x"]] {
            let settings = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "gc.auto=0"];
            let done = Command::new("git").current_dir(self.workspace()).args(settings).args(args).status().unwrap();
            assert!(done.success());
        }
    }

    /// A turn in which the model runs these calls one after the other, to its end.
    pub(crate) fn turn(&self, talk: &mut Talk, calls: Vec<Call>) -> Value {
        self.rehearse(calls);
        talk.prompt("Go on.");
        let ended = talk.until_type("turn_ended");
        assert_eq!(ended["data"]["stop"], "end_turn", "{ended}");
        ended
    }

    /// What the model does next.
    pub(crate) fn rehearse(&self, calls: Vec<Call>) {
        let steps = calls.into_iter().map(|call| Answer::beats([Beat::Call(call)]));
        self.provider.add(steps.chain([Answer::text("Done.")]));
    }

    /// Stock git finds every store sound.
    pub(crate) fn check_stores(&self) {
        for store in std::fs::read_dir(self.house.data().join("checkpoints")).into_iter().flatten() {
            let store = store.unwrap().path();
            if !store.join("objects").is_dir() {
                continue;
            }
            let mut fsck = Command::new("git");
            fsck.arg("--git-dir").arg(&store).args(["fsck", "--full", "--no-dangling"]);
            let output = fsck.output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && !words.contains("missing"), "{}: {words}", store.display());
        }
    }

    /// Whether some snapshot holds these bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        let hash = blob_name(bytes);
        let stores = std::fs::read_dir(self.house.data().join("checkpoints")).unwrap();
        stores.map(|store| store.unwrap().path()).any(|store| {
            let found = Command::new("git").arg("--git-dir").arg(&store).args(["cat-file", "-e", &hash]).output();
            found.unwrap().status.success()
        })
    }
}

/// What git calls a file with these bytes.
fn blob_name(bytes: &[u8]) -> String {
    let mut git = Command::new("git");
    git.args(["hash-object", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = git.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

pub(crate) fn write(path: &str, content: &str) -> Call {
    Call::new("write", json!({ "filePath": path, "content": content }))
}

pub(crate) fn bash(command: &str) -> Call {
    Call::new("bash", json!({ "command": command, "description": "Does it" }))
}

pub(crate) trait Rewinds {
    fn ask(&self, what: &str, body: &Value) -> Response;

    fn rewind(&self, message: &str, what: &str) -> Value {
        self.ask("rewind", &json!({ "message": message, "what": what })).expect(200)
    }

    fn preview(&self, message: &str, what: &str) -> Value {
        self.ask("rewind", &json!({ "message": message, "what": what, "preview": true })).expect(200)
    }

    fn unrewind(&self) -> Value {
        self.ask("unrewind", &json!({})).expect(200)
    }
}

impl Rewinds for Talk {
    fn ask(&self, what: &str, body: &Value) -> Response {
        post(self.address, &format!("/v1/sessions/{}/{what}", self.session), body)
    }
}

/// The prompts of a session, in their order.
pub(crate) fn prompts(talk: &Talk) -> Vec<String> {
    talk.told("prompt_queued").iter().map(|prompt| prompt["message"].as_str().unwrap().to_owned()).collect()
}

/// A session after a restart, when nothing goes on in it, with all that it has told so far.
pub(crate) fn take_up(server: &Server, session: String) -> Talk {
    let mut talk = Talk::take_up(server.address, session);
    catch_up(&mut talk);
    talk
}

/// Waits until nothing goes on in a session, and reads all that it has told.
pub(crate) fn catch_up(talk: &mut Talk) {
    let last = until("the session to rest", || {
        let row = get(talk.address, &format!("/v1/sessions/{}", talk.session)).expect(200);
        let is_idle = row["busy"] == false && row["queued"] == 0;
        is_idle.then(|| row["position"].as_str().unwrap().parse::<u64>().unwrap())
    });
    while talk.facts.last().is_none_or(|fact| fact["seq"].as_u64().unwrap() < last) {
        talk.next();
    }
}

/// The names of what a restore wrote, or kept.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

pub(crate) fn put(folder: &Path, path: impl AsRef<Path>, content: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}
