//! `tolka doctor`, and a server that is to have a sandbox.

use serde_json::Value;

use crate::cli::{code, stderr, stdout};
use crate::http::get;
use crate::server::House;

fn doctor(house: &House, config: &str) -> (i32, Value) {
    let file = house.data().with_file_name("tolka.toml");
    std::fs::write(&file, config).unwrap();
    let output = house.command(&["doctor", "--json", "--config", file.to_str().unwrap()]).output().unwrap();
    (code(&output), serde_json::from_str(&stdout(&output)).unwrap())
}

fn check<'a>(told: &'a Value, name: &str) -> &'a Value {
    let all = told["checks"].as_array().unwrap();
    all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {told}"))
}

#[test]
fn it_says_what_a_server_says() {
    let house = House::new();
    let (code, told) = doctor(&house, "[sandbox]\nnetwork = [\"example.org\"]");
    assert_eq!((code, &told["ok"]), (0, &Value::Bool(true)), "{told}");
    for name in ["git", "configuration", "sandbox", "control groups", "network", "models", "data", "disk"] {
        assert!(!check(&told, name)["says"].as_str().unwrap().is_empty(), "{told}");
    }
    let file = house.data().with_file_name("tolka.toml");
    let server = house.serve(&["--agent", "demo", "--config", file.to_str().unwrap()]);
    let sandbox = get(server.address, "/v1").expect(200)["sandbox"].clone();
    assert_eq!(sandbox["level"], check(&told, "sandbox")["says"]);
    assert_eq!((&sandbox["network"], &sandbox["hosts"][0]), (&"list".into(), &"example.org".into()));
    let more = check(&told, "sandbox")["more"].to_string();
    for gap in sandbox["cannot_stop"].as_array().unwrap() {
        assert!(more.contains(&format!("cannot stop {}", gap.as_str().unwrap())), "{gap} is not in {more}");
    }
    assert!(check(&told, "network")["says"].as_str().unwrap().starts_with("example.org"));
}

#[test]
fn what_keeps_a_server_from_starting_is_bad() {
    let house = House::new();
    let (code, told) = doctor(&house, "[sandbox]\nlevel = 7");
    assert_eq!((code, &check(&told, "configuration")["state"]), (1, &"bad".into()), "{told}");
}

#[test]
fn no_server_starts_without_the_sandbox_that_is_required() {
    let house = House::new();
    let file = house.data().with_file_name("tolka.toml");
    std::fs::write(&file, "[sandbox]\nlevel = \"none\"").unwrap();
    let config = file.to_str().unwrap();
    let refused = |args: &[&str], path: Option<&str>| {
        let mut command = house.command(&[&["serve", "--port", "0", "--agent", "demo"], args].concat());
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().unwrap();
        assert_ne!(code(&output), 0);
        stderr(&output)
    };
    let said = refused(&["--config", config, "--require-sandbox"], None);
    assert!(said.contains("--require-sandbox wants landlock, and tolka.toml says level = \"none\""), "{said}");
    // Where there is no bwrap to be found.
    let nowhere = house.data().display().to_string();
    let said = refused(&["--require-sandbox=bubblewrap"], Some(&nowhere));
    assert!(said.contains("a sandbox is required (bubblewrap)") && said.contains("install bubblewrap"), "{said}");
    std::fs::write(&file, "[sandbox]\nrequire = \"bubblewrap\"").unwrap();
    let said = refused(&["--config", config], Some(&nowhere));
    assert!(said.contains("a sandbox is required (bubblewrap)"), "{said}");
    let said = refused(&["--require-sandbox=much"], None);
    assert!(said.contains("\"bubblewrap\" or \"landlock\""), "{said}");
}
