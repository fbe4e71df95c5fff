//! `tolka models` and `tolka.toml` as a shell sees them, with a server of the wire on this machine.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::cli::{code, stderr, stdout};
use crate::server::House;

/// Answers every request with `body`, and keeps what it was asked.
pub(crate) struct Provider {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    pub(crate) fn answering(status: &'static str, body: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        // It ends with the process: nobody waits for it.
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(mut socket) = socket else { return };
                let (kept, body) = (kept.clone(), body.clone());
                std::thread::spawn(move || {
                    let mut head = String::new();
                    let mut lines = BufReader::new(socket.try_clone().unwrap());
                    while let Ok(1..) = lines.read_line(&mut head) {
                        if head.ends_with("\r\n\r\n") {
                            break;
                        }
                    }
                    if head.is_empty() {
                        return;
                    }
                    kept.lock().unwrap().push(head);
                    let length = body.len();
                    let _ = write!(
                        socket,
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                });
            }
        });
        Provider { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn models(house: &House, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = house.command(&[&["models"], args].concat());
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn without_a_model_each_provider_says_what_it_lacks() {
    let house = House::new();
    let listed = models(&house, &[], &[]);
    assert_eq!(code(&listed), 0, "{}", stderr(&listed));
    let printed = stdout(&listed);
    assert!(printed.starts_with("no model can be used now"), "{printed}");
    assert!(printed.contains("\n- openai: no OPENAI_API_KEY\n"), "{printed}");
    assert!(printed.contains("- ollama: nothing answers at http://127.0.0.1:9\n"), "{printed}");
}

#[test]
fn a_server_on_this_machine_is_asked_for_its_models() {
    let house = House::new();
    let body =
        json!({ "object": "list", "data": [{ "id": "qwen3:8b" }, { "id": "gpt-oss:20b" }, { "object": "odd" }] });
    let provider = Provider::answering("200 OK", body.to_string());
    let listed = models(&house, &[("OLLAMA_HOST", &provider.address)], &[]);
    let printed = stdout(&listed);
    assert!(
        printed.starts_with("* ollama/qwen3:8b\n  ollama/gpt-oss:20b\n\n- anthropic: no ANTHROPIC_API_KEY"),
        "{printed}"
    );
    assert!(
        provider.asked().iter().any(|head| head.starts_with("GET /v1/models HTTP/1.1\r\n")),
        "{:?}",
        provider.asked()
    );

    let variables = [("OLLAMA_HOST", provider.address.as_str()), ("TOLKA_MODEL", "ollama/of-tomorrow")];
    let json: Value = serde_json::from_str(&stdout(&models(&house, &variables, &["--json"]))).unwrap();
    assert_eq!(json["usual"], "ollama/of-tomorrow");
    let named: Vec<&str> = json["models"].as_array().unwrap().iter().map(|m| m["model"].as_str().unwrap()).collect();
    assert_eq!(named, ["ollama/of-tomorrow", "ollama/qwen3:8b", "ollama/gpt-oss:20b"]);
    assert_eq!(json["models"][0]["usual"], true);
    assert!(
        json["unusable"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one == &json!({ "provider": "groq", "why": "no GROQ_API_KEY" }))
    );
}

#[test]
fn a_server_of_anthropics_wire_is_asked_in_its_own_way() {
    let house = House::new();
    let body = json!({ "data": [{ "type": "model", "id": "claude-of-mine" }] });
    let provider = Provider::answering("200 OK", body.to_string());
    let base = format!("http://{}", provider.address);
    let listed = models(&house, &[("ANTHROPIC_BASE_URL", &base), ("ANTHROPIC_API_KEY", "k-mine")], &[]);
    assert!(stdout(&listed).starts_with("* anthropic/claude-of-mine\n"), "{}", stdout(&listed));
    let asked = provider.asked().join("").to_ascii_lowercase();
    assert!(asked.starts_with("get /v1/models http/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nx-api-key: k-mine\r\n") && !asked.contains("authorization"), "{asked}");
}

#[test]
fn a_server_that_lists_nothing_says_so() {
    let house = House::new();
    for (status, body, why) in [
        ("200 OK", r#"{"data":[]}"#, "has no model yet; get one, as with `ollama pull qwen3`"),
        ("200 OK", "<html>", "does not list its models: its answer is no JSON"),
        ("200 OK", "{}", "does not list its models: its answer has no `data`"),
        ("500 Oh", "{}", "does not list its models: it answers 500"),
    ] {
        let provider = Provider::answering(status, body.to_owned());
        let printed = stdout(&models(&house, &[("OLLAMA_HOST", &provider.address)], &[]));
        assert!(printed.contains(why), "{printed}");
    }
}

#[test]
fn a_model_that_was_named_and_cannot_be_used_is_told_in_the_list() {
    let house = House::new();
    for (named, why) in [
        ("ollama/none", "nothing answers at http://127.0.0.1:9"),
        ("groq/x", "no GROQ_API_KEY"),
        ("nobody/x", "of no provider that is configured or known (anthropic, "),
        ("gpt-5", "a model is named provider/model"),
    ] {
        let variables = [("TOLKA_MODEL", named), ("OPENAI_API_KEY", "k")];
        let listed = models(&house, &variables, &[]);
        assert_eq!(code(&listed), 0, "{}", stderr(&listed));
        let printed = stdout(&listed);
        assert!(printed.starts_with(&format!("! {named}  {why}")), "{printed}");
        assert!(
            printed.contains("\n  openai/gpt-5 ") && !printed.contains("\n* "),
            "the rest is listed, none usual: {printed}"
        );
        let json: Value = serde_json::from_str(&stdout(&models(&house, &variables, &["--json"]))).unwrap();
        assert_eq!((&json["usual"], &json["refused"]["model"]), (&Value::Null, &json!(named)));
        assert!(json["refused"]["why"].as_str().unwrap().starts_with(why), "{json}");
        assert!(json["models"].as_array().unwrap().iter().all(|model| model["model"] != named), "{json}");
    }
}

#[test]
fn a_gateway_is_thought_to_have_what_the_maker_has() {
    let house = House::new();
    for (key, base, usual) in [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", "* openai/gpt-5 "),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "* anthropic/claude-sonnet-4-5 "),
    ] {
        let printed = stdout(&models(&house, &[(key, "k"), (base, "https://proxy.invalid/v1")], &[]));
        assert!(printed.starts_with(usual) && !printed.contains("no model can be used"), "{printed}");
    }
}

#[test]
fn a_file_opens_providers_and_a_mistake_in_it_stops_everything() {
    let house = House::new();
    let file = house.workspace().join("mine.toml");
    let path = file.to_str().unwrap();
    let config = "model = \"work/big\"\n[providers.work]\nwire = \"openai\"\nbase_url = \"https://models.example.com/v1\"\n\
        key_env = \"WORK_KEY\"\n[[providers.work.models]]\nid = \"big\"\ncontext = 128000\nprice = { input = 0.5, output = 1.5 }\n";
    std::fs::write(&file, config).unwrap();
    let listed = models(&house, &[("WORK_KEY", "k-work")], &["--config", path]);
    assert!(stdout(&listed).starts_with("* work/big  128k context, $0.5/$1.5 per million\n"), "{}", stdout(&listed));
    let named = models(&house, &[("WORK_KEY", "k-work"), ("TOLKA_CONFIG", path)], &[]);
    assert_eq!(stdout(&named), stdout(&listed));
    let keyless = models(&house, &[], &["--config", path]);
    assert_eq!(code(&keyless), 0, "a list is wanted most when something is amiss: {}", stderr(&keyless));
    let printed = stdout(&keyless);
    assert!(
        printed.starts_with("! work/big  no WORK_KEY\n") && printed.contains("\n- openai: no OPENAI_API_KEY\n"),
        "{printed}"
    );
    let refused = house.run(&["run", "hello", "--config", path]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("the model work/big cannot be used: no WORK_KEY"), "{}", stderr(&refused));

    std::fs::write(&file, "[permissions]\nbsh = \"ask\"\n").unwrap();
    for args in [&["models"] as &[_], &["serve", "--port", "0"], &["run", "hello", "--agent", "demo"]] {
        let refused = house.run(&[args, &["--config", path]].concat());
        assert_eq!((code(&refused), stdout(&refused).as_str()), (1, ""), "{args:?}");
        assert!(
            stderr(&refused).contains("mine.toml cannot be used: line 2: no permission is called `bsh`"),
            "{}",
            stderr(&refused)
        );
    }
}

/// A repository could send our keys to a server of its own.
#[test]
fn no_file_of_the_workspace_is_read() {
    let house = House::new();
    for name in ["tolka.toml", ".tolka.toml", ".tolka/tolka.toml", "tolka/tolka.toml", ".config/tolka/tolka.toml"] {
        let path = house.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "this is no configuration").unwrap();
    }
    let listed = models(&house, &[], &[]);
    assert_eq!(code(&listed), 0, "{}", stderr(&listed));
}
