use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{chat, request, user};

#[test]
fn the_process_says_where_it_is_and_what_it_was_asked() {
    let folder = std::env::temp_dir().join(format!("scripted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("script.json");
    let beats = json!([{"text": "Wait"}, {"gate": "go"}, {"text": " for it."}, {"delay_ms": 1}]);
    let answers =
        json!({"piece": 100, "answers": [{"beats": beats}, {"status": 429, "headers": {"retry-after": "1"}}]});
    std::fs::write(&script, answers.to_string()).unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_tolka-scripted"))
        .args([script.to_str().unwrap(), "--port", "0", "--until-stdin-ends"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let url = url.trim();

    assert_eq!(request(url, "POST", "/gates/go", "", &[]).0, 200);
    let (_, body) = chat(url, &user("hello"));
    assert!(body.contains("\"Wait\"") && body.contains("\" for it.\""), "{body}");
    assert_eq!(chat(url, &user("hello")).0, 429);
    let requests: Value = serde_json::from_str(&request(url, "GET", "/requests", "", &[]).1).unwrap();
    assert_eq!(requests[0]["body"]["messages"][0]["content"], "hello");
    assert_eq!((&requests[0]["outcome"], &requests[0]["wire"]), (&json!("told"), &json!("openai")));
    assert_eq!(requests.as_array().unwrap().len(), 2);

    drop(process.stdin.take());
    assert!(process.wait().unwrap().success());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_no_script_is_refused() {
    for script in [json!([{"beets": []}]), json!({"answers": [{"beats": [{"sing": "x"}]}]}), json!("x")] {
        tolka_scripted::Script::read(script).unwrap_err();
    }
}
