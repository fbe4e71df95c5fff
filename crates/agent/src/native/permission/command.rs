//! A command line as far as rules need to understand it: which commands are in it, and whether there is more to it.
//!
//! This is no shell. What it does not take for plain words makes the line odd, and an odd line is asked; the commands
//! inside of substitutions and groups are found all the same, so that a deny reaches them.

use std::path::Path;

/// What was read of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// In their order, each without the white space around it.
    pub(crate) commands: Vec<String>,
    /// It substitutes, redirects, sets variables, groups or loops: its words are not all there is to it.
    pub(crate) is_odd: bool,
}

/// Words that begin something other than a command.
const RESERVED: [&str; 20] = [
    "!", "{", "}", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "select", "then", "time", "until", "while",
];

/// Words that run what stands behind them, or let them: what they are given is not the command that counts.
const RUNNERS: [&str; 16] = [
    "alias", "builtin", "command", "doas", "env", "eval", "exec", "nice", "nohup", "setsid", "source", "sudo",
    "timeout", "trap", "xargs", ".",
];

/// Programs that do whatever their arguments say.
const INTERPRETERS: [&str; 14] = [
    "bash",
    "bun",
    "dash",
    "deno",
    "fish",
    "ksh",
    "node",
    "osascript",
    "perl",
    "php",
    "python",
    "python3",
    "ruby",
    "sh",
];

/// Programs whose second word says what they do.
const WITH_VERBS: [&str; 22] = [
    "apt", "aws", "brew", "cargo", "composer", "docker", "dotnet", "gh", "git", "go", "gradle", "helm", "kubectl",
    "npm", "npx", "pip", "pip3", "pnpm", "podman", "rustup", "uv", "yarn",
];

impl Line {
    pub(crate) fn read(line: &str) -> Self {
        let mut reader = Reader::default();
        reader.read(&mut line.chars().peekable(), None);
        reader.line
    }
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Nobody writes more substitutions inside of each other; deeper ones are read as if they stood beside each other.
const DEEPEST: usize = 32;

#[derive(Default)]
struct Reader {
    line: Line,
    command: String,
    depth: usize,
}

impl Reader {
    /// Reads up to and with `until`, or all.
    fn read(&mut self, letters: &mut Letters<'_>, until: Option<char>) {
        while let Some(letter) = letters.next() {
            match letter {
                letter if Some(letter) == until => return self.end(),
                '\\' => match letters.next() {
                    // The line goes on.
                    Some('\n') => self.command.push(' '),
                    Some(next) => self.command.extend(['\\', next]),
                    None => self.line.is_odd = true,
                },
                '\'' => self.quoted_exactly(letters),
                '"' => self.quoted(letters),
                '#' if self.command.is_empty() || self.command.ends_with(char::is_whitespace) => {
                    while letters.next_if(|next| *next != '\n').is_some() {}
                }
                '\n' | ';' => self.end(),
                '|' => {
                    letters.next_if(|next| matches!(next, '|' | '&'));
                    self.end();
                }
                // `2>&1` is part of a redirection; alone it sends the command to the background.
                '&' if self.command.ends_with(['>', '<']) || letters.peek() == Some(&'>') => self.command.push('&'),
                '&' => {
                    self.line.is_odd |= letters.next_if_eq(&'&').is_none();
                    self.end();
                }
                '$' => self.expansion(letters),
                '`' => self.nested(letters, '`'),
                '(' => self.nested(letters, ')'),
                '>' => {
                    self.command.push('>');
                    self.command.extend(letters.next_if_eq(&'>'));
                    self.line.is_odd |= !leads_nowhere(letters.clone());
                }
                '<' | ')' => {
                    self.command.push(letter);
                    self.line.is_odd = true;
                }
                letter => self.command.push(letter),
            }
        }
        self.line.is_odd |= until.is_some();
        self.end();
    }

    fn quoted_exactly(&mut self, letters: &mut Letters<'_>) {
        self.command.push('\'');
        for letter in letters.by_ref() {
            self.command.push(letter);
            if letter == '\'' {
                return;
            }
        }
        self.line.is_odd = true;
    }

    /// Double quotes keep words together; what is substituted inside of them runs all the same.
    fn quoted(&mut self, letters: &mut Letters<'_>) {
        self.command.push('"');
        while let Some(letter) = letters.next() {
            match letter {
                '"' => return self.command.push('"'),
                '\\' => {
                    self.command.push('\\');
                    self.command.extend(letters.next());
                }
                '`' => self.nested(letters, '`'),
                '$' => self.expansion(letters),
                letter => self.command.push(letter),
            }
        }
        self.line.is_odd = true;
    }

