//! A provider that plays a script, a server that works with it, and a folder to work in.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tolka_dialect::Dialect;
use tolka_scripted::{Script, Scripted};

use crate::http::{get, new_session, post};
use crate::server::{House, Server};
use crate::sse::Stream;

/// The wire that the provider is asked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Wire::OpenAi => "openai",
            Wire::Anthropic => "anthropic",
        }
    }
}

pub(crate) struct Stage {
    pub(crate) house: House,
    pub(crate) provider: Scripted,
    config: PathBuf,
}

impl Stage {
    pub(crate) fn set(wire: Wire, script: Script) -> Self {
        Stage::sized(wire, script, "context = 100000\noutput = 8000")
    }

    /// `sizes`: what the configuration knows of how much the model takes.
    pub(crate) fn sized(wire: Wire, script: Script, sizes: &str) -> Self {
        Stage::configured(wire, script, sizes, "")
    }

    /// With more of a configuration.
    pub(crate) fn with(wire: Wire, script: Script, more: &str) -> Self {
        Stage::configured(wire, script, "context = 100000\noutput = 8000", more)
    }

    fn configured(wire: Wire, script: Script, sizes: &str, more: &str) -> Self {
        let (house, provider) = (House::new(), Scripted::start(script).unwrap());
        let base = match wire {
            Wire::OpenAi => provider.openai_url(),
            Wire::Anthropic => provider.anthropic_url(),
        };
        let config = house.data().with_file_name("tolka.toml");
        let text = format!(
            r#"model = "scripted/story"
[providers.scripted]
wire = "{}"
base_url = "{base}"
[[providers.scripted.models]]
id = "story"
{sizes}
images = true
price = {{ input = 1.0, output = 10.0, cache_read = 0.1, cache_write = 1.25 }}
{more}"#,
            wire.name()
        );
        std::fs::write(&config, text).unwrap();
        Stage { house, provider, config }
    }

    /// Adds to the configuration.
    pub(crate) fn configure(&self, more: &str) {
        let text = std::fs::read_to_string(&self.config).unwrap();
        std::fs::write(&self.config, format!("{text}\n{more}")).unwrap();
    }

    /// The folder of `tests/data/native/workspace`, copied.
    pub(crate) fn furnish(&self) {
        copy(&data("workspace"), &self.house.workspace());
    }

    pub(crate) fn serve(&self) -> Server {
        self.house.serve(&["--config", self.config.to_str().unwrap(), "--agent", "native"])
    }
}

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/native").join(name)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => {
                std::fs::copy(entry.path(), &to).unwrap();
                // All of one age: searches tell the latest first, and then by name.
                std::fs::File::open(&to).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            }
        }
    }
}

/// A session, and all that was told of it so far.
pub(crate) struct Talk {
    pub(crate) address: SocketAddr,
    pub(crate) session: String,
    stream: Stream,
    pub(crate) facts: Vec<Value>,
}

impl Talk {
    pub(crate) fn begin(address: SocketAddr) -> Self {
        Talk::take_up(address, new_session(address))
    }

    /// From its first fact.
    pub(crate) fn take_up(address: SocketAddr, session: String) -> Self {
        let stream = Stream::open(address, &format!("/v1/sessions/{session}/events"), None).unwrap();
        Talk { address, session, stream, facts: Vec::new() }
    }

    pub(crate) fn prompt(&self, text: &str) -> String {
        self.send("prompt", &json!({ "text": text }))["turn"].as_str().unwrap().to_owned()
    }

    pub(crate) fn steer(&self, text: &str) {
        self.send("prompt", &json!({ "text": text, "steer": true }));
    }

    fn send(&self, what: &str, body: &Value) -> Value {
        post(self.address, &format!("/v1/sessions/{}/{what}", self.session), body).expect(202)
    }

    pub(crate) fn cancel(&self) {
        post(self.address, &format!("/v1/sessions/{}/cancel", self.session), &json!({})).expect(200);
    }

    pub(crate) fn answer(&self, request: &Value, body: &Value) {
        let request = request["data"]["request"].as_str().unwrap();
        post(self.address, &format!("/v1/sessions/{}/answers/{request}", self.session), body).expect(204);
    }

    /// All that a new reader gets of it in a dialect.
    pub(crate) fn in_dialect(&self, address: SocketAddr, dialect: Dialect) -> Vec<Value> {
        let (mut told, mut position) = (Vec::new(), json!("0"));
        loop {
            let after = position.as_str().unwrap();
            let path = format!("/v1/sessions/{}/events?dialect={dialect}&format=json&after={after}", self.session);
            let page = get(address, &path).expect(200);
            told.extend(page["events"].as_array().unwrap().iter().map(|event| event["data"].clone()));
            if page["more"] != true {
                return told;
            }
            position = page["position"].clone();
        }
    }

    /// The next fact.
    pub(crate) fn next(&mut self) -> &Value {
        let event = self.stream.next_told().expect("the stream goes on");
        self.facts.push(crate::sse::data(&event));
        self.facts.last().unwrap()
    }

    /// Reads on to a fact that `is_it`.
    pub(crate) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            if is_it(self.next()) {
                return self.facts.last().unwrap().clone();
            }
        }
    }

    pub(crate) fn until_type(&mut self, kind: &str) -> Value {
        self.until(|fact| fact["type"] == kind)
    }

    /// Facts of this type so far, their data alone.
    pub(crate) fn told(&self, kind: &str) -> Vec<&Value> {
        self.facts.iter().filter(|fact| fact["type"] == kind).map(|fact| &fact["data"]).collect()
    }

    /// All that the agent said.
    pub(crate) fn said(&self) -> String {
        self.told("text_appended").iter().map(|text| text["text"].as_str().unwrap()).collect()
    }

    /// The last state of a call that ended, by a part of its input.
    pub(crate) fn ended(&self, name: &str, input: &str) -> Value {
        let mut merged = serde_json::Map::<String, Value>::new();
        let changes = self.told("tool_changed");
        let is_it = |change: &&&Value| change["input"].to_string().contains(input);
        let call = changes.iter().filter(is_it).map(|change| &change["call"]).next_back();
        let call = call.unwrap_or_else(|| panic!("no {name} with {input}"));
        for change in changes.iter().filter(|change| change["call"] == *call) {
            merged.extend(change.as_object().unwrap().clone());
        }
        assert_eq!(merged["name"], name);
        Value::Object(merged)
    }
}
