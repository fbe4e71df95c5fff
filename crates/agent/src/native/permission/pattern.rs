//! What is remembered when somebody allows a command always.
//!
//! With anything behind it only where that cannot make it run something else; the rest as it was written.

use super::line::Command;
use super::wildcard::literal;

/// Programs that run no other, whatever they are told. Many that seem to belong here do not: `find`, `sort`, `sed`,
/// `tar`, `rg` and `xargs` start programs for an option, `test`, `[` and `printf` obey what stands in a subscript, `cd`
/// changes what the next command means.
const ALONE: [&str; 41] = [
    "basename",
    "cat",
    "chmod",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "exit",
    "false",
    "fgrep",
    "file",
    "grep",
    "head",
    "jq",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "nl",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "seq",
    "sha256sum",
    "sleep",
    "stat",
    "tail",
    "touch",
    "true",
    "wc",
    "which",
];

/// The same of what programs can be told first. Builds and tests run what is in the workspace, as their names say.
const VERBS: [(&str, &[&str]); 3] = [
    (
        "git",
        &[
            "add",
            "blame",
            "branch",
            "checkout",
            "commit",
            "describe",
            "mv",
            "reset",
            "restore",
            "rev-parse",
            "rm",
            "stash",
            "status",
            "switch",
            "tag",
        ],
    ),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "fmt", "test", "tree"]),
    ("go", &["test"]),
];

pub(crate) fn pattern(command: &Command) -> String {
    let mut words = command.words.iter().map(|word| word.plain.as_str());
    let first = words.next().unwrap_or_default();
    if ALONE.contains(&first) {
        return format!("{first} *");
    }
    let second = words.next().unwrap_or_default();
    let verbs = VERBS.iter().find(|(program, _)| *program == first).map_or(&[][..], |(_, verbs)| verbs);
    match verbs.contains(&second) {
        true => format!("{first} {second} *"),
        false => literal(&command.written),
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::Line;
    use super::*;

    #[test]
    fn what_is_remembered_cannot_run_something_else() {
        for (line, remembered) in [
            ("git commit -m 'x y'", "git commit *"),
            ("g'i't   commit", "git commit *"),
            ("cargo test", "cargo test *"),
            ("rm -r x", "rm *"),
            ("wc -l a", "wc *"),
            ("npm run build -- --fast", "npm run build -- --fast"),
            ("npm test", "npm test"),
            ("make all", "make all"),
            ("git push", "git push"),
            ("git -C /x commit", "git -C /x commit"),
            ("git", "git"),
            ("find . -name '*.o'", r"find . -name '\*.o'"),
            ("find . -delete", "find . -delete"),
            ("python3.12 a.py", "python3.12 a.py"),
            ("docker exec x ls", "docker exec x ls"),
            ("./ls a", "./ls a"),
            ("/bin/rm a", "/bin/rm a"),
            ("awk 1 a 2>/dev/null", "awk 1 a 2>/dev/null"),
            ("cd src", "cd src"),
            ("printf -v PATH x", "printf -v PATH x"),
        ] {
            let read = Line::read(line);
            assert_eq!((read.commands.len(), pattern(&read.commands[0]).as_str()), (1, remembered), "{line}");
        }
    }
}
