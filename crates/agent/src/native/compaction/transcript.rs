//! A conversation as one text, for whoever summarises it. Not as the messages that it was: providers refuse calls of tools
//! that are not offered, and a text can be cut anywhere.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::native::model::{Input, Message, Output};

pub(super) fn of(messages: &[Arc<Message>]) -> String {
    let mut told = String::new();
    for message in messages {
        match &**message {
            Message::User(inputs) => {
                told.push_str("\n## The person\n");
                inputs.iter().for_each(|input| push(&mut told, input));
            }
            Message::Model(outputs) => {
                told.push_str("\n## The agent\n");
                outputs.iter().for_each(|output| say(&mut told, output));
            }
            Message::Results(returned) => {
                for result in returned {
                    let how = if result.is_error { ", which failed" } else { "" };
                    let _ = writeln!(told, "\n## What came of {}{how}", result.call);
                    result.content.iter().for_each(|input| push(&mut told, input));
                }
            }
        }
    }
    told
}

fn push(told: &mut String, input: &Input) {
    match input {
        Input::Text(text) => line(told, text),
        Input::Image { mime, .. } => line(told, &format!("[A picture ({mime})]")),
        Input::File { name, mime, .. } => line(told, &format!("[A file: {name} ({mime})]")),
    }
}

/// What it thought led to what it said.
fn say(told: &mut String, output: &Output) {
    match output {
        Output::Text(text) => line(told, text),
        Output::Thought { .. } => {}
        Output::Call { id, name, input } => line(told, &format!("[Called `{name}` ({id}): {}]", input.get())),
    }
}

fn line(told: &mut String, text: &str) {
    told.push_str(text);
    if !text.ends_with('\n') {
        told.push('\n');
    }
}

/// Where the first piece of a text ends that has about so many bytes: at the end of a line if there is one.
pub(super) fn cut(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let end = text.ceil_char_boundary(most.max(1));
    let line = text[..end].rfind('\n').map(|at| at + 1);
    line.filter(|line| *line > end / 2).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use tolka_facts::Json;

    use super::*;
    use crate::native::model::Returned;

    #[test]
    fn everything_is_told_but_thoughts() {
        let text = |text: &str| Input::Text(text.to_owned());
        let input = Json::from(serde_json::json!({ "filePath": "a" }));
        let messages = [
            Message::User(vec![text("Look."), Input::Image { mime: "image/png".into(), data: "aGk=".into() }]),
            Message::Model(vec![
                Output::Thought { text: "Hm".into(), kept: None },
                Output::Text("I look.".into()),
                Output::Call { id: "c1".into(), name: "read".into(), input },
            ]),
            Message::Results(vec![Returned { call: "c1".into(), content: vec![text("no file\n")], is_error: true }]),
        ];
        let expected = "\n## The person\nLook.\n[A picture (image/png)]\n\n## The agent\nI look.\n\
             [Called `read` (c1): {\"filePath\":\"a\"}]\n\n## What came of c1, which failed\nno file\n";
        assert_eq!(of(&messages.map(Arc::new)), expected);
    }

    #[test]
    fn pieces_make_the_whole() {
        let text = "one\ntwo ö\nthree üüüüüüüüüüüüüüüüüüüü\n";
        for most in 1..text.len() + 2 {
            let (mut rest, mut pieces) = (text, Vec::new());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(cut(rest, most));
                assert!(!piece.is_empty() && piece.len() <= most + 3, "{piece:?} of {most}");
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(pieces.concat(), text);
        }
        assert_eq!(cut("aaaa\nbbbb\ncccc", 7), 5);
    }
}
