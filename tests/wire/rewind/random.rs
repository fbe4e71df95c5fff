//! A long life by chance: turns, commands, a person who edits in between, rewinds, undos, forks, restarts and kills. After
//! every step the folder must be what a model of it says, the person's repository untouched, and whatever a restore took
//! away must be in a snapshot.
//!
//! `TOLKA_STEPS=500` makes it a longer one; `TOLKA_SEED=…` makes it choose the same again.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tolka_scripted::Call;

use super::stage::{Rewinds, Stage, bash, catch_up, names, prompts, put, take_up, write};
use super::tree::{Entry, Tree, assert_same, quoted, repository, tree};
use crate::http::{get, try_call};
use crate::kill::{Chance, number};
use crate::native::stage::Talk;
use crate::server::{Server, free_port};

const PATHS: [&str; 10] = [
    "a.txt",
    "src/lib.rs",
    "src/main.rs",
    "docs/read me.md",
    "docs/deep/er/x",
    "näme — ☃",
    "-dash",
    "quo\"te's",
    "tool.sh",
    "last",
];

/// Who brought a state about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// A turn of the session, or a restore in it.
    Session,
    Person,
}

/// A prompt, and the state before it.
#[derive(Debug, Clone)]
struct Asked {
    message: String,
    state: usize,
}

/// A rewind that can be taken back.
#[derive(Debug, Clone)]
struct Back {
    /// The state before it.
    state: usize,
    /// Prompts that were shown before it.
    shown: usize,
    /// Whether files went back.
    files: bool,
}

struct Life {
    stage: Stage,
    server: Option<Server>,
    port: u16,
    talk: Talk,
    chance: Chance,
    /// What the folder was, and who made it so out of the one before.
    states: Vec<(Tree, Who)>,
    /// Those that are in the conversation, or were until a rewind that can be taken back.
    asked: Vec<Asked>,
    /// How many of them are shown.
    shown: usize,
    backs: Vec<Back>,
    repository: Tree,
    edits: u64,
}

