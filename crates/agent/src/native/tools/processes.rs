//! `processes`: what runs in the background, what it has printed since, and its end.

use std::sync::Arc;

use serde_json::{Value, json};

use super::act::{Act, Done, Stop, blocking};
use super::bash::look_between;
use super::field::{Fields, NAME};
use super::outcome;
use super::read::fields as map;
use crate::native::processes::{Ended, Process};

const ACTION: &[&str] = &["action", "command", "operation"];
const PROCESS: &[&str] = &["process", "id", "process_id", "pid"];

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let action = fields.words(ACTION).or_else(|| fields.words(NAME)).unwrap_or_else(|| "list".to_owned());
    let find = || {
        let id = fields.need_words(PROCESS)?;
        act.tools
            .settings
            .processes
            .find(&act.tools.session, &id)
            .ok_or_else(|| Stop::Failed(format!("no process is called `{id}`; `list` says which there are")))
    };
    match action.as_str() {
        "list" => {
            act.running("Processes", &[]).await?;
            let all = act.tools.settings.processes.of(&act.tools.session);
            let lines = blocking(move || all.iter().map(line).collect::<Vec<_>>()).await?;
            let output = if lines.is_empty() { "No process runs.".to_owned() } else { lines.join("\n") };
            Ok(done("Processes", output, json!({ "count": lines.len() })))
        }
        "output" | "log" | "read" => {
            let process = find()?;
            act.running(&process.command, &[]).await?;
            let piece = process.unread();
            let mut output = outcome::cut(&piece.text);
            if output.is_empty() {
                output = "[nothing new]".to_owned();
            }
            let state = blocking({
                let process = process.clone();
                move || state(&process)
            });
            let output = format!("{}\n[{}]", output.trim_end_matches('\n'), state.await?);
            Ok(done(&process.command, output, json!({ "process": process.id })))
        }
        "kill" | "stop" | "end" => {
            let process = find()?;
            act.running_for_good(&process.command, &[]).await?;
            let output = match process.end("agent").await {
                true => format!("{} was ended.", process.id),
                false => format!("{} had ended by itself.", process.id),
            };
            look_between(act).await?;
            Ok(done(&process.command, output, json!({ "process": process.id })))
        }
        other => Err(Stop::Failed(format!("`action` is `list`, `output` or `kill`, and not `{other}`"))),
    }
}

fn done(title: &str, output: String, metadata: Value) -> Done {
    Done { title: title.to_owned(), output, metadata: map(metadata), ..Done::default() }
}

fn line(process: &Arc<Process>) -> String {
    format!("{}  {}  {}", process.id, state(process), process.command)
}

/// Blocks, shortly.
pub(super) fn state(process: &Process) -> String {
    match process.ended() {
        None => match process.ports().as_slice() {
            [] => "running".to_owned(),
            ports => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                format!("running, listens on port {}", ports.join(", "))
            }
        },
        Some(Ended { code, by, notes, .. }) => {
            let how = code.map_or_else(|| "ended".to_owned(), |code| format!("ended with exit code {code}"));
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
            format!("{how}{by}{notes}")
        }
    }
}