    fn expansion(&mut self, letters: &mut Letters<'_>) {
        self.line.is_odd = true;
        self.command.push('$');
        if letters.next_if_eq(&'(').is_some() {
            self.nested(letters, ')');
        }
    }

    /// Commands inside of a command; the one around them goes on behind them.
    fn nested(&mut self, letters: &mut Letters<'_>, until: char) {
        self.line.is_odd = true;
        if self.depth == DEEPEST {
            return self.end();
        }
        let around = std::mem::take(&mut self.command);
        self.depth += 1;
        self.read(letters, Some(until));
        self.depth -= 1;
        self.command = around;
    }

    fn end(&mut self) {
        let mut command = std::mem::take(&mut self.command);
        loop {
            let trimmed = command.trim();
            let first = trimmed.split_whitespace().next().unwrap_or_default();
            if RESERVED.contains(&first) || is_assignment(first) {
                self.line.is_odd = true;
                command = trimmed[first.len()..].to_owned();
                continue;
            }
            self.line.is_odd |= RUNNERS.contains(&first);
            if !trimmed.is_empty() {
                self.line.commands.push(trimmed.to_owned());
            }
            return;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '[' | ']'))
}

/// Whether what follows a `>` is another stream of the command, or nothing at all.
fn leads_nowhere(rest: Letters<'_>) -> bool {
    let rest: String = rest.skip_while(|letter| *letter == ' ').take(16).collect();
    let ends = |rest: &str| rest.chars().next().is_none_or(|next| next.is_whitespace() || ";|&)".contains(next));
    ["/dev/null", "&1", "&2", "&-"].iter().any(|place| rest.strip_prefix(place).is_some_and(ends))
}

/// Whether none of the command's words names a place outside of the workspace. Programs have ways of their own to reach
/// out; this is of those that [`super::usual`] vouches for.
pub(super) fn stays_inside(command: &str, workspace: &Path) -> bool {
    let workspace = workspace.to_string_lossy();
    command.split_whitespace().all(|word| {
        let word = word.strip_prefix("2>").or_else(|| word.strip_prefix('>')).unwrap_or(word);
        let bare: String = word.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
        // An option may have its value behind a `=`, a revision its path behind a `:`.
        bare.split(['=', ':']).all(|place| {
            let inside = place.strip_prefix(&*workspace).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            let is_away = place.starts_with('/') && !inside && place != "/dev/null";
            !is_away && !place.starts_with('~') && !place.split('/').any(|part| part == "..")
        })
    })
}

/// What is remembered when somebody allows this command always: the words that say what it does, with anything behind
/// them. Of what runs other programs, only that very command.
pub(crate) fn pattern(command: &str) -> String {
    let mut words = command.split_whitespace();
    let first = words.next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    if RUNNERS.contains(&name) || INTERPRETERS.contains(&name) {
        return super::literal(command);
    }
    let is_verb =
        |word: &&str| !word.starts_with('-') && word.chars().all(|c| c.is_alphanumeric() || "-_:".contains(c));
    let mut kept = vec![first];
    if WITH_VERBS.contains(&name) {
        let verb = words.next();
        match verb.filter(is_verb) {
            Some(verb) => kept.push(verb),
            // `git -C somewhere push`: what it does cannot be told from its first words.
            None if verb.is_some() => return super::literal(command),
            None => {}
        }
        if kept.last() == Some(&"run") {
            kept.extend(words.next().filter(is_verb));
        }
    }
    format!("{} *", kept.iter().map(|word| super::literal(word)).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn plain(line: &str, commands: &[&str]) {
        let read = Line::read(line);
        assert_eq!((read.commands, read.is_odd), (commands.iter().map(|c| (*c).to_owned()).collect(), false), "{line}");
    }

    #[track_caller]
    fn odd(line: &str, commands: &[&str]) {
        let read = Line::read(line);
        assert_eq!((read.commands, read.is_odd), (commands.iter().map(|c| (*c).to_owned()).collect(), true), "{line}");
    }

    #[test]
    fn every_command_of_a_line_is_found() {
        plain("ls", &["ls"]);
        plain("ls -la && git status", &["ls -la", "git status"]);
        plain("a || b; c | d |& e\nf", &["a", "b", "c", "d", "e", "f"]);
        plain("echo 'a; b && c' \"d | e\"", &["echo 'a; b && c' \"d | e\""]);
        plain(r"echo a\;b", &[r"echo a\;b"]);
        plain("ls # && rm -rf x", &["ls"]);
        plain("ls \\\n -la", &["ls   -la"]);
        plain("ls 2>/dev/null", &["ls 2>/dev/null"]);
        plain("make 2>&1 | tail", &["make 2>&1", "tail"]);
        plain("  ", &[]);
    }

    #[test]
    fn what_is_more_than_words_is_odd() {
        odd("echo $(rm -rf x)", &["rm -rf x", "echo $"]);
        odd("echo \"$(a; rm -rf x)\"; b", &["a", "rm -rf x", "echo \"$\"", "b"]);
        odd("echo $(a $(b \")\"))", &["b \")\"", "a $", "echo $"]);
        odd("echo `rm x`", &["rm x", "echo"]);
        odd("echo \"`rm x`\"", &["rm x", "echo \"\""]);
        odd("echo $(rm x", &["rm x", "echo $"]);
        odd(&"(".repeat(100_000), &[]);
        odd("(cd a; rm b)", &["cd a", "rm b"]);
        odd("ls > out", &["ls > out"]);
        odd("ls >> ~/.bashrc", &["ls >> ~/.bashrc"]);
        odd("ls >/dev/nullx", &["ls >/dev/nullx"]);
        odd("ls &> out", &["ls &> out"]);
        odd("cat < in", &["cat < in"]);
        odd("cat <<E\nrm x\nE", &["cat <<E", "rm x", "E"]);
        odd("diff <(a) <(b)", &["a", "b", "diff < <"]);
        odd("sleep 9 &", &["sleep 9"]);
        odd("LD_PRELOAD=x ls", &["ls"]);
        odd("for x in a; do rm $x; done", &["x in a", "rm $x"]);
        odd("if a; then b; fi", &["a", "b"]);
        odd("echo 'open", &["echo 'open"]);
        odd("echo \"open", &["echo \"open"]);
        odd("sudo ls", &["sudo ls"]);
        odd("xargs rm", &["xargs rm"]);
        odd("echo $HOME", &["echo $HOME"]);
        odd("ls \\", &["ls"]);
    }

    proptest::proptest! {
        /// Whatever it is, it is read; and a plain line is nothing but its commands.
        #[test]
        fn any_line_can_be_read(line in "([a-z ;|&$()`'\"<>\\\\\n#={}!]|ö){0,60}") {
            let read = Line::read(&line);
            if !read.is_odd {
                let kept: usize = read.commands.iter().map(String::len).sum();
                proptest::prop_assert!(kept <= line.len());
                proptest::prop_assert!(!read.commands.iter().any(|command| command.starts_with(['(', '$', '`'])));
            }
        }
    }

    #[test]
    fn what_is_remembered_says_what_the_command_does() {
        for (command, remembered) in [
            ("git commit -m x", "git commit *"),
            ("npm run build -- --fast", "npm run build *"),
            ("npm test", "npm test *"),
            ("cargo test", "cargo test *"),
            ("make all", "make *"),
            ("make", "make *"),
            ("git -C /x push", "git -C /x push"),
            ("python -c 'x'", "python -c 'x'"),
            ("/usr/bin/python3 a.py", "/usr/bin/python3 a.py"),
            ("sudo make", "sudo make"),
            ("sh -c 'rm *'", r"sh -c 'rm \*'"),
            ("git", "git *"),
        ] {
            assert_eq!(pattern(command), remembered, "{command}");
        }
    }

    #[test]
    fn a_command_that_names_a_place_outside_does_not_stay() {
        let stays = |command| stays_inside(command, Path::new("/work/place"));
        for command in ["ls", "ls -la src", "ls /work/place/src", "git log --since=1.week", "ls 2>/dev/null", "ls ..."]
        {
            assert!(stays(command), "{command}");
        }
        for command in
            ["ls /", "ls ..", "ls a/../..", "ls ~", "ls '/etc'", "ls \"/etc\"", r"ls \/etc", "git diff --x=/etc"]
        {
            assert!(!stays(command), "{command}");
        }
        assert!(!stays("ls /work/placebo"));
    }
}
