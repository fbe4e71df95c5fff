//! What quotes keep together, and what is substituted in spite of them.

use super::{DEEPEST, Reader};

impl Reader<'_> {
    pub(super) fn quoted_exactly(&mut self) {
        self.word().open_quotes();
        while let Some(letter) = self.next() {
            match letter {
                '\'' => return,
                letter => self.word().push_quoted(letter),
            }
        }
        self.line.is_odd = true;
    }

    /// Double quotes keep words together; what is substituted inside of them runs all the same.
    pub(super) fn quoted(&mut self) {
        self.word().open_quotes();
        while let Some(letter) = self.next() {
            match letter {
                '"' => return,
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(next @ ('$' | '`' | '"' | '\\')) => self.word().push_quoted(next),
                    Some(next) => ['\\', next].into_iter().for_each(|letter| self.word().push_quoted(letter)),
                    None => break,
                },
                '`' => self.backticks(true),
                '$' => self.expansion(),
                letter => self.word().push_quoted(letter),
            }
        }
        self.line.is_odd = true;
    }

    pub(super) fn expansion(&mut self) {
        self.line.is_odd = true;
        self.word().is_substituted = true;
        self.skip_joints();
        // What is substituted may be nothing: then what is around it is the word.
        match self.next_if(&['(', '{', '\'']) {
            Some('(') => self.nested(')'),
            Some('{') => self.braced(),
            Some(_) => self.quoted_with_escapes(),
            None => self.word().push('$'),
        }
    }

    /// Old-fashioned commands inside of a command. Where they end is settled before they are read: a quote inside does not
    /// reach beyond.
    pub(super) fn backticks(&mut self, is_quoted: bool) {
        self.line.is_odd = true;
        self.word().is_substituted = true;
        if self.depth >= DEEPEST {
            return self.end(self.at);
        }
        let mut inside = String::new();
        while let Some(letter) = self.next().filter(|letter| *letter != '`') {
            match (letter, self.peek()) {
                ('\\', Some(next @ ('`' | '\\' | '$'))) => {
                    self.next();
                    inside.push(next);
                }
                ('\\', Some('"')) if is_quoted => {}
                (letter, _) => inside.push(letter),
            }
        }
        let mut reader = Reader::new(&inside, self.depth + 1);
        reader.read(None);
        self.line.commands.append(&mut reader.line.commands);
    }

    /// `$'…'`, in which a backslash keeps a quote from being the last.
    fn quoted_with_escapes(&mut self) {
        while let Some(letter) = self.next() {
            match letter {
                '\'' => return,
                '\\' => drop(self.next()),
                letter => self.word().push_quoted(letter),
            }
        }
    }

    /// `${…}`, in which nothing ends a command.
    fn braced(&mut self) {
        self.depth += 1;
        while let Some(letter) = self.next() {
            match letter {
                '}' => break,
                '\\' => drop(self.next()),
                '\'' => self.quoted_exactly(),
                '"' if self.depth < DEEPEST => self.quoted(),
                '`' => self.backticks(false),
                '$' if self.depth < DEEPEST => self.expansion(),
                _ => {}
            }
        }
        self.depth -= 1;
    }
}
