//! A server of tools as clients write it down, whichever family they are of.

use std::time::Duration;

use serde_json::{Map, Value};
use tolka_mcp::{Config, Reach};

use crate::fault::Fault;

/// `command` as a list of words, or as a program with `args`; `env`, `environment` and `headers` as an object or as a list
/// of names and values. That is how our own, OpenCode's and the Agent Client Protocol's clients write it.
pub(crate) fn config(name: &str, body: &Map<String, Value>) -> Result<Config, Fault> {
    let command = match body.get("command") {
        None | Some(Value::Null) => None,
        Some(Value::String(program)) => {
            let mut command = vec![program.clone()];
            command.extend(words(body.get("args"), "args")?);
            Some(command)
        }
        words_of => Some(words(words_of, "command")?),
    };
    let url = match body.get("url") {
        None | Some(Value::Null) => None,
        Some(Value::String(url)) => Some(url.clone()),
        Some(_) => return Err(wrong("url", "a string")),
    };
    let env = body.get("env").or_else(|| body.get("environment"));
    let reach = match (command, url) {
        (Some(command), None) => Reach::Program { command, env: pairs(env, "env")? },
        (None, Some(url)) => Reach::Http { url, headers: pairs(body.get("headers"), "headers")? },
        _ => return Err(Fault::BadRequest("Give either `command`, for a program, or `url`.".to_owned())),
    };
    let mut config = Config::new(name, reach);
    match body.get("enabled") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(enabled)) => config.enabled = *enabled,
        Some(_) => return Err(wrong("enabled", "true or false")),
    }
    match body.get("timeout") {
        None | Some(Value::Null) => {}
        Some(timeout) => {
            /// An hour: nobody waits longer for an answer.
            const LONGEST: u64 = 3_600_000;
            let millis = timeout.as_u64().filter(|millis| (1..=LONGEST).contains(millis));
            let millis = millis.ok_or_else(|| wrong("timeout", "a number of milliseconds from 1 to 3600000"))?;
            config.timeout = Duration::from_millis(millis);
        }
    }
    if let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) {
        config.tools = Some(words(Some(tools), "tools")?);
    }
    config.check().map_err(|error| Fault::BadRequest(format!("{error}.")))?;
    Ok(config)
}

fn words(value: Option<&Value>, name: &str) -> Result<Vec<String>, Fault> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Vec::new()) };
    let words = value.as_array().and_then(|words| words.iter().map(|word| word.as_str().map(str::to_owned)).collect());
    words.ok_or_else(|| wrong(name, "a list of strings"))
}

fn pairs(value: Option<&Value>, name: &str) -> Result<Vec<(String, String)>, Fault> {
    let read = match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Object(fields)) => {
            fields.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        }
        Some(Value::Array(items)) => {
            let pair = |item: &Value| Some((item["name"].as_str()?.to_owned(), item["value"].as_str()?.to_owned()));
            items.iter().map(pair).collect()
        }
        Some(_) => None,
    };
    read.ok_or_else(|| wrong(name, "an object of strings"))
}

fn wrong(name: &str, what: &str) -> Fault {
    Fault::BadRequest(format!("`{name}` must be {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(body: &Value) -> Result<Config, Fault> {
        config("files", body.as_object().unwrap())
    }

    #[test]
    fn every_familys_way_to_write_it_is_read() {
        let program = |env: Value| {
            Config::new(
                "files",
                Reach::Program {
                    command: vec!["npx".into(), "x".into()],
                    env: env
                        .as_object()
                        .unwrap()
                        .iter()
                        .map(|(n, v)| (n.clone(), v.as_str().unwrap().into()))
                        .collect(),
                },
            )
        };
        for (body, expected) in [
            (json!({ "command": ["npx", "x"] }), program(json!({}))),
            (
                json!({ "type": "local", "command": ["npx", "x"], "environment": { "A": "b" } }),
                program(json!({ "A": "b" })),
            ),
            (
                json!({ "command": "npx", "args": ["x"], "env": [{ "name": "A", "value": "b" }] }),
                program(json!({ "A": "b" })),
            ),
        ] {
            assert_eq!(read(&body).unwrap(), expected, "{body}");
        }
        let remote =
            read(&json!({ "type": "remote", "url": "http://h/mcp", "timeout": 5000, "enabled": false })).unwrap();
        assert_eq!((remote.timeout, remote.enabled), (Duration::from_secs(5), false));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, words) in [
            (json!({}), "Give either `command`, for a program, or `url`."),
            (json!({ "command": ["a"], "url": "http://h" }), "Give either `command`, for a program, or `url`."),
            (json!({ "command": [1] }), "`command` must be a list of strings."),
            (json!({ "command": ["a"], "env": { "A": 1 } }), "`env` must be an object of strings."),
            (
                json!({ "command": ["a"], "timeout": 0 }),
                "`timeout` must be a number of milliseconds from 1 to 3600000.",
            ),
            (json!({ "command": ["a"], "enabled": "no" }), "`enabled` must be true or false."),
            (json!({ "url": "ftp://h" }), "the url of the MCP server `files` has to begin with http:// or https://."),
        ] {
            assert_eq!(read(&body).unwrap_err().message(), words);
        }
    }
}
