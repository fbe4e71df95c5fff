//! A page as text: Markdown, or plain words. What is not for readers (scripts, styles, what is hidden) is left out, and
//! links are told whole.
//!
//! It works on the tags as they come and keeps no tree: a page of a million open tags costs no more than its length, and a
//! hostile one can make the text ugly but nothing else.

mod skip;
mod words;

use std::borrow::Cow;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use reqwest::Url;

use skip::Skip;
use words::Words;

/// How a page is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Shape {
    Markdown,
    Text,
}

/// Lists, quotes and tables in one another; what is deeper is told as if it were not.
const DEEPEST: usize = 16;

/// `most` bytes of it, a little more at most. Whether there was more is told beside it.
pub(in crate::native) fn told(html: &str, base: &Url, shape: Shape, most: usize) -> (String, bool) {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page =
        Page { base: base.clone(), words: Words::new(shape), lists: Vec::new(), tables: Vec::new(), skip: None };
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        if page.words.len() > most {
            return (page.words.end(), true);
        }
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&text(&tag.name)),
            Token::String(said) => page.said(&text(&said)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    (page.words.end(), false)
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

struct Page {
    base: Url,
    words: Words,
    /// The number of the next item, for those that count.
    lists: Vec<Option<u64>>,
    tables: Vec<Row>,
    skip: Option<Skip>,
}

/// The row of a table that is being told.
#[derive(Default)]
struct Row {
    cells: usize,
    is_head: bool,
    has_head: bool,
}

impl Page {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = text(&tag.name);
        if let Some(skip) = &mut self.skip {
            if !skip.ends_at_start(&name) {
                return;
            }
            self.skip = None;
        }
        let attribute = |name: &[u8]| tag.attributes.get(name).map(|value| text(value));
        if let Some(skip) = Skip::of(&name, attribute) {
            // What is left out still parts the words around it.
            self.words.gap();
            self.skip = Some(skip);
            return;
        }
        match &*name {
            "base" => {
                if let Some(base) = attribute(b"href").and_then(|href| self.base.join(&href).ok()) {
                    self.base = base;
                }
            }
            "br" => self.words.line(),
            "hr" => self.words.rule(),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.words.heading(level);
            }
            "ul" | "menu" | "dir" => self.list(None),
            "ol" => {
                let first = attribute(b"start").and_then(|start| start.trim().parse().ok());
                self.list(Some(first.unwrap_or(1)));
            }
            "li" => {
                let depth = self.lists.len().saturating_sub(1);
                let number = self.lists.last_mut().and_then(Option::as_mut).map(|next| {
                    *next = next.saturating_add(1);
                    *next - 1
                });
                self.words.item(depth, number);
            }
            "blockquote" => self.words.quote(),
            "pre" | "listing" | "xmp" => self.words.begin_verbatim(),
            "table" if self.tables.len() < DEEPEST => {
                self.words.paragraph();
                self.tables.push(Row::default());
            }
            "tr" => self.end_row(),
            "td" | "th" => self.cell(&name),
            "a" => {
                let href = attribute(b"href").and_then(|href| self.linked(&href));
                self.words.begin_link(href);
            }
            "img" => {
                let alt = attribute(b"alt").map(|alt| alt.trim().to_owned()).filter(|alt| !alt.is_empty());
                let source = attribute(b"src").and_then(|source| self.linked(&source));
                if let Some(alt) = alt {
                    self.words.picture(&alt, source.as_deref());
                }
            }
            "b" | "strong" | "i" | "em" | "code" | "kbd" | "samp" | "tt" | "del" | "s" => self.words.mark(&name),
            "p" | "section" | "article" | "main" | "header" | "footer" | "nav" | "aside" | "figure" | "form"
            | "fieldset" | "details" | "dl" => self.paragraph(),
            "div" | "dt" | "dd" | "address" | "figcaption" | "summary" | "legend" | "caption" | "hgroup" | "center"
            | "body" => self.line(),
            _ => {}
        }
    }

    /// A row of a table is one line, whatever its cells are made of.
    fn is_in_cell(&self) -> bool {
        self.tables.last().is_some_and(|row| row.cells > 0)
    }

    fn paragraph(&mut self) {
        if self.is_in_cell() { self.words.gap() } else { self.words.paragraph() }
    }

    fn line(&mut self) {
        if self.is_in_cell() { self.words.gap() } else { self.words.line() }
    }

    fn end(&mut self, name: &str) {
        if let Some(skip) = &mut self.skip {
            if !skip.ends_at_end(name) {
                return;
            }
            let was_it = skip.is_of(name);
            self.skip = None;
            if was_it {
                return;
            }
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "section" | "article" | "main" | "header" | "footer"
            | "nav" | "aside" | "figure" | "form" | "fieldset" | "details" | "dl" => self.paragraph(),
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                if self.lists.is_empty() { self.words.paragraph() } else { self.words.line() }
            }
            "blockquote" => self.words.end_quote(),
            "pre" | "listing" | "xmp" => self.words.end_verbatim(),
            "table" => {
                self.tables.pop();
                self.words.paragraph();
            }
            "tr" => self.end_row(),
            "a" => self.words.end_link(),
            "b" | "strong" | "i" | "em" | "code" | "kbd" | "samp" | "tt" | "del" | "s" => self.words.end_mark(name),
            "li" | "div" | "dt" | "dd" | "address" | "figcaption" | "summary" | "legend" | "caption" | "hgroup"
            | "center" => self.line(),
            _ => {}
        }
    }

    fn said(&mut self, text: &str) {
        if self.skip.is_none() {
            self.words.say(text);
        }
    }

    fn list(&mut self, first: Option<u64>) {
        match self.lists.is_empty() {
            true => self.words.paragraph(),
            false => self.words.line(),
        }
        if self.lists.len() < DEEPEST {
            self.lists.push(first);
        }
    }

    fn cell(&mut self, name: &str) {
        let Some(row) = self.tables.last_mut() else { return self.words.gap() };
        if row.cells > 0 {
            self.words.bar();
        }
        row.cells += 1;
        row.is_head |= name == "th";
    }

    /// The first row of headings is told as one.
    fn end_row(&mut self) {
        if let Some(row) = self.tables.last_mut() {
            let (cells, is_head) = (std::mem::take(&mut row.cells), std::mem::take(&mut row.is_head));
            if is_head && cells > 1 && !std::mem::replace(&mut row.has_head, true) {
                self.words.under(cells);
            }
        }
        self.words.line();
    }

    /// Where something is, if it can be gone to.
    fn linked(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        let url = self.base.join(href).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto").then(|| url.into())
    }
}

#[cfg(test)]
mod tests;
