//! One message of a session, as the model is sent it.

use serde::Deserialize;
use tolka_facts::event::Finish;
use tolka_facts::{Blobs, Block, Json, Message, Part, PartId, Role, Said, Tool, ToolStatus};

use super::{ATTACHED, Conversation};
use crate::native::compaction;
use crate::native::model::{Input, Output};
use crate::native::prompted;
use crate::native::tools::{Outcome, Tools};
use crate::native::turn::INVALID;

/// What a step keeps for the provider: of the thought that `part` names, or of one without words that stood at place `at`
/// of the answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, Deserialize)]
pub(in crate::native) struct Kept {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::native) part: Option<PartId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::native) at: Option<usize>,
    pub(in crate::native) kept: Json,
}

/// Names of calls are never used again, not even those of calls that were hidden.
pub(super) fn note_calls(conversation: &mut Conversation, message: &Message) {
    conversation.calls.extend(message.parts.iter().filter_map(|part| match part {
        Part::Tool(tool) => Some(tool.call.clone()),
        Part::Content(_) | Part::Text(_) | Part::Thought(_) => None,
    }));
}

pub(super) fn add(conversation: &mut Conversation, message: &Message, blobs: &dyn Blobs) {
    match message.role {
        // Asked of us, not of the model.
        Role::User if compaction::wanted(blocks(message), blobs).is_some() => {}
        Role::User => conversation.user(prompted::inputs(blocks(message), message.context.as_ref(), blobs)),
        // Whatever became of the step, each file that it read or not is the person's word.
        Role::Agent if is_attached(&message.parts) => {
            step(conversation, &message.parts, message.kept.as_ref(), blobs);
        }
        Role::Agent => match message.finish {
            Some(Finish::Error) if !has_acted(&message.parts) => {}
            Some(Finish::Cancelled | Finish::Error) => broken_off(conversation, &message.parts, blobs),
            Some(Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Unknown) | None => {
                step(conversation, &message.parts, message.kept.as_ref(), blobs);
            }
        },
    }
}

/// What a person sent.
pub(super) fn blocks(message: &Message) -> impl Iterator<Item = &Block> + Clone {
    message.parts.iter().filter_map(|part| match part {
        Part::Content(block) => Some(block),
        Part::Text(_) | Part::Thought(_) | Part::Tool(_) => None,
    })
}

/// Whether no model made this step: it read what a prompt brought along.
fn is_attached(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Tool(tool) if tool.call.as_str().starts_with(ATTACHED)))
}

/// Whether calls of the step were run, or about to be: all of its answer was there. Calls in an answer that was cut off fail.
fn has_acted(parts: &[Part]) -> bool {
    let was_taken_up = |tool: &Tool| matches!(tool.status, ToolStatus::Completed | ToolStatus::Cancelled);
    parts.iter().any(|part| matches!(part, Part::Tool(tool) if was_taken_up(tool)))
}

/// A step that was cut off from outside. Its words stand. What it had called for may have begun, and the model should know;
/// but as calls they cannot be sent, for what the provider wants back with them was never told.
fn broken_off(conversation: &mut Conversation, parts: &[Part], blobs: &dyn Blobs) {
    let text = |part: &Part| match part {
        Part::Text(said) => Some(Output::Text(said.text.to_string())),
        Part::Content(_) | Part::Thought(_) | Part::Tool(_) => None,
    };
    let call = |part: &Part| match part {
        Part::Tool(tool) if tool.input.as_ref().is_some_and(|input| *input != no_input()) => {
            let (name, input) = (tool.name.as_deref().unwrap_or("a tool"), input(tool, blobs));
            let Outcome { content, .. } = outcome(tool, blobs);
            let told = Input::Text(format!("[Broken off: `{name}` with {}. What came of it:]", input.get()));
            Some([told].into_iter().chain(content).collect::<Vec<_>>())
        }
        Part::Tool(_) | Part::Content(_) | Part::Text(_) | Part::Thought(_) => None,
    };
    conversation.answer(parts.iter().filter_map(text).collect());
    conversation.user(parts.iter().filter_map(call).flatten().collect());
}

