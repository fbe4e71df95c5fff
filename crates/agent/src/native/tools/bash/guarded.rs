//! What git obeys, after a command. A view of its own keeps a command from changing it. Landlock cannot: there it is put
//! back at once, and the person says whether the change may stand. What they say no word about stays as it was.

use std::path::PathBuf;

use tolka_facts::Time;
use tolka_facts::event::{Question, QuestionAsked, QuestionOption, Severity};
use tolka_workspace::command::Level;
use tolka_workspace::obeyed::Obeyed;

use super::super::act::{Act, Stop};

/// Of what git obeys, in one notice.
const NAMED: usize = 10;

const STAND: &str = "Let it stand";
const BACK: &str = "Keep it as it was";

/// Whether there is time to ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Asking {
    Yes,
    No,
}

/// Gives back what the model should know.
pub(super) async fn look_after(act: &Act<'_>, before: Obeyed, asking: Asking) -> Result<Option<String>, Stop> {
    let look = move || {
        let after = before.again();
        (before.differences(&after), before, after)
    };
    let (changed, before, after) = act.doing(look).await?;
    if changed.is_empty() {
        return Ok(None);
    }
    let names = named(act, &changed);
    if act.tools.settings.shell.level() != Level::Landlock {
        let words = format!(
            "Changed: {names}. Git runs programs that are named there. Look at it before you use git in this folder."
        );
        act.notice(Severity::Warning, "A command changed what git obeys", words).await?;
        return Ok(None);
    }
    let left = act.doing({
        let changed = changed.clone();
        move || before.put_back(&changed)
    });
    let left = left.await?;
    if !left.is_empty() {
        let words = format!(
            "Changed: {}. It could not be put back. Git runs programs that are named there. Look at it before you use git in \
             this folder.",
            named(act, &left)
        );
        act.notice(Severity::Warning, "A command changed what git obeys", words).await?;
    }
    let back: Vec<PathBuf> = changed.into_iter().filter(|path| !left.contains(path)).collect();
    if back.is_empty() {
        return Ok(None);
    }
    let names = named(act, &back);
    if asking == Asking::Yes && may_stand(act, &names).await? {
        let left = act.doing(move || after.put_back(&back)).await?;
        if left.is_empty() {
            return Ok(None);
        }
    }
    let words = format!("{names}: as before the command. Git runs programs that are named there.");
    act.notice(Severity::Info, "What a command changed of what git obeys was put back", words).await?;
    Ok(Some(format!(
        "[{names} was put back as it was before the command: git obeys it, and the user did not allow the change]"
    )))
}

async fn may_stand(act: &Act<'_>, names: &str) -> Result<bool, Stop> {
    let option = |label: &str, description: &str| QuestionOption {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let question = Question {
        header: "What git obeys".to_owned(),
        question: format!(
            "A command changed {names}. Git runs programs that are named there, as you and outside of any sandbox. It was put \
             back. May the change stand?"
        ),
        options: vec![option(BACK, "Nothing is changed"), option(STAND, "The command's change is made again")],
        multiple: false,
    };
    let teller = act.scene.teller;
    let request = teller.ids().question(Time::now());
    let asked = QuestionAsked { request, call: Some(act.call.id.clone()), questions: vec![question] };
    let answers = tokio::select! {
        answers = teller.ask_question(asked, act.tools.settings.patience.clone()) => answers?,
        () = act.scene.cancel.fired() => None,
    };
    Ok(answers.is_some_and(|answers| answers.iter().flatten().any(|answer| answer == STAND)))
}

fn named(act: &Act<'_>, changed: &[PathBuf]) -> String {
    let name = |path: &PathBuf| path.strip_prefix(&act.tools.workspace).unwrap_or(path).display().to_string();
    let names: Vec<String> = changed.iter().take(NAMED).map(name).collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}
