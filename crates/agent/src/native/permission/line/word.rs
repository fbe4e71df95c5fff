//! A word of a command: what it is once the shell has taken its quotes away.

/// Letters that mean nothing to a shell wherever they stand in a word.
fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-./=:,@%+^".contains(letter) || (!letter.is_ascii() && letter.is_alphanumeric())
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Word {
    /// Without quotes.
    pub(crate) text: String,
    /// With those that are needed, always in the same way: two words that are written in this way are one to the shell.
    pub(crate) plain: String,
    /// The shell may make another word of it, or many: by the names of files, or of a home folder.
    pub(crate) is_open: bool,
    /// It is several words to a shell that knows braces.
    pub(crate) is_braced: bool,
    /// Something is substituted in it: it may be nothing at all, and the command the next word.
    pub(super) is_substituted: bool,
    /// Where a brace was opened.
    brace: Option<usize>,
    has_quotes: bool,
}

impl Word {
    /// A letter that stands there as it is.
    pub(super) fn push(&mut self, letter: char) {
        let before = self.text.chars().next_back();
        self.is_open |= match letter {
            '*' | '?' | '[' => true,
            '~' => before.is_none_or(|before| matches!(before, '=' | ':')),
            _ => false,
        };
        if letter == '{' {
            self.brace.get_or_insert(self.text.len());
        }
        self.text.push(letter);
        self.plain.push(letter);
        self.look_for_braces();
    }

    /// A letter that has no meaning to the shell but itself.
    pub(super) fn push_quoted(&mut self, letter: char) {
        self.has_quotes = true;
        self.text.push(letter);
        match letter {
            // A backslash would take it away.
            '\n' => self.plain.push_str("'\n'"),
            letter if is_plain(letter) => self.plain.push(letter),
            letter => self.plain.extend(['\\', letter]),
        }
        self.look_for_braces();
    }

    /// Quotes begin: there is a word, even if nothing is between them.
    pub(super) fn open_quotes(&mut self) {
        self.has_quotes = true;
    }

    pub(super) fn ended(mut self) -> Self {
        if self.plain.is_empty() {
            self.plain.push_str("''");
        }
        self
    }

    fn look_for_braces(&mut self) {
        let inside = self.brace.map(|at| &self.text[at..]);
        self.is_braced |= inside.is_some_and(|inside| inside.ends_with(',') || inside.ends_with(".."));
    }

    pub(super) fn is_number(&self) -> bool {
        !self.has_quotes && self.text.chars().all(|letter| letter.is_ascii_digit())
    }

    pub(super) fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.text.split_once('=') else { return false };
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let begins = name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
        begins && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
    }
}
