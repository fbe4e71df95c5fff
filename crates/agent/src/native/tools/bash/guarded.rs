//! What git obeys, after a command. A view of its own keeps a command from changing it. Landlock cannot: there it is told,
//! put back at once, and the person says whether the change may stand. What they say no word about stays as it was.
//!
//! What runs beside the commands, a process in the background or the program of an MCP server, may change it at any time,
//! and so may the person: there nothing is put back before the person says so.

use std::path::{Path, PathBuf};

use tolka_facts::event::{Noticed, Question, QuestionAsked, QuestionOption, Severity};
use tolka_facts::{Draft, Time};
use tolka_workspace::command::Level;
use tolka_workspace::obeyed::Obeyed;

use super::super::act::{Act, Stop, blocking};

/// Of what git obeys, in one notice.
const NAMED: usize = 10;

const STAND: &str = "Let it stand";
const BACK: &str = "Keep it as it was";

const TITLE: &str = "A command changed what git obeys";
const DANGER: &str = "Git runs programs that are named there.";
const LOOK: &str = "Look at it before you use git in this folder.";

/// Whether there is time to ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Asking {
    Yes,
    No,
}

/// Gives back what the model should know.
pub(super) async fn look_after(act: &Act<'_>, before: Obeyed, asking: Asking) -> Result<Option<String>, Stop> {
    let note = changed_by_command(act, before, asking).await?;
    watch(act).await?;
    Ok(note)
}

async fn changed_by_command(act: &Act<'_>, before: Obeyed, asking: Asking) -> Result<Option<String>, Stop> {
    let (changed, before, after) = compared(act, before).await?;
    if changed.is_empty() {
        return Ok(None);
    }
    let is_put_back = act.tools.settings.shell.level() == Level::Landlock;
    let (changed, stays): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|path| is_put_back && !after.is_repository(path));
    if !stays.is_empty() {
        let names = named(act, &stays);
        act.notice(Severity::Warning, TITLE, format!("Changed: {names}. {DANGER} {LOOK}")).await?;
    }
    if changed.is_empty() {
        return Ok(None);
    }
    let names = named(act, &changed);
    let words = format!("Changed: {names}. {DANGER} It is put back as it was before the command.");
    let back = put_back(act, words, &before, &after, changed).await?;
    if back.is_empty() {
        return Ok(None);
    }
    let names = named(act, &back);
    let question = format!(
        "A command changed {names}. Git runs programs that are named there, as you and outside of any sandbox. It was put \
         back. May the change stand?"
    );
    let choices = [(BACK, "Nothing is changed"), (STAND, "The command's change is made again")];
    if asking == Asking::Yes && ask(act, question, choices).await?.as_deref() == Some(STAND) {
        let left = act.doing(move || after.put_back(&before, &back)).await?;
        if left.is_empty() {
            return Ok(None);
        }
        let names = named(act, &left);
        let words = format!("{names}: somebody else has changed it meanwhile. It is as they left it.");
        act.notice(Severity::Warning, "Not all that a command changed of what git obeys was made again", words).await?;
        return Ok(Some(format!("[your change of {names} does not stand: somebody else changed it meanwhile]")));
    }
    Ok(Some(format!(
        "[{names} was put back as it was before the command: git obeys it, and the user did not allow the change]"
    )))
}

/// What changed since the last look while something of this session ran beside its commands, put to the person. To be
/// called before a command, so that what it changes is not mistaken for that.
pub(in super::super) async fn look_between(act: &Act<'_>) -> Result<(), Stop> {
    let Some(before) = act.tools.memory.watched() else { return Ok(()) };
    let (changed, before, after) = compared(act, before).await?;
    // Before anybody is asked: one question is enough.
    watch(act).await?;
    if changed.is_empty() {
        return Ok(());
    }
    let names = named(act, &changed);
    let words = format!("While something ran beside the commands: {names}. {DANGER} {LOOK}");
    act.notice(Severity::Warning, "What git obeys has changed", words).await?;
    let question = format!(
        "While a process of this session ran in the background, {names} changed. Git runs programs that are named there, as \
         you and outside of any sandbox. If it was not you, put it back."
    );
    let choices = [(STAND, "It stays as it is now"), (BACK, "It is put back as it was before")];
    if ask(act, question, choices).await?.as_deref() == Some(BACK) {
        let words = format!("{names}. It is put back as it was before the process ran.");
        put_back(act, words, &before, &after, changed).await?;
        watch(act).await?;
    }
    Ok(())
}

