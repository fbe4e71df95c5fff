//! `bash`: a command line, told as it prints. One that fails has run: the exit code says how it went, and the call is
//! completed, as in OpenCode. What cannot be started is a failure.

mod aftermath;
mod background;
mod guarded;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tolka_facts::Draft;
use tolka_facts::event::OutputAppended;
use tolka_workspace::command::{Exit, Heard, Job, Running, Shell};

use super::act::{Act, Done, Stop};
use super::field::{BACKGROUND, DESCRIPTION, Fields, TIMEOUT, WORKDIR};
use super::outcome;
use super::read::fields as map;
use crate::Effect;
pub(super) use aftermath::Before;
pub(super) use guarded::{Asking, look_between};

const LONGEST: Duration = Duration::from_secs(600);

/// Clients draw this much of a command's output; the whole is beside it.
const DRAWN: usize = 30_000;

/// What a cancelled command still had to say, and what it changed, must be told within the grace that a turn has.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// The same where the turn had all its time, and nobody has asked for its end.
const LONG_GRACE: Duration = Duration::from_secs(3);

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let line = fields.command()?;
    let description = fields.words(DESCRIPTION);
    let time_limit = time_limit(fields, act.tools.settings.command)?;
    let folder = match fields.words(WORKDIR) {
        Some(folder) => act.tools.workspace.join(act.relative(&folder)?),
        None => act.workspace(),
    };
    let title = description.clone().unwrap_or_else(|| line.clone());
    let metadata = json!({ "command": line, "description": description, "workdir": folder.to_string_lossy() });
    let env = act.leave_command(&line, &folder, &title, metadata).await?;
    if fields.flag(BACKGROUND) {
        return background::run(act, line, folder, env, title).await;
    }
    act.running_for_good(&title, &[]).await?;
    let before = Before::look(act).await?;
    let job = Job { line, workspace: act.workspace(), folder, time_limit, env };
    let running = act.tools.settings.shell.start(&job).map_err(Stop::failed)?;
    let mut running = Held { running: Some(running), effect: Some(act.scene.teller.effects().begin()) };
    let mut printed = Printed { act, text: String::new(), note: None };
    let cancel = &act.scene.cancel;
    let exit = loop {
        let heard = tokio::select! {
            biased;
            () = cancel.fired() => break None,
            heard = running.next() => heard,
        };
        match heard {
            Some(Heard::Output(text)) => printed.tell(text).await?,
            Some(Heard::Ended(exit)) => break Some(exit),
            Some(Heard::Failed(words)) => {
                before.tell_changes(Asking::Yes).await?;
                return Err(Stop::Failed(words));
            }
            None => return Err(Stop::failed("the command was lost; what it did is not known")),
        }
    };
    let Some(exit) = exit else {
        let done = cancelled(act, running, printed, before, title, description).await?;
        return Err(Stop::Cancelled(Some(Box::new(done))));
    };
    drop(running);
    printed.note = before.tell_changes(Asking::Yes).await?;
    act.tell_refused(&exit.refused).await?;
    let limits = Bounded { time: time_limit, shell: &act.tools.settings.shell };
    Ok(done(printed, Some(&exit), title, description, &limits))
}

/// Milliseconds; but nobody means less than a second, so such a number is of seconds.
fn time_limit(fields: &Fields, usual: Duration) -> Result<Duration, Stop> {
    let longest = LONGEST.max(usual);
    Ok(match fields.number(TIMEOUT)? {
        None | Some(0) => usual,
        Some(seconds @ ..1_000) => Duration::from_secs(seconds).min(longest),
        Some(millis) => Duration::from_millis(millis).min(longest),
    })
}

/// A command that runs. If the turn is dropped before it has ended, it is ended, and the turn is not over before that.
struct Held {
    /// `None` only while it is dropped, and so with the other.
    running: Option<Running>,
    effect: Option<Effect>,
}

impl Held {
    async fn next(&mut self) -> Option<Heard> {
        self.running.as_mut()?.next().await
    }

