//! Files that a prompt links to, what it names of MCP servers, and tasks for subagents that stand in it. They are read and
//! done before the model is asked, by the tools that the model itself would use and with the leave that it would need; so
//! every client sees that they were, and what came of it stands in the facts, whatever becomes of the file.

use std::path::Path;

use percent_encoding::percent_decode_str;
use tolka_facts::event::{Finish, InputAppended, Model as ModelName, StepEnded, StepStarted, ToolChanged};
use tolka_facts::{Block, Draft, Json, NoBlobs, Subtask, Time, ToolStatus};

use super::conversation::{Conversation, KIND, PATH, no_input};
use super::kind::kind_of;
use super::mentions;
use super::tools::{Call, Scene, Tools};
use super::turn::{self, Halt, Why};
use crate::Gone;

const READ: &str = "read";
const TASK: &str = "task";
/// More than a person attaches by hand; the others are only named.
const MOST: usize = 20;

/// Reads what the prompt links to into the conversation: a step of its own, of the model that the turn is for.
pub(super) async fn attach(
    content: &[Block],
    (workspace, model): (&Path, &ModelName),
    conversation: &mut Conversation,
    (tools, scene): (&Tools, &Scene<'_>),
    halt: &mut Halt<'_>,
) -> Result<Result<(), Why>, Gone> {
    let files = content.iter().filter_map(|block| linked(block, workspace)).map(|input| (READ, input));
    let can_call = || tools.specs(&scene.mode).iter().any(|spec| spec.name == TASK);
    let mut tasks: Vec<(&str, Json)> = content.iter().filter_map(|block| Some((TASK, task(block)?))).collect();
    if !tasks.is_empty() && !can_call() {
        tasks.clear();
    }
    let named = if tools.is_subagents() { Vec::new() } else { mentions::named(content, &tools.kit()) };
    let read = files.chain(named);
    let inputs: Vec<(&str, Json)> = read.chain(tasks).take(MOST).collect();
    if inputs.is_empty() {
        return Ok(Ok(()));
    }
    let teller = scene.teller;
    let message = teller.ids().message(Time::now());
    teller.tell(Draft::agent(StepStarted { message: message.clone(), model: Some(model.clone()) })).await?;
    let mut calls = Vec::with_capacity(inputs.len());
    for (name, input) in inputs {
        let id = conversation.name_attached();
        let began = ToolChanged {
            name: Some(name.to_owned()),
            kind: Some(kind_of(name)),
            title: Some(name.to_owned()),
            status: Some(ToolStatus::Pending),
            input: Some(no_input()),
            ..ToolChanged::of(id.clone())
        };
        teller.tell(Draft::agent(began)).await?;
        teller.tell(Draft::agent(InputAppended { call: id.clone(), text: input.get().to_owned() })).await?;
        calls.push(Call { id, name: name.to_owned(), input });
    }
    let inputs: Vec<Json> = calls.iter().map(|call| call.input.clone()).collect();
    let ran = turn::run(tools, calls, scene, halt).await?;
    let finish = if ran.is_ok() { Finish::ToolCalls } else { Finish::Cancelled };
    teller.tell(Draft::agent(StepEnded { message, finish, usage: None, cost: None, kept: None })).await?;
    let outcomes = match ran {
        Ok(outcomes) => outcomes,
        Err(why) => return Ok(Err(why)),
    };
    for (input, outcome) in inputs.iter().zip(outcomes) {
        conversation.attached(input, outcome);
    }
    Ok(Ok(()))
}

/// The input for the tool that gives it to a subagent.
fn task(block: &Block) -> Option<Json> {
    let Subtask { kind, description, prompt } = Subtask::of(block, &NoBlobs)?;
    Some(Json::from(serde_json::json!({ "description": description, "prompt": prompt, KIND: kind })))
}

/// The input for the tool that reads it; `None` of what is no link to a file here.
fn linked(block: &Block, workspace: &Path) -> Option<Json> {
    let Block::Link { uri, .. } = block else { return None };
    let place = uri.strip_prefix("file://")?;
    let place = place.split('#').next().unwrap_or_default();
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    // A file of another machine is not ours to read.
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = percent_decode_str(path).decode_utf8().ok().filter(|path| path.starts_with('/'))?;
    let inside = Path::new(&*path).strip_prefix(workspace).ok().and_then(Path::to_str);
    let mut input = serde_json::json!({ PATH: inside.unwrap_or(&path) });
    if let Some((offset, limit)) = lines(query) {
        input["offset"] = offset.into();
        input["limit"] = limit.into();
    }
    Some(Json::from(input))
}

/// The lines that a link means, as OpenCode's clients write it: `start=3&end=9`, both from 1 and both meant. The first and
/// how many.
fn lines(query: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let value = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        value.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let (start, end) = (number("start")?.max(1), number("end")?);
    (end >= start).then(|| (start, end - start + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_this_machine_are_read() {
        let read = |uri: &str| {
            let block = Block::Link {
                uri: uri.to_owned(),
                name: "x".into(),
                title: None,
                description: None,
                mime: None,
                size: None,
            };
            linked(&block, Path::new("/w")).map(|json| json.get().to_owned())
        };
        for (uri, expected) in [
            ("file:///w/a%20b.rs", Some(r#"{"filePath":"a b.rs"}"#)),
            ("file:///w/src/a.rs?start=1&end=2", Some(r#"{"filePath":"src/a.rs","offset":1,"limit":2}"#)),
            ("file:///w/src/a.rs?start=9&end=2", Some(r#"{"filePath":"src/a.rs"}"#)),
            ("file://localhost/etc/hosts", Some(r#"{"filePath":"/etc/hosts"}"#)),
            ("file://elsewhere/etc/hosts", None),
            ("file:///w/%ff", None),
            ("https://example.com/a", None),
        ] {
            assert_eq!(read(uri).as_deref(), expected, "{uri}");
        }
    }
}