/// Something begins to run beside the commands. Only Landlock needs it: the other levels prevent it, or stop nothing.
pub(super) fn watch_from(act: &Act<'_>, obeyed: &Obeyed) {
    if act.tools.settings.shell.level() == Level::Landlock {
        act.tools.memory.watch(Some(obeyed.clone()));
    }
}

/// Remembers how it is now, as long as something runs beside the commands.
async fn watch(act: &Act<'_>) -> Result<(), Stop> {
    let (settings, session) = (&act.tools.settings, &act.tools.session);
    let runs = settings.processes.is_any_running(session) || !act.tools.kit().is_empty();
    let is_watched = runs && settings.shell.level() == Level::Landlock;
    let workspace = act.workspace();
    let now = if is_watched { Some(act.doing(move || Obeyed::at(&workspace)).await?) } else { None };
    act.tools.memory.watch(now);
    Ok(())
}

async fn compared(act: &Act<'_>, before: Obeyed) -> Result<(Vec<PathBuf>, Obeyed, Obeyed), Stop> {
    let look = move || {
        let after = before.again();
        (before.differences(&after), before, after)
    };
    act.doing(look).await
}

/// Tells that it is put back, and does it when that would survive a crash, whatever becomes of the turn meanwhile. Gives
/// back what is as it was; of the rest a notice is told.
async fn put_back(
    act: &Act<'_>,
    words: String,
    before: &Obeyed,
    after: &Obeyed,
    changed: Vec<PathBuf>,
) -> Result<Vec<PathBuf>, Stop> {
    let (teller, workspace) = (act.scene.teller.clone(), act.workspace());
    let (before, after) = (before.clone(), after.clone());
    act.effect(async move {
        let notice = |description| {
            let told = Noticed { severity: Severity::Warning, title: TITLE.to_owned(), description: Some(description) };
            Draft::tolka(told)
        };
        // Where nobody listens any more, the session is gone: git would obey what the command left all the same.
        if teller.tell(notice(words)).await.is_err() || teller.settled().await.is_err() {
            tracing::warn!(
                ?changed,
                "a command changed what git obeys; it is put back, and nobody is there to be told"
            );
        }
        let put = move || {
            let left = before.put_back(&after, &changed);
            (changed.into_iter().filter(|path| !left.contains(path)).collect::<Vec<_>>(), left)
        };
        let (back, left) = blocking(put).await?;
        if !left.is_empty() {
            let names = named_in(&workspace, &left);
            let why = "It could not be put back, or somebody else has changed it since.";
            teller.tell(notice(format!("Changed: {names}. {why} {DANGER} {LOOK}"))).await?;
        }
        Ok(back)
    })
    .await
}

/// `None`: nobody answered.
async fn ask(act: &Act<'_>, question: String, choices: [(&str, &str); 2]) -> Result<Option<String>, Stop> {
    let option =
        |(label, description): (&str, &str)| QuestionOption { label: label.into(), description: description.into() };
    let question = Question {
        header: "What git obeys".to_owned(),
        question,
        options: choices.into_iter().map(option).collect(),
        multiple: false,
    };
    let teller = act.scene.teller;
    let request = teller.ids().question(Time::now());
    let asked = QuestionAsked { request, call: Some(act.call.id.clone()), questions: vec![question] };
    let answers = tokio::select! {
        answers = teller.ask_question(asked, act.tools.settings.patience.clone()) => answers?,
        () = act.scene.cancel.fired() => None,
    };
    let mut answers = answers.into_iter().flatten().flatten();
    Ok(answers.find(|answer| choices.iter().any(|(label, _)| answer == label)))
}

fn named(act: &Act<'_>, changed: &[PathBuf]) -> String {
    named_in(&act.tools.workspace, changed)
}

fn named_in(workspace: &Path, changed: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.strip_prefix(workspace).unwrap_or(path).display().to_string();
    let names: Vec<String> = changed.iter().take(NAMED).map(name).collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}
