//! What the script says and makes, as far as it does not depend on anything.

/// The whole app; what the script ends with.
const TODO: &str = include_str!("todo.html");
/// By this the script knows a file of its own again.
pub(super) const MARK: &str = "Made by Tolka's demo";

/// The line that the first draft has wrong, and how it ends.
pub(super) const WRONG: &str = "label.innerHTML = item.text;";
pub(super) const RIGHT: &str = "label.textContent = item.text;";

pub(super) const SUMMARY: &str = "This is the demo's summary, a fixed one: a person has been shown how an agent makes a small \
    todo app. Nothing is left to do.";

/// The colours that later prompts go round in.
pub(super) const COLOURS: [(&str, &str); 4] =
    [("teal", "#0f766e"), ("plum", "#86198f"), ("blue", "#1d4ed8"), ("rust", "#b0410e")];

/// With one mistake in it, to be found.
pub(super) fn draft() -> String {
    TODO.replace(RIGHT, WRONG)
}

/// Where it goes; the first place that is free.
pub(super) fn place(nth: usize) -> String {
    if nth == 1 { "todo/index.html".to_owned() } else { format!("todo-{nth}/index.html") }
}

/// A command that fails: there is no such file.
pub(super) fn missing(folder: &str) -> String {
    format!("ls {folder}/tests")
}

pub(super) const HELLO: &str = "This is Tolka's demo: a fixed script, not a model, so I make the same thing whatever you ask. But \
    what it calls for is real: real tools, real files in this workspace, real permissions. It makes a small to-do app, in \
    one HTML file.\n\n";
pub(super) const AGAIN: &str =
    "You said something while I worked. A script cannot take it in, but it can look again where things stand.\n\n";
pub(super) const GUESS: &str = "The request could be anything; the script knows one thing to make. First a plan, so that everybody \
    who watches can see how far it is.";
pub(super) const LOOK_AROUND: &str = "First I look whether there is one already.\n\n";
pub(super) const LOOK: &str = "There is one. I read it before I touch it.\n\n";
pub(super) const WRITE: &str =
    "Nothing there yet, so I write it: no build, no network, kept in the browser's localStorage.\n\n";
pub(super) const CHECK: &str = "Written. I read it again with fresh eyes.\n\n";
pub(super) const FLAW: &str = "The label is set through innerHTML. Somebody who adds `<img onerror=…>` as a thing to do would run \
    code in the page. textContent shows the same words and runs nothing.";
pub(super) const FIX: &str = "One line is unsafe: it puts what people type into the page as HTML. I mend it.\n\n";
pub(super) const TRY: &str = "Are there tests to run?\n\n";
pub(super) const MEASURE: &str = "No tests, as that command says; it is one small file. The next command is one that I have to ask for: \
    allow it or reject it in any client. If nobody is there, it goes on by itself after ten seconds.\n\n";

pub(super) const PLAN_ONLY: &str = "In this mode I change nothing, so here is what I would do:\n\n\
    1. Write a to-do app into one HTML file: add, tick, delete, kept in localStorage.\n\
    2. Read it again and mend what is unsafe.\n\
    3. Measure it, if you let me.\n\n\
    Switch to build and ask again.";

pub(super) const TASKS: [&str; 4] =
    ["Look what is there", "Make the to-do app in one HTML file", "Read it again and mend it", "Check it"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_has_one_mistake_and_the_app_none() {
        assert_eq!(TODO.matches(RIGHT).count(), 1);
        assert_eq!(draft().matches(WRONG).count(), 1);
        assert_eq!(draft().replace(WRONG, RIGHT), TODO);
        assert!(TODO.contains(MARK) && !TODO.contains("http"), "it needs nothing from elsewhere");
        assert_eq!(TODO.matches(COLOURS[0].1).count(), 1);
    }
}
