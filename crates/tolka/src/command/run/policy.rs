//! `--allow`: what a script allows beforehand, where nobody is there to be asked.

use std::str::FromStr;

use tolka_agent::native::permission::{Leave, Rule, Rules};
use tolka_facts::event::PermissionAsked;

/// `edit`, or `bash:cargo test *`: a permission, and a pattern of what it is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allow {
    permission: String,
    pattern: Option<String>,
}

impl FromStr for Allow {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (permission, pattern) = match text.split_once(':') {
            Some((permission, pattern)) => (permission, Some(pattern.trim().to_owned())),
            None => (text, None),
        };
        let (permission, is_empty) = (permission.trim(), pattern.as_deref().is_some_and(str::is_empty));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
        if permission.is_empty() || is_empty || !permission.chars().all(is_name) {
            return Err("write a permission, as in `edit`, or one with a pattern, as in `bash:cargo test *`");
        }
        Ok(Allow { permission: permission.to_owned(), pattern })
    }
}

impl Allow {
    /// What is asked for is told by the patterns that *always* would cover: each command of a line is one. Each has to be
    /// covered here.
    pub(super) fn covers(&self, ask: &PermissionAsked) -> bool {
        let Some(pattern) = &self.pattern else { return self.matches(&ask.permission, &ask.title, "*") };
        let is_covered = |wanted: &String| {
            wanted == pattern || is_plain(&ask.permission, wanted) && self.matches(&ask.permission, wanted, pattern)
        };
        let is_it = self.matches(&ask.permission, "", "*");
        is_it && !ask.patterns.is_empty() && ask.patterns.iter().all(is_covered)
    }

    fn matches(&self, permission: &str, subject: &str, pattern: &str) -> bool {
        let rule = Rule { permission: self.permission.clone(), pattern: pattern.to_owned(), leave: Leave::Allow };
        Rules(vec![rule]).leave(permission, subject) == Leave::Allow
    }
}

/// A line that is more than its words (it substitutes, redirects, …) is asked for as it stands; a pattern that fits its
/// beginning says nothing about the rest.
fn is_plain(permission: &str, wanted: &str) -> bool {
    permission != "bash"
        || !wanted.contains(['$', '`', '(', ')', '{', '}', ';', '&', '|', '<', '>', '\n', '\\', '"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(permission: &str, patterns: &[&str]) -> PermissionAsked {
        PermissionAsked {
            request: "per_1".into(),
            call: None,
            permission: permission.to_owned(),
            title: "cargo test".to_owned(),
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            metadata: None,
            options: Vec::new(),
        }
    }

    #[test]
    fn each_part_of_what_is_asked_has_to_be_covered() {
        for (allow, ask, expected) in [
            ("edit", asked("edit", &["src/*"]), true),
            ("edit", asked("bash", &["rm *"]), false),
            ("*", asked("bash", &["rm *"]), true),
            ("bash", asked("bash", &["rm *", "ls $(x)"]), true),
            ("bash:cargo *", asked("bash", &["cargo test *"]), true),
            ("bash:cargo *", asked("bash", &["cargo test *", "rm *"]), false),
            ("bash:cargo *", asked("bash", &["cargo test $(rm -rf /)"]), false),
            ("bash:cargo *", asked("bash", &["cargo test; rm x"]), false),
            ("bash:cargo test $(x)", asked("bash", &["cargo test $(x)"]), true),
            ("bash:cargo *", asked("bash", &[]), false),
            ("webfetch:*.example.com", asked("webfetch", &["docs.example.com"]), true),
            ("webfetch:*.example.com", asked("webfetch", &["example.org"]), false),
            ("*:*", asked("bash", &["ls *"]), true),
        ] {
            assert_eq!(allow.parse::<Allow>().unwrap().covers(&ask), expected, "{allow}");
        }
        for bad in ["", ":x", "bash:", "a b"] {
            bad.parse::<Allow>().unwrap_err();
        }
    }
}
