//! A template with what was written behind its name put into it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::folder::Folder;

/// More than a person mentions.
const FILES: usize = 20;
/// What is longer is no prompt.
const LONGEST: usize = 256 * 1024;

/// A prompt that was made from a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    pub text: String,
    /// Files of the workspace that it mentions as `@path`, from the workspace on.
    pub files: Vec<String>,
}

/// All that was written behind the name.
const ALL: &str = "$ARGUMENTS";

/// `$ARGUMENTS` is all that was written, `$1` a word of it, `$10` another; the last of the numbered ones takes the rest.
/// Where a template has no place for what was written, it follows. Looks at files.
pub fn fill(template: &str, arguments: &str, workspace: &Path) -> Filled {
    let words = words(arguments);
    let last = numbers(template).pop_last();
    let mut text = String::with_capacity(template.len() + arguments.len());
    let mut is_placed = last.is_some();
    let mut rest = template;
    // One pass: what is put in is not looked through again.
    while let Some(at) = rest.find(['$', '!']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if text.len() > LONGEST {
            break;
        }
        if let Some(after) = rest.strip_prefix(ALL) {
            text.push_str(arguments);
            (rest, is_placed) = (after, true);
        } else if let Some((n, after)) = numbered(rest) {
            text.push_str(&match Some(n) == last {
                true => words.get(n - 1..).unwrap_or_default().join(" "),
                false => words.get(n - 1).cloned().unwrap_or_default(),
            });
            rest = after;
        } else if let Some((command, after)) = asked_for(rest) {
            text.push_str(&format!("[run the command `{command}` and take what it prints for this place]"));
            rest = after;
        } else {
            text.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    text.push_str(rest);
    if !is_placed && !arguments.is_empty() {
        text = format!("{}\n\n{arguments}", text.trim_end());
    }
    text.truncate(text.floor_char_boundary(LONGEST));
    let files = mentioned(&text, workspace);
    Filled { text, files }
}

/// The places that a template has for what is written, each once: the numbered ones, then the one for all of it.
pub fn places(template: &str) -> Vec<String> {
    let all = template.contains(ALL).then(|| ALL.to_owned());
    numbers(template).into_iter().map(|n| format!("${n}")).chain(all).collect()
}

/// Of its places, in their order.
fn numbers(template: &str) -> BTreeSet<usize> {
    template.match_indices('$').filter_map(|(at, _)| Some(numbered(&template[at..])?.0)).collect()
}

/// A number is read whole: `$10` is the tenth word, as OpenCode has it.
fn numbered(text: &str) -> Option<(usize, &str)> {
    let rest = text.strip_prefix('$')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let n = rest[..end].parse().ok().filter(|n| *n > 0)?;
    Some((n, &rest[end..]))
}

/// A command whose output is wanted: in `!` and backticks.
fn asked_for(text: &str) -> Option<(&str, &str)> {
    let (command, after) = text.strip_prefix("!`")?.split_once('`')?;
    (!command.trim().is_empty() && !command.contains('\n')).then_some((command.trim(), after))
}

/// What was written, as words; quotes hold words together.
pub fn words(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for c in arguments.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if matches!(c, '"' | '\'') => (quote, is_word) = (Some(c), true),
            None if c.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            None => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

/// Files that are there. An address of a person has no file.
fn mentioned(text: &str, workspace: &Path) -> Vec<String> {
    let Ok(folder) = Folder::open(workspace) else { return Vec::new() };
    let mut files: Vec<String> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"' | '\'' | '`')) {
        let Some(path) = word.strip_prefix('@') else { continue };
        let path = path.trim_start_matches("./").trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']']);
        if files.len() < FILES && !files.iter().any(|known| known == path) && folder.read(path).is_ok() {
            files.push(path.to_owned());
        }
    }
    files
}