    async fn stop(&mut self) {
        if let Some(running) = &mut self.running {
            running.stop().await;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take().filter(|running| !running.is_over()) else { return };
        let effect = self.effect.take();
        // Without a runtime nobody waits; letting go of it ends it all the same.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                running.stop().await;
                drop(effect);
            });
        }
    }
}

/// What a command has printed so far.
struct Printed<'a> {
    act: &'a Act<'a>,
    text: String,
    /// What is to be said of what it did.
    note: Option<String>,
}

impl Printed<'_> {
    async fn tell(&mut self, text: String) -> Result<(), Stop> {
        self.text.push_str(&text);
        let piece = OutputAppended { call: self.act.call.id.clone(), text };
        Ok(self.act.scene.teller.tell(Draft::agent(piece)).await?)
    }
}

async fn cancelled(
    act: &Act<'_>,
    mut running: Held,
    mut printed: Printed<'_>,
    mut before: Before<'_>,
    title: String,
    description: Option<String>,
) -> Result<Done, Stop> {
    running.stop().await;
    // However much it has left to say.
    printed.note = before.guard(Asking::No).await?;
    let rest = async {
        while let Some(Heard::Output(text)) = running.next().await {
            printed.tell(text).await?;
        }
        before.tell_changes(Asking::No).await?;
        Ok::<(), Stop>(())
    };
    let grace = if act.scene.teller.cancel().is_fired() { GRACE } else { LONG_GRACE };
    match tokio::time::timeout(grace, rest).await {
        Ok(told) => told?,
        // The session ends the turn soon; the next checkpoint has the changes.
        Err(_) => tracing::debug!(call = %act.call.id, "a cancelled command left more to tell than there was time"),
    }
    let limits = Bounded { time: act.tools.settings.command, shell: &act.tools.settings.shell };
    Ok(done(printed, None, title, description, &limits))
}

/// What a command had, for the words about what it did not get.
struct Bounded<'a> {
    time: Duration,
    shell: &'a Shell,
}

/// `None`: it was cancelled.
fn done(
    printed: Printed<'_>,
    exit: Option<&Exit>,
    title: String,
    description: Option<String>,
    limits: &Bounded<'_>,
) -> Done {
    let Printed { text: mut output, note, .. } = printed;
    for note in exit.map(|exit| notes(exit, limits)).unwrap_or_default().into_iter().chain(note) {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(&note);
        output.push('\n');
    }
    let code = exit.and_then(|exit| exit.code.or_else(|| exit.signal.map(|signal| 128 + signal)));
    let timed_out = exit.is_some_and(|exit| exit.timed_out);
    let mut metadata = map(json!({
        "output": drawn(&output),
        "exit": code.filter(|_| !timed_out),
        "description": description.unwrap_or_default(),
        "truncated": exit.is_some_and(|exit| exit.lost > 0),
    }));
    if timed_out {
        metadata.insert("timed_out".to_owned(), Value::Bool(true));
    }
    let shown = outcome::cut(&output);
    Done { title, shown: (shown.len() != output.len()).then_some(shown), output, metadata, ..Done::default() }
}

fn notes(exit: &Exit, limits: &Bounded<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if exit.lost > 0 {
        notes.push(format!("[{} more bytes were printed and not kept]", exit.lost));
    }
    if exit.timed_out {
        notes.push(format!("[the command timed out: it was ended after {} ms]", limits.time.as_millis()));
    } else if let Some(signal) = exit.signal {
        notes.push(format!("[the command was ended by signal {signal}]"));
    }
    for bound in &exit.over {
        notes.push(format!("[a limit of commands was reached: {}]", bound.words(limits.shell.limits())));
    }
    if !exit.refused.is_empty() {
        let hosts = exit.refused.join(", ");
        notes.push(format!(
            "[commands may not reach {hosts}: only hosts on the list of this server; the user can add it]"
        ));
    }
    match exit.left_behind {
        0 => {}
        1 => notes.push("[a process that it left in the background was ended with it]".to_owned()),
        count => notes.push(format!("[{count} processes that it left in the background were ended with it]")),
    }
    notes
}

/// The end of it, where it is long: that is where a command has come to.
fn drawn(output: &str) -> &str {
    &output[output.ceil_char_boundary(output.len().saturating_sub(DRAWN))..]
}
