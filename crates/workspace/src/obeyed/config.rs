//! Git's configuration files, read as git reads them: to know what they name, without asking git, which would obey them.

use std::iter::Peekable;
use std::str::Chars;

/// One line of a configuration: `section.part.key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// In small letters, like the key.
    pub(super) section: String,
    pub(super) part: Option<String>,
    pub(super) key: String,
    pub(super) value: String,
}

impl Setting {
    /// The part in the middle is left out.
    pub(super) fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.key == key
    }
}

type Letters<'a> = Peekable<Chars<'a>>;

/// `None`: git does not understand it either.
pub(super) fn read(text: &str) -> Option<Vec<Setting>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut letters = text.chars().peekable();
    let mut settings = Vec::new();
    // Git takes a key before any section for a name of its own.
    let mut head = (String::new(), None);
    while let Some(letter) = letters.next() {
        match letter {
            '#' | ';' => skip_line(&mut letters),
            '[' => head = section(&mut letters)?,
            _ if letter.is_whitespace() => {}
            _ if letter.is_ascii_alphabetic() => {
                let (section, part) = head.clone();
                let mut key = letter.to_string();
                while let Some(more) = letters.next_if(|more| is_of_key(*more)) {
                    key.push(more);
                }
                let key = key.to_ascii_lowercase();
                settings.push(Setting { section, part, key, value: value(&mut letters)? });
            }
            _ => return None,
        }
    }
    Some(settings)
}

fn is_of_key(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-'
}

fn skip_line(letters: &mut Letters<'_>) {
    while letters.next_if(|letter| *letter != '\n').is_some() {}
}

/// What stands in brackets: `[core]`, `[remote "origin"]`, `[remote.origin]`.
fn section(letters: &mut Letters<'_>) -> Option<(String, Option<String>)> {
    let mut name = String::new();
    loop {
        match letters.next()? {
            ']' => break,
            letter if is_of_key(letter) || letter == '.' => name.push(letter.to_ascii_lowercase()),
            ' ' | '\t' => return Some((name, Some(quoted(letters)?))),
            _ => return None,
        }
    }
    Some(match name.split_once('.') {
        Some((name, part)) => (name.to_owned(), Some(part.to_owned())),
        None => (name, None),
    })
}

/// The part in quotes, up to the bracket.
fn quoted(letters: &mut Letters<'_>) -> Option<String> {
    while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some() {}
    letters.next_if_eq(&'"')?;
    let mut part = String::new();
    loop {
        match letters.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => part.push(letters.next().filter(|letter| *letter != '\n')?),
            letter => part.push(letter),
        }
    }
    letters.next_if_eq(&']').map(|_| part)
}

/// What stands behind a key; a key alone says that it is so.
fn value(letters: &mut Letters<'_>) -> Option<String> {
    while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some() {}
    match letters.next() {
        None | Some('\n') => return Some("true".to_owned()),
        Some('=') => {}
        Some(_) => return None,
    }
    let (mut value, mut blanks, mut is_quoted) = (String::new(), String::new(), false);
    loop {
        let letter = match letters.next() {
            None | Some('\n') => return (!is_quoted).then_some(value),
            Some('#' | ';') if !is_quoted => {
                skip_line(letters);
                return Some(value);
            }
            Some('"') => {
                is_quoted = !is_quoted;
                value.push_str(&std::mem::take(&mut blanks));
                continue;
            }
            Some('\\') => match letters.next()? {
                '\n' => continue,
                't' => '\t',
                'b' => '\u{8}',
                'n' => '\n',
                letter @ ('\\' | '"') => letter,
                _ => return None,
            },
            Some(letter) if letter.is_whitespace() && !is_quoted => {
                // Blanks before it and behind it are none of it.
                if !value.is_empty() {
                    blanks.push(letter);
                }
                continue;
            }
            Some(letter) => letter,
        };
        value.push_str(&std::mem::take(&mut blanks));
        value.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The judge is git itself.
    #[test]
    fn a_configuration_is_read_as_git_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        for text in [
            "[core]\n\tbare = false\n\tfsmonitor = \"id > RAN; false\"\n",
            "[core] bare=false worktree = ..\n[Remote \"a \\\"b\\\\ c\"] URL = x ; no\n",
            "[a.b.C]\nkey\nother-key=  two  words \\\n and more  # no\n",
            "\u{feff}# first\r\n[a]\r\n\tb = \"  x;y \" z\r\n",
            "[a]b=1\n[a \"\"]b=\\t\\n\\\\\\\"\n[a]\n x = \"a\\\nb\"",
            "[include] path = ../team.gitconfig\n[includeIf \"gitdir:~/x/\"]\npath=/y\n",
            "[a]\nb=\n c = \"\"\n",
            "x = 1\n",
            "[a]\nb c\n",
            "[a]\nb = \"open\n",
            "[a\n]\nb=1\n",
            "[a \"b]\nc=1\n",
            "[a]\nb = \\x\n",
            "[a]\n_b = 1\n",
        ] {
            std::fs::write(&file, text).unwrap();
            let listed = Command::new("git").arg("config").arg("--file").arg(&file).args(["--list", "-z"]).output();
            let listed = listed.unwrap();
            let said = String::from_utf8(listed.stdout).unwrap();
            let ours = read(text).map(|settings| {
                let name = |it: &Setting| match &it.part {
                    Some(part) => format!("{}.{part}.{}", it.section, it.key),
                    None if it.section.is_empty() => it.key.clone(),
                    None => format!("{}.{}", it.section, it.key),
                };
                settings.iter().map(|it| (name(it), it.value.clone())).collect::<Vec<_>>()
            });
            let entry = |entry: &str| {
                let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
                (name.to_owned(), value.to_owned())
            };
            let theirs = || said.split_terminator('\0').map(entry).collect::<Vec<_>>();
            assert_eq!(ours, listed.status.success().then(theirs), "{text:?}");
        }
    }
}