fn step(conversation: &mut Conversation, parts: &[Part], kept: Option<&Json>, blobs: &dyn Blobs) {
    let kept: Vec<Kept> = kept.and_then(|json| json.whole(blobs).read()).unwrap_or_default();
    let kept_of = |part: &PartId| kept.iter().find(|kept| kept.part.as_ref() == Some(part)).map(|k| k.kept.clone());
    let (mut outputs, mut results) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Content(_) => {}
            Part::Text(said) => outputs.push(Output::Text(said.text.to_string())),
            Part::Thought(Said { part, text, .. }) => {
                outputs.push(Output::Thought { text: text.to_string(), kept: kept_of(part) });
            }
            Part::Tool(tool) if tool.call.as_str().starts_with(ATTACHED) => {
                conversation.attached(&input(tool, blobs), outcome(tool, blobs));
            }
            Part::Tool(tool) => {
                let (id, name) = (tool.call.as_str().to_owned(), name(tool));
                outputs.push(Output::Call { id, name, input: input(tool, blobs) });
                results.push((tool.call.clone(), outcome(tool, blobs)));
            }
        }
    }
    for Kept { at, kept, .. } in kept {
        if let Some(at) = at.filter(|at| *at <= outputs.len()) {
            outputs.insert(at, Output::Thought { text: String::new(), kept: Some(kept) });
        }
    }
    conversation.answer(outputs);
    conversation.results(results);
}

/// Our own tools have names that every provider takes. Those of another agent, which had the session before, may not.
fn name(tool: &Tool) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = tool.name.as_deref().unwrap_or_default().chars().take(64).map(fit).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

/// What the model wrote; of a call that was told whole, what it was told with. A call of a tool that is not there is told
/// with words of ours, which the model never wrote.
fn input(tool: &Tool, blobs: &dyn Blobs) -> Json {
    let is_ours = tool.name.as_deref() == Some(INVALID);
    match (tool.live_input.is_empty(), &tool.input) {
        (true, Some(input)) if !is_ours => input.whole(blobs).into_owned(),
        (true, _) => no_input(),
        (false, _) => input_of(&tool.live_input.to_string()).unwrap_or_else(|_| no_input()),
    }
}

pub(in crate::native) fn no_input() -> Json {
    Json::from(serde_json::json!({}))
}

/// What a model wrote as the input of a call, or why it is none. A call without one means an empty one.
pub(in crate::native) fn input_of(text: &str) -> Result<Json, String> {
    if matches!(text.trim(), "" | "null") {
        return Ok(no_input());
    }
    let json = Json::parse(text).map_err(|error| format!("it is not JSON ({error})"))?;
    if json.get().trim_start().starts_with('{') { Ok(json) } else { Err("it is not a JSON object".to_owned()) }
}

fn outcome(tool: &Tool, blobs: &dyn Blobs) -> Outcome {
    Tools::recalled(tool, blobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_other_agents_have_names_that_providers_take() {
        let named = |given: Option<&str>| name(&Tool { name: given.map(str::to_owned), ..Tool::default() });
        assert_eq!(named(Some("apply_patch")), "apply_patch");
        assert_eq!(named(Some("mcp: read file/Ünder")), "mcp__read_file__nder");
        assert_eq!((named(None), named(Some(""))), ("tool".to_owned(), "tool".to_owned()));
        assert_eq!(named(Some(&"x".repeat(100))).len(), 64);
    }

    #[test]
    fn input_is_an_object_or_says_why_not() {
        for (text, expected) in [
            ("", Ok("{}")),
            (" null ", Ok("{}")),
            ("{\n\"a\": 1}", Ok("{\"a\":1}")),
            ("[1]", Err("it is not a JSON object")),
        ] {
            let read = input_of(text);
            assert_eq!(read.as_ref().map(Json::get).map_err(String::as_str), expected, "{text}");
        }
        assert!(input_of("{\"a").unwrap_err().starts_with("it is not JSON"));
    }
}
