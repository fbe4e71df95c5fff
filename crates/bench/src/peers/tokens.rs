//! The script: so many numbered tokens, one after the other.

use std::time::Duration;

use crate::paced::EVERY;

pub(super) const TOKENS: u64 = 600;
pub(super) const BURST: u64 = 5000;

/// What the script is told in the prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    /// The number of the first: another for each turn of a session, because some streams begin with all that was.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) every: Duration,
}

impl Tokens {
    pub(super) fn paced() -> Self {
        Tokens { first: 0, count: TOKENS, every: EVERY }
    }

    pub(super) fn burst() -> Self {
        Tokens { first: 0, count: BURST, every: Duration::ZERO }
    }

    pub(crate) fn words(self) -> String {
        format!("first={} tokens={} micros={};", self.first, self.count, self.every.as_micros())
    }

    /// The last such words in a text.
    pub(crate) fn in_words(text: &str) -> Option<Self> {
        let words = &text[text.rfind("first=")?..];
        let mut numbers = words[..words.find(';')?].split(' ').map(|word| word.split_once('=')?.1.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Tokens { first: next()?, count: next()?, every: Duration::from_micros(next()?) })
    }

    pub(super) fn last(self) -> u64 {
        self.first + self.count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_says_how_many_tokens_and_how_often() {
        let tokens = Tokens { first: 7, ..Tokens::paced() };
        let text = format!("{} and {}\"", Tokens::burst().words(), tokens.words());
        let read = Tokens::in_words(&text).expect("it is there");
        assert_eq!((read.first, read.count, read.every), (7, TOKENS, EVERY));
        assert!(Tokens::in_words("say something").is_none());
    }
}
