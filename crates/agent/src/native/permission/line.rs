//! A command line as far as rules need to understand it: which commands are in it, and whether there is more to it.
//!
//! This is no shell. What it does not take for plain words makes the line odd, and an odd line is asked; the commands
//! inside of substitutions and groups are found all the same, so that a deny reaches them. Of a line that is not odd
//! every word is known: as bash splits and unquotes it, with blanks, quotes and backslashes in no other role than theirs.

mod quotes;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use word::Word;

/// What was read of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// In the order of their ends.
    pub(crate) commands: Vec<Command>,
    /// It substitutes, redirects, sets variables, groups or loops: its words are not all there is to it.
    pub(crate) is_odd: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// Never empty. Redirections are no words.
    pub(crate) words: Vec<Word>,
    /// As it is written.
    pub(crate) written: String,
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

/// Where another command may begin inside of one, so many places are looked at: nobody writes more.
const RUN: usize = 16;

/// Nobody writes more substitutions inside of each other; deeper ones are read as if they stood beside each other.
const DEEPEST: usize = 32;

impl Line {
    pub(crate) fn read(line: &str) -> Self {
        let mut reader = Reader::new(line, 0);
        reader.read(None);
        reader.line
    }
}

impl Command {
    /// Its words, each quoted in the same way however it was written: `r""m 'a b'` is `rm a\ b`.
    pub(crate) fn plain(&self) -> String {
        plain(&self.words)
    }

    /// The first word, without the folders before it.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.text.rsplit('/').next().unwrap_or_default())
    }
}

fn plain(words: &[Word]) -> String {
    words.iter().map(|word| word.plain.as_str()).collect::<Vec<_>>().join(" ")
}

/// A command on its way.
#[derive(Default)]
struct Draft {
    /// Where it begins.
    start: Option<usize>,
    words: Vec<Word>,
    /// The one that is being read: nothing but an unquoted blank, line break or operator ends it.
    word: Option<Word>,
    redirection: Option<Redirection>,
    /// Where a shell that has no `&>` would begin another command, in words.
    breaks: Vec<usize>,
}

