//! What git obeys, after a command. Bubblewrap keeps a command from changing most of it, and Landlock nothing. What has
//! changed all the same is told, put back at once, and the person says whether the change may stand. What they say no word
//! about stays as it was. Without a sandbox it is told.
//!
//! What runs beside the commands, a process in the background or the program of an MCP server, may change it at any time,
//! and so may the person: there nothing is put back before the person says so.

use std::path::{Path, PathBuf};

use tolka_facts::event::{Noticed, Question, QuestionAsked, QuestionOption, Severity};
use tolka_facts::{Draft, Time};
use tolka_workspace::command::Level;
use tolka_workspace::obeyed::{Moved, Obeyed};

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
    let is_put_back = is_guarded(act);
    let (moved, before) = if is_put_back { moved(act, before).await? } else { (Vec::new(), before) };
    let (mut changed, before, after) = compared(act, before).await?;
    // Of those there is no more to say.
    changed.retain(|path| {
        let is_moved = moved.iter().any(|moved| moved.repository == *path);
        !is_moved || path.symlink_metadata().is_ok()
    });
    let note = changed_inside(act, before, after, changed, asking).await?;
    let words = moved.iter().map(|moved| {
        let name = named(act, std::slice::from_ref(&moved.repository));
        format!("[{name} is the user's repository: do not move it or take it away]")
    });
    let words: Vec<String> = words.chain(note).collect();
    Ok((!words.is_empty()).then(|| words.join("\n")))
}

/// Brings repositories home that the command has moved, and tells of it, and of those that are gone.
async fn moved(act: &Act<'_>, before: Obeyed) -> Result<(Vec<Moved>, Obeyed), Stop> {
    let (moved, before) = act.doing(move || (before.moved(), before)).await?;
    if moved.is_empty() {
        return Ok((moved, before));
    }
    let (teller, workspace, all, held) = (act.scene.teller.clone(), act.workspace(), moved.clone(), before.clone());
    act.effect(async move {
        for moved in all {
            let name = named_in(&workspace, std::slice::from_ref(&moved.repository));
            let Some(to) = moved.to.clone() else {
                let words = format!("{name} is gone, with the history that was in it. Nothing of it can be put back.");
                teller.tell(warned("A command took away a repository", words)).await?;
                continue;
            };
            let to = named_in(&workspace, &[to]);
            let words = format!(
                "{name} was moved to {to}. It is moved back; if something else stands there now, that goes to {to}."
            );
            // As with what is put back: it is done whoever listens.
            if teller.tell(warned("A command moved a repository", words)).await.is_err()
                || teller.settled().await.is_err()
            {
                tracing::warn!(%name, "a command moved a repository; it is moved back, and nobody is there to be told");
            }
            let held = held.clone();
            if let Err(error) = blocking(move || held.bring_home(&moved)).await? {
                let words = format!("{name} could not be moved back: {error}. Its history is in {to}.");
                teller.tell(warned("A repository is not where it was", words)).await?;
            }
        }
        Ok(())
    })
    .await?;
    Ok((moved, before))
}

fn warned(title: &str, words: String) -> Draft {
    Draft::tolka(Noticed { severity: Severity::Warning, title: title.to_owned(), description: Some(words) })
}

/// Whether what git obeys is put back; without a sandbox nothing is.
fn is_guarded(act: &Act<'_>) -> bool {
    act.tools.settings.shell.level() != Level::None
}

async fn changed_inside(
    act: &Act<'_>,
    before: Obeyed,
    after: Obeyed,
    changed: Vec<PathBuf>,
    asking: Asking,
) -> Result<Option<String>, Stop> {
    let is_put_back = is_guarded(act);
    let is_new = |path: &PathBuf| after.is_repository(path) || before.is_another(path);
    let (changed, stays): (Vec<_>, Vec<_>) = changed.into_iter().partition(|path| is_put_back && !is_new(path));
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

/// Something begins to run beside the commands.
pub(super) fn watch_from(act: &Act<'_>, obeyed: &Obeyed) {
    if is_guarded(act) {
        act.tools.memory.watch(Some(obeyed.clone()));
    }
}

/// Remembers how it is now, as long as something runs beside the commands.
async fn watch(act: &Act<'_>) -> Result<(), Stop> {
    let (settings, session) = (&act.tools.settings, &act.tools.session);
    let runs = settings.processes.is_any_running(session) || !act.tools.kit().is_empty();
    let is_watched = runs && is_guarded(act);
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
        let notice = |words| warned(TITLE, words);
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