#[test]
fn whatever_happens_files_are_as_promised() {
    let seed = number("TOLKA_SEED", std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    let steps = number("TOLKA_STEPS", 40);
    println!("{steps} steps, TOLKA_SEED={seed}");
    let mut life = Life::begin(seed);
    for step in 0..steps {
        life.step(step);
    }
    life.stage.check_stores();
}

impl Life {
    fn begin(seed: u64) -> Self {
        let stage = Stage::set();
        let folder = stage.workspace();
        put(&folder, ".gitignore", "ignored/\n*.log\n");
        put(&folder, "ignored/cache", "one");
        put(&folder, "a.txt", "a\n");
        put(&folder, "src/lib.rs", "fn main() {}\n");
        stage.commit_all();
        put(&folder, "untracked", "by the person");
        let port = free_port();
        let server = stage.serve_at(port);
        let talk = Talk::begin(server.address);
        let (states, repository) = (vec![(stage.tree(), Who::Person)], repository(&folder));
        let (asked, backs) = (Vec::new(), Vec::new());
        let chance = Chance(seed);
        Life { stage, server: Some(server), port, talk, chance, states, asked, shown: 0, backs, repository, edits: 0 }
    }

    fn step(&mut self, step: u64) {
        let what = match self.chance.below(20) {
            0..=5 => self.turn(),
            6..=9 => self.person_edits(),
            10..=12 => self.rewind(),
            13..=14 => self.undo(),
            15 => self.restore_checkpoint(),
            16 => self.fork(),
            17 => self.kill_idle(),
            18 => self.kill_in_rewind(),
            _ => self.person_touches(),
        };
        println!("{step}: {what}");
        assert_same(&self.stage.tree(), self.now(), &format!("step {step}: {what}"));
        assert_same(&repository(&self.stage.workspace()), &self.repository, &format!("the repository after {what}"));
        self.check_shown();
    }

    fn now(&self) -> &Tree {
        &self.states.last().unwrap().0
    }

    fn add_state(&mut self, who: Who) {
        let tree = self.stage.tree();
        self.states.push((tree, who));
    }

    // What happens.

    fn turn(&mut self) -> String {
        let state = self.states.len() - 1;
        let calls = (0..1 + self.chance.below(3)).map(|_| self.call()).collect::<Vec<_>>();
        let described = format!("a turn: {:?}", calls.iter().map(|call| call.input.to_string()).collect::<Vec<_>>());
        self.stage.turn(&mut self.talk, calls);
        let message = prompts(&self.talk).pop().unwrap();
        self.asked.truncate(self.shown);
        self.asked.push(Asked { message, state });
        self.shown += 1;
        self.backs.clear();
        self.add_state(Who::Session);
        described
    }

    /// The model never says the same twice.
    fn words(&mut self) -> String {
        self.edits += 1;
        let lines = self.chance.below(4);
        (0..lines).map(|line| format!("{} {line}\n", self.edits)).collect::<String>() + &self.edits.to_string()
    }

    fn path(&mut self) -> &'static str {
        PATHS[self.chance.below(PATHS.len() as u64) as usize]
    }

    fn call(&mut self) -> Call {
        let (path, words) = (self.path(), self.words());
        let (name, folder) = (quoted(Path::new(path)), quoted(Path::new(path).parent().unwrap()));
        let folder = if folder == "''" { ".".to_owned() } else { folder };
        match self.chance.below(7) {
            0 => {
                let new = format!("new/{}", self.edits);
                write(&new, &words)
            }
            1..=2 => bash(&format!("mkdir -p -- {folder} && rm -f -- {name} && printf '%s' '{words}' > ./{name}")),
            3 => bash(&format!("rm -f -- {name}; echo x > ignored/cache")),
            4 => bash(&format!("test ! -f {name} || chmod +x -- {name}")),
            5 => bash(&format!("mkdir -p -- {folder} && rm -f -- {name} && ln -s -- 'where {words}' {name}")),
            _ => bash(&format!(
                "mkdir -p -- made/{0} && printf '%s' '{words}' > made/{0}/x && touch made/{0}/empty",
                self.edits
            )),
        }
    }

    fn person_edits(&mut self) -> String {
        let (path, words) = (self.path(), self.words());
        let place = self.stage.workspace().join(path);
        let _ = std::fs::remove_file(&place);
        match self.chance.below(4) {
            0 => {}
            1 => {
                put(&self.stage.workspace(), path, &words);
                std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
            }
            _ => put(&self.stage.workspace(), path, &words),
        }
        self.add_state(Who::Person);
        format!("the person edits {path}")
    }

    /// As a build does: the same bytes, another time.
    fn person_touches(&mut self) -> String {
        let path = self.path();
        let place = self.stage.workspace().join(path);
        if place.is_file() && !place.is_symlink() {
            let bytes = std::fs::read(&place).unwrap();
            std::fs::write(&place, bytes).unwrap();
        }
        format!("the person saves {path} as it is")
    }

    fn rewind(&mut self) -> String {
        let Some((to, body, what)) = self.choose_rewind() else { return "nothing to rewind".to_owned() };
        let overwrite = body["overwrite"] == true;
        let expected = self.oracle(self.asked[to].state, overwrite);
        let preview = self.talk.ask("rewind", &with(&body, "preview", json!(true))).expect(200);
        assert_same(&self.stage.tree(), self.now(), "a preview changes nothing");
        let done = self.talk.ask("rewind", &body).expect(200);
        if what != "conversation" {
            assert_eq!(names(&preview["files"]), names(&done["files"]), "{preview} {done}");
            assert_eq!(preview["kept"], done["kept"]);
        }
        self.went_back(to, what, expected);
        format!("rewind to before {to}, {body}")
    }

    fn choose_rewind(&mut self) -> Option<(usize, Value, &'static str)> {
        if self.asked.is_empty() {
            return None;
        }
        let to = self.chance.below(self.asked.len() as u64) as usize;
        let what = ["both", "both", "files", "conversation"][self.chance.below(4) as usize];
        let overwrite = self.chance.below(4) == 0;
        Some((to, json!({ "message": self.asked[to].message, "what": what, "overwrite": overwrite }), what))
    }

    /// What the folder must be after files went back to a state.
    fn oracle(&self, target: usize, overwrite: bool) -> Tree {
        let (then, mut tree) = (&self.states[target].0, self.now().clone());
        let paths = then.keys().chain(self.now().keys()).cloned().collect::<BTreeSet<PathBuf>>();
        for path in paths.into_iter().filter(|path| !path.starts_with("ignored")) {
            let changed_by = |who: Who| {
                let pairs = self.states[target..].windows(2);
                pairs.into_iter().any(|pair| pair[1].1 == who && pair[0].0.get(&path) != pair[1].0.get(&path))
            };
            let is_ours = changed_by(Who::Session) && (overwrite || !changed_by(Who::Person));
            match then.get(&path) {
                _ if !is_ours => {}
                Some(entry) => drop(tree.insert(path, entry.clone())),
                None => drop(tree.remove(&path)),
            }
        }
        tree
    }

    fn went_back(&mut self, to: usize, what: &str, expected: Tree) {
        let before = self.states.len() - 1;
        if what != "conversation" {
            self.check_nothing_lost(&expected);
            self.states.push((expected, Who::Session));
        }
        self.backs.push(Back { state: before, shown: self.shown, files: what != "conversation" });
        if what != "files" {
            self.shown = to;
        }
    }

    /// Whatever is no longer in the folder is in a snapshot.
    fn check_nothing_lost(&self, after: &Tree) {
        for (path, entry) in self.now().iter().filter(|(path, entry)| after.get(*path) != Some(entry)) {
            let bytes = match entry {
                Entry::File { bytes, .. } => bytes.clone(),
                Entry::Link(to) => to.as_os_str().as_encoded_bytes().to_vec(),
            };
            assert!(self.stage.holds(&bytes), "{path:?} is lost");
        }
    }

    fn undo(&mut self) -> String {
        let Some(back) = self.backs.pop() else {
            self.talk.ask("unrewind", &json!({})).expect(409);
            return "nothing to undo".to_owned();
        };
        let expected = self.oracle(back.state, false);
        self.talk.unrewind();
        if back.files {
            self.check_nothing_lost(&expected);
            self.states.push((expected, Who::Session));
        }
        self.shown = back.shown;
        "undo".to_owned()
    }

    /// Files alone, to a checkpoint by its name, also of a turn that a rewind has hidden.
    fn restore_checkpoint(&mut self) -> String {
        if self.asked.is_empty() {
            return "no checkpoint".to_owned();
        }
        let to = self.chance.below(self.asked.len() as u64) as usize;
        let started = self.talk.told("turn_started");
        let prompt =
            self.talk.told("prompt_queued").into_iter().find(|p| p["message"] == self.asked[to].message.as_str());
        let turn = &prompt.unwrap()["turn"];
        let checkpoint = started.iter().find(|started| started["turn"] == *turn).unwrap()["checkpoint"].clone();
        assert!(checkpoint.is_string(), "every turn has its checkpoint");
        let expected = self.oracle(self.asked[to].state, false);
        self.talk.ask("rewind", &json!({ "checkpoint": checkpoint })).expect(200);
        self.went_back(to, "files", expected);
        format!("restore of the checkpoint before {to}")
    }

    fn fork(&mut self) -> String {
        if self.shown == 0 {
            return "nothing to fork".to_owned();
        }
        let to = self.chance.below(self.shown as u64) as usize;
        let own = self.chance.below(2) == 0;
        let body = json!({ "before": self.asked[to].message, "workspace": if own { "own" } else { "in_place" } });
        let fork = self.talk.ask("fork", &body).expect(201);
        let (id, folder) = (fork["id"].as_str().unwrap(), PathBuf::from(fork["workspace"].as_str().unwrap()));
        if own {
            let mut then = self.states[self.asked[to].state].0.clone();
            then.retain(|path, _| !path.starts_with("ignored"));
            assert_same(&tree(&folder), &then, "the folder of a fork");
        } else {
            assert_eq!(folder.canonicalize().unwrap(), self.stage.workspace().canonicalize().unwrap());
        }
        let view = get(self.talk.address, &format!("/v1/sessions/{id}/view?turns=100")).expect(200);
        assert_eq!(shown_prompts(&view).len(), to, "{view}");
        let path = format!("/v1/sessions/{id}?purge=true");
        assert!(try_call(self.talk.address, "DELETE", &path, &[], &[]).unwrap().status < 300);
        assert!(!own || !folder.exists(), "a purged fork takes its folder along");
        format!("fork before {to}, own: {own}")
    }

    fn kill_idle(&mut self) -> String {
        self.server.take().unwrap().kill();
        self.come_back();
        "kill at rest".to_owned()
    }

    fn come_back(&mut self) {
        let server = self.stage.serve_at(self.port);
        self.talk = take_up(&server, self.talk.session.clone());
        self.server = Some(server);
    }

    fn kill_in_rewind(&mut self) -> String {
        let Some((to, body, what)) = self.choose_rewind() else { return "nothing to rewind".to_owned() };
        let expected = self.oracle(self.asked[to].state, body["overwrite"] == true);
        let told = self.rewinds();
        let (address, path) = (self.talk.address, format!("/v1/sessions/{}/rewind", self.talk.session));
        let text = body.to_string();
        let asking = std::thread::spawn(move || {
            let _ = try_call(address, "POST", &path, &[("Content-Type", "application/json")], text.as_bytes());
        });
        std::thread::sleep(Duration::from_millis(self.chance.below(120)));
        self.server.take().unwrap().kill();
        asking.join().unwrap();
        self.come_back();
        let is_done = self.rewinds() > told;
        if is_done {
            self.went_back(to, what, expected);
        }
        format!("kill in a rewind to before {to}, {body}; done: {is_done}")
    }

    fn rewinds(&mut self) -> usize {
        catch_up(&mut self.talk);
        self.talk.told("rewound").len()
    }

    fn check_shown(&mut self) {
        let view = get(self.talk.address, &format!("/v1/sessions/{}/view?turns=1000", self.talk.session)).expect(200);
        let should: Vec<&str> = self.asked[..self.shown].iter().map(|asked| asked.message.as_str()).collect();
        assert_eq!(shown_prompts(&view), should);
    }
}

fn shown_prompts(view: &Value) -> Vec<&str> {
    let messages = view["messages"].as_array().unwrap().iter();
    let shown = messages.filter(|message| message["role"] == "user" && message["hidden"] != true);
    shown.map(|message| message["id"].as_str().unwrap()).collect()
}

fn with(body: &Value, name: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[name] = value;
    body
}
