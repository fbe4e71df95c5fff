//! The rules that are there before anybody writes one.
//!
//! Looking is free, but for files that hold secrets. Changing files of the workspace is free: every change is shown, and
//! the checkpoint before the turn takes it back. Commands, what lies outside and the web are asked, for none can be taken
//! back; but for a few commands that only look.

use super::{Leave, Rule};

const RULES: &[(&str, &str, Leave)] = &[
    ("*", "*", Leave::Ask),
    ("read", "*", Leave::Allow),
    ("read", "*.env", Leave::Ask),
    ("read", "*.env.*", Leave::Ask),
    ("read", "*.env.example", Leave::Allow),
    ("glob", "*", Leave::Allow),
    ("grep", "*", Leave::Allow),
    ("list", "*", Leave::Allow),
    ("todowrite", "*", Leave::Allow),
    ("question", "*", Leave::Allow),
    ("artifact", "*", Leave::Allow),
    ("task", "*", Leave::Allow),
    ("edit", "*", Leave::Allow),
    ("outside", "*", Leave::Ask),
    ("webfetch", "*", Leave::Ask),
    ("websearch", "*", Leave::Ask),
    ("mcp", "*", Leave::Ask),
    ("bash", "*", Leave::Ask),
    ("bash", "pwd", Leave::Allow),
    ("bash", "true", Leave::Allow),
    ("bash", "false", Leave::Allow),
    ("bash", "date", Leave::Allow),
    ("bash", "ls *", Leave::Allow),
    ("bash", "echo *", Leave::Allow),
    ("bash", "which *", Leave::Allow),
    ("bash", "git status *", Leave::Allow),
    ("bash", "git branch", Leave::Allow),
    ("bash", "git diff *", Leave::Allow),
    ("bash", "git log *", Leave::Allow),
    ("bash", "git show *", Leave::Allow),
    // They write a file with `--output`, which git lets people shorten, and run programs that a repository names. All of them do,
    // but where that is known to name none: see `Whereabouts::is_quiet`.
    ("bash", "git *--ou*", Leave::Ask),
    ("bash", "git *--ext*", Leave::Ask),
    ("bash", "git *--sub*", Leave::Ask),
    ("bash", "git *--textc*", Leave::Ask),
    // It reads any two files, tracked or not.
    ("bash", "git *--no-i*", Leave::Ask),
];

pub(super) fn rules() -> Vec<Rule> {
    let rule = |(permission, pattern, leave): &(&str, &str, Leave)| Rule {
        permission: (*permission).to_owned(),
        pattern: (*pattern).to_owned(),
        leave: *leave,
    };
    RULES.iter().map(rule).collect()
}