/// One whose target is still to come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Redirection {
    File,
    Stream,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: Line,
    draft: Draft,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, depth: usize) -> Self {
        Reader { text, at: 0, line: Line::default(), draft: Draft::default(), depth }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn next_if(&mut self, wanted: &[char]) -> Option<char> {
        self.peek().filter(|letter| wanted.contains(letter))?;
        self.next()
    }

    /// A backslash before a line break is nothing at all, even inside of an operator.
    fn skip_joints(&mut self) {
        while self.text[self.at..].starts_with("\\\n") {
            self.at += 2;
        }
    }

    /// Reads up to and with `until`, or all.
    fn read(&mut self, until: Option<char>) {
        loop {
            let before = self.at;
            let Some(letter) = self.next() else { break };
            if !matches!(letter, ' ' | '\t' | '\n' | ';' | '#') {
                self.draft.start.get_or_insert(before);
            }
            match letter {
                letter if Some(letter) == until => return self.end(before),
                ' ' | '\t' => self.end_word(),
                '\n' | ';' => self.end(before),
                '#' if self.draft.word.is_none() => self.comment(before),
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(next) => self.word().push_quoted(next),
                    None => self.line.is_odd = true,
                },
                '\'' => self.quoted_exactly(),
                '"' => self.quoted(),
                '|' => {
                    self.next_if(&['|', '&']);
                    self.end(before);
                }
                '&' => self.ampersand(before),
                '$' => self.expansion(),
                '`' => self.backticks(false),
                '(' if self.draft.word.as_ref().is_some_and(|word| word.text.ends_with('=')) => self.nested(')'),
                '(' => {
                    self.end(before);
                    self.nested(')');
                }
                ')' => {
                    self.line.is_odd = true;
                    self.end(before);
                }
                '>' | '<' => self.redirection(letter),
                letter => {
                    // Shells do not agree on what else is blank.
                    self.line.is_odd |= letter.is_control() || letter.is_whitespace();
                    self.word().push(letter);
                }
            }
        }
        self.line.is_odd |= until.is_some();
        self.end(self.at);
    }

    fn word(&mut self) -> &mut Word {
        self.draft.word.get_or_insert_default()
    }

    /// Up to the end of the line. Inside of something that we do not read to the letter it may be none, as in `$((1 #`.
    fn comment(&mut self, from: usize) {
        let end = self.text[from..].find('\n').map_or(self.text.len(), |at| from + at);
        if (1..DEEPEST).contains(&self.depth) {
            let mut reader = Reader::new(&self.text[from + 1..end], self.depth + 1);
            reader.read(None);
            self.line.commands.append(&mut reader.line.commands);
        }
        self.end(from);
        self.at = end;
    }

    /// Commands inside of a command, up to a parenthesis; the one around them goes on behind them.
    fn nested(&mut self, until: char) {
        self.line.is_odd = true;
        if self.depth >= DEEPEST {
            return self.end(self.at);
        }
        let around = std::mem::take(&mut self.draft);
        self.depth += 1;
        self.read(Some(until));
        self.depth -= 1;
        self.draft = around;
    }

    fn ampersand(&mut self, before: usize) {
        self.skip_joints();
        match self.peek() {
            Some('&') => drop(self.next()),
            // Both streams to one place in bash; elsewhere the command goes to the background, and another begins.
            Some('>') => {
                self.line.is_odd = true;
                self.end_word();
                return self.draft.breaks.push(self.draft.words.len());
            }
            _ => self.line.is_odd = true,
        }
        self.end(before);
    }

    fn redirection(&mut self, letter: char) {
        match self.draft.word.take() {
            // The number of a stream, right before it.
            Some(word) if word.is_number() => {}
            word => {
                // `{name}>` is a stream too.
                self.line.is_odd |= word.as_ref().is_some_and(|word| word.text.ends_with('}'));
                self.draft.word = word;
                self.end_word();
            }
        }
        self.line.is_odd |= self.draft.redirection.is_some();
        self.skip_joints();
        if letter == '>' {
            self.next_if(&['>']);
        } else {
            self.line.is_odd |= self.next_if(&['<', '>']).is_some();
        }
        self.skip_joints();
        self.draft.redirection = Some(match self.next_if(&['&', '(']) {
            Some('&') => Redirection::Stream,
            Some(_) => {
                self.word().open_quotes();
                self.nested(')');
                Redirection::File
            }
            None => Redirection::File,
        });
    }

    fn end_word(&mut self) {
        let Some(word) = self.draft.word.take().map(Word::ended) else { return };
        match self.draft.redirection.take() {
            None => self.draft.words.push(word),
            Some(Redirection::File) => self.line.is_odd |= word.plain != "/dev/null",
            Some(Redirection::Stream) => self.line.is_odd |= !["1", "2", "-"].contains(&word.plain.as_str()),
        }
    }

    /// Ends the command, which stands before this place.
    fn end(&mut self, before: usize) {
        self.end_word();
        let draft = std::mem::take(&mut self.draft);
        self.line.is_odd |= draft.redirection.is_some();
        let written = self.text[draft.start.unwrap_or(before).min(before)..before].trim_matches([' ', '\t', '\n']);
        for at in draft.breaks.into_iter().take(RUN) {
            self.keep(&draft.words[..at], None);
            self.keep(&draft.words[at..], None);
        }
        self.keep(&draft.words, Some(written));
    }

    fn keep(&mut self, words: &[Word], written: Option<&str>) {
        let is_head = |word: &&Word| RESERVED.contains(&word.text.as_str()) || word.is_assignment();
        let heads = words.iter().take_while(is_head).count();
        let (heads, words) = words.split_at(heads);
        self.line.is_odd |= !heads.is_empty();
        let Some(first) = words.first() else { return };
        // `[` alone is a program.
        self.line.is_odd |= (first.is_open && first.text != "[") || words.iter().any(|word| word.is_braced);
        // What stands behind a word that is no part of the command says nothing about it as it is written.
        let written = written.filter(|_| heads.is_empty()).map_or_else(|| plain(words), str::to_owned);
        let command = Command { words: words.to_vec(), written };
        if first.is_substituted || RUNNERS.contains(&command.program()) {
            self.line.is_odd = true;
            for at in 1..words.len().min(RUN) {
                self.line.commands.push(Command { words: words[at..].to_vec(), written: plain(&words[at..]) });
            }
        }
        self.line.commands.push(command);
    }
}
