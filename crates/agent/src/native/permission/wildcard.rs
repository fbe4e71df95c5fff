//! Patterns on a whole subject: `*` is anything (a `/` and nothing at all too), `?` one character, and a backslash
//! before either takes its meaning away.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Any,
    One,
    Exactly(char),
}

/// `git status *` means `git status` alone as well.
pub(super) fn matches(pattern: &str, subject: &str) -> bool {
    let tokens = tokens(pattern);
    let letters: Vec<char> = subject.chars().collect();
    let alone = tokens.strip_suffix(&[Token::Exactly(' '), Token::Any]);
    fits(&tokens, &letters) || alone.is_some_and(|alone| !alone.is_empty() && fits(alone, &letters))
}

/// A pattern that matches nothing but this.
pub(crate) fn literal(subject: &str) -> String {
    let mut pattern = String::with_capacity(subject.len());
    for letter in subject.chars() {
        if matches!(letter, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut letters = pattern.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(letter) = letters.next() {
        tokens.push(match letter {
            '*' => Token::Any,
            '?' => Token::One,
            '\\' => match letters.next_if(|next| matches!(next, '*' | '?' | '\\')) {
                Some(escaped) => Token::Exactly(escaped),
                None => Token::Exactly('\\'),
            },
            letter => Token::Exactly(letter),
        });
    }
    tokens
}

/// Goes back to the last `*` only, so that no pattern takes more than the product of the two lengths.
fn fits(tokens: &[Token], letters: &[char]) -> bool {
    let (mut token, mut letter) = (0, 0);
    let mut last_any = None;
    while letter < letters.len() {
        match tokens.get(token) {
            Some(Token::Any) => {
                last_any = Some((token, letter));
                token += 1;
            }
            Some(Token::One) => (token, letter) = (token + 1, letter + 1),
            Some(Token::Exactly(wanted)) if *wanted == letters[letter] => (token, letter) = (token + 1, letter + 1),
            Some(Token::Exactly(_)) | None => match last_any {
                Some((any, from)) => {
                    last_any = Some((any, from + 1));
                    (token, letter) = (any + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_the_whole_subject() {
        for (pattern, subject, does) in [
            ("*", "", true),
            ("*", "a/b\nc", true),
            ("ls", "ls", true),
            ("ls", "lsof", false),
            ("ls *", "ls", true),
            ("ls *", "ls -la", true),
            ("ls *", "lsof", false),
            ("git *--ou*", "git diff --output=x", true),
            ("*.env", "a/.env", true),
            ("*.env", ".environment", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            (r"rm \*.o", "rm *.o", true),
            (r"rm \*.o", "rm x.o", false),
            (r"a\b", r"a\b", true),
            ("ö*", "öl", true),
            (" *", "", false),
        ] {
            assert_eq!(matches(pattern, subject), does, "{pattern:?} on {subject:?}");
        }
    }

    #[test]
    fn a_literal_matches_itself_alone() {
        for subject in ["ls *", r"a\*b?", "plain", r"\", r"\\*"] {
            assert!(matches(&literal(subject), subject), "{subject}");
        }
        assert!(!matches(&literal("rm *.o"), "rm x.o"));
    }

    #[test]
    fn many_stars_take_no_time() {
        let (pattern, subject) = ("a*".repeat(50) + "b", "a".repeat(20_000));
        assert!(!matches(&pattern, &subject));
    }
}
