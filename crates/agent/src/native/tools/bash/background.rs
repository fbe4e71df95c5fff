//! A command that goes on: it is handed over to the processes of the session, with a look at how it begins.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tolka_facts::Draft;
use tolka_facts::event::ProcessStarted;
use tolka_workspace::command::Job;
use tolka_workspace::obeyed::Obeyed;

use super::super::act::{Act, Done, Stop, blocking};
use super::super::outcome;
use super::super::processes::state;
use super::super::read::fields as map;
use super::guarded::{look_between, watch_from};
use crate::native::processes::Processes;

/// Most servers that cannot start say so by then.
const LOOK: Duration = Duration::from_secs(1);

pub(super) async fn run(
    act: &Act<'_>,
    line: String,
    folder: PathBuf,
    env: Vec<(String, String)>,
    title: String,
) -> Result<Done, Stop> {
    let (settings, session) = (&act.tools.settings, &act.tools.session);
    settings.processes.has_room(session).map_err(Stop::failed)?;
    act.running_for_good(&title, &[]).await?;
    look_between(act).await?;
    let workspace = act.workspace();
    let obeyed = act.looking(move |_| Obeyed::at(&workspace)).await?;
    let job = Job { line: line.clone(), workspace: act.workspace(), folder, time_limit: Duration::MAX, env };
    let running = settings.shell.start(&job).map_err(Stop::failed)?.unbounded();
    let (id, call) = (Processes::id_of(&act.call.id), act.call.id.clone());
    let told = ProcessStarted { process: id.clone(), command: line.clone(), call: Some(call.clone()) };
    watch_from(act, &obeyed);
    let kept = (act.workspace(), obeyed);
    // It is known before it is told: whatever becomes of this turn, somebody has it and tells its end.
    let begun = settings.processes.keep(session.clone(), call, line, running, kept);
    act.scene.teller.tell(Draft::agent(told)).await?;
    act.scene.teller.settled().await?;
    let process = begun.told();
    tokio::select! {
        () = process.settles(LOOK) => {}
        () = act.scene.cancel.fired() => {}
    }
    let said = process.unread();
    let state = blocking({
        let process = process.clone();
        move || state(&process)
    });
    let state = state.await?;
    let mut output = outcome::cut(&said.text);
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(&format!("[process {id}: {state}. Read on and end it with the tool `processes`.]\n"));
    if !settings.shell.is_reachable() {
        output.push_str(
            "[It has a network of its own: what it serves can be reached by no other command and by nobody outside, as \
             the network of commands is limited on this server.]\n",
        );
    }
    let metadata =
        map(json!({ "output": output, "process": id, "exit": null, "description": title, "truncated": false }));
    Ok(Done { title, output, metadata, ..Done::default() })
}
