//! What is left out of a page, and where it ends.

use std::borrow::Cow;

/// With all that is in them.
const NEVER_SHOWN: &[&str] = &[
    "script", "style", "noscript", "template", "title", "svg", "iframe", "object", "embed", "canvas", "audio", "video",
    "select", "datalist", "textarea", "noembed", "noframes", "map",
];
/// They have no end.
const EMPTY: &[&str] =
    &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"];
/// Their end is often left out: they end where the next one begins, or what they are in ends.
const OPEN_ENDED: &[&str] = &["p", "li", "dt", "dd", "tr", "td", "th", "option", "thead", "tbody", "tfoot"];

/// Something that is being left out.
#[derive(Debug)]
pub(super) struct Skip {
    name: String,
    is_open_ended: bool,
    /// Elements in it that have begun and not ended: of its own name or, where its end may be missing, of any.
    depth: usize,
}

impl Skip {
    pub(super) fn of<'a>(name: &str, attribute: impl Fn(&[u8]) -> Option<Cow<'a, str>>) -> Option<Skip> {
        if EMPTY.contains(&name) || matches!(name, "html" | "body" | "main") {
            return None;
        }
        let is_hidden = || {
            let style = attribute(b"style").map(|style| style.to_ascii_lowercase().replace(char::is_whitespace, ""));
            attribute(b"hidden").is_some_and(|how| how != "until-found")
                || attribute(b"aria-hidden").is_some_and(|how| how.trim().eq_ignore_ascii_case("true"))
                || style.is_some_and(|style| style.contains("display:none") || style.contains("visibility:hidden"))
        };
        let is_left_out = NEVER_SHOWN.contains(&name) || is_hidden();
        is_left_out.then(|| Skip { name: name.to_owned(), is_open_ended: OPEN_ENDED.contains(&name), depth: 0 })
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether it is over, because something begins that cannot be in it.
    pub(super) fn ends_at_start(&mut self, name: &str) -> bool {
        if self.is_open_ended && self.depth == 0 && self.is_of(name) {
            return true;
        }
        let counts =
            if self.is_open_ended { !OPEN_ENDED.contains(&name) && !EMPTY.contains(&name) } else { self.is_of(name) };
        self.depth += usize::from(counts);
        false
    }

    pub(super) fn ends_at_end(&mut self, name: &str) -> bool {
        let counts = if self.is_open_ended { !OPEN_ENDED.contains(&name) } else { self.is_of(name) };
        match (counts, self.depth) {
            (true, 0) => true,
            (true, _) => {
                self.depth -= 1;
                false
            }
            (false, depth) => depth == 0 && self.is_of(name),
        }
    }
}
