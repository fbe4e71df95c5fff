//! Text as it is put together: words with one space between them, lines, and the marks of Markdown around them.
//!
//! Gaps and marks are written when the next word comes, so that there are none at ends and around nothing.

use super::{DEEPEST, Shape};

pub(super) struct Words {
    shape: Shape,
    out: String,
    /// What stands between what was written and the next word.
    gap: Gap,
    quotes: usize,
    /// What the next line begins with, once.
    lead: String,
    /// How far lines of a list are moved in.
    indent: usize,
    marks: Vec<Mark>,
    link: Option<Link>,
    /// Where the verbatim text that is open began.
    verbatim: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

struct Mark {
    name: String,
    sign: &'static str,
    is_written: bool,
}

struct Link {
    href: String,
    /// Where its text began; `None` until there is some.
    start: Option<usize>,
}

impl Words {
    pub(super) fn new(shape: Shape) -> Self {
        Words {
            shape,
            out: String::new(),
            gap: Gap::None,
            quotes: 0,
            lead: String::new(),
            indent: 0,
            marks: Vec::new(),
            link: None,
            verbatim: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn end(mut self) -> String {
        self.end_verbatim();
        self.end_link();
        self.close_marks();
        self.out
    }

    /// Text as it stands in the page.
    pub(super) fn say(&mut self, text: &str) {
        if self.verbatim.is_some() {
            let text = text.strip_prefix('\n').filter(|_| self.verbatim == Some(self.out.len())).unwrap_or(text);
            self.out.extend(text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')));
            return;
        }
        if text.starts_with(is_space) {
            self.gap();
        }
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            self.word(word);
            self.gap();
        }
        if !text.ends_with(is_space) && self.gap == Gap::Space {
            self.gap = Gap::None;
        }
    }

    fn word(&mut self, word: &str) {
        let word: String = word.chars().filter(|c| !c.is_control()).collect();
        if word.is_empty() {
            return;
        }
        self.flush();
        if let Some(link) = &mut self.link
            && link.start.is_none()
        {
            link.start = Some(self.out.len());
        }
        for mark in self.marks.iter_mut().filter(|mark| !mark.is_written) {
            self.out.push_str(mark.sign);
            mark.is_written = true;
        }
        self.out.push_str(&word);
    }

    /// Writes what stands before the next word.
    fn flush(&mut self) {
        let is_first = self.out.is_empty();
        match std::mem::replace(&mut self.gap, Gap::None) {
            Gap::None if !is_first => return,
            Gap::Space if !is_first => return self.out.push(' '),
            Gap::Line if !is_first => self.out.push('\n'),
            Gap::Paragraph if !is_first => {
                self.out.push('\n');
                self.out.push_str("> ".repeat(self.quotes).trim_end());
                self.out.push('\n');
            }
            Gap::None | Gap::Space | Gap::Line | Gap::Paragraph => {}
        }
        self.out.push_str(&"> ".repeat(self.quotes));
        self.out.push_str(&" ".repeat(self.indent));
        self.out.push_str(&std::mem::take(&mut self.lead));
    }

    fn want(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    pub(super) fn gap(&mut self) {
        self.want(Gap::Space);
    }

    pub(super) fn line(&mut self) {
        match self.verbatim {
            Some(_) => self.out.push('\n'),
            None => self.want(Gap::Line),
        }
    }

    pub(super) fn paragraph(&mut self) {
        self.close_marks();
        (self.indent, self.lead) = (0, String::new());
        self.want(Gap::Paragraph);
    }

    pub(super) fn rule(&mut self) {
        self.paragraph();
        if self.shape == Shape::Markdown {
            self.word("---");
            self.paragraph();
        }
    }

    pub(super) fn heading(&mut self, level: usize) {
        self.paragraph();
        if self.shape == Shape::Markdown {
            self.lead = format!("{} ", "#".repeat(level));
        }
    }

    pub(super) fn item(&mut self, depth: usize, number: Option<u64>) {
        self.close_marks();
        self.want(Gap::Line);
        self.indent = 2 * depth.min(DEEPEST);
        self.lead = number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "));
    }

    pub(super) fn quote(&mut self) {
        self.paragraph();
        self.quotes = (self.quotes + usize::from(self.shape == Shape::Markdown)).min(DEEPEST);
    }

    pub(super) fn end_quote(&mut self) {
        self.paragraph();
        self.quotes = self.quotes.saturating_sub(1);
    }

    pub(super) fn begin_verbatim(&mut self) {
        if self.verbatim.is_none() {
            self.paragraph();
            self.flush();
            self.verbatim = Some(self.out.len());
        }
    }

    /// The fence is longer than any that the text has.
    pub(super) fn end_verbatim(&mut self) {
        let Some(start) = self.verbatim.take() else { return };
        let kept = self.out[start..].trim_end().len();
        self.out.truncate(start + kept);
        if kept > 0 && self.shape == Shape::Markdown {
            let longest = self.out[start..].split(|c| c != '`').map(str::len).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            self.out.insert_str(start, &format!("{fence}\n"));
            self.out.push('\n');
            self.out.push_str(&fence);
        }
        self.paragraph();
    }

    /// Between two cells.
    pub(super) fn bar(&mut self) {
        self.close_marks();
        self.end_link();
        self.gap = Gap::Space;
        self.word("|");
        self.gap();
    }

    /// Below the headings of a table.
    pub(super) fn under(&mut self, cells: usize) {
        if self.shape == Shape::Markdown {
            self.line();
            self.word(&vec!["---"; cells.min(64)].join(" | "));
        }
    }

    pub(super) fn begin_link(&mut self, href: Option<String>) {
        self.end_link();
        self.link = href.filter(|_| self.shape == Shape::Markdown).map(|href| Link { href, start: None });
    }

    pub(super) fn end_link(&mut self) {
        let Some(Link { href, start: Some(start) }) = self.link.take() else { return };
        self.out.insert(start, '[');
        self.out.push_str(&format!("]({href})"));
    }

    pub(super) fn picture(&mut self, alt: &str, source: Option<&str>) {
        match source.filter(|_| self.shape == Shape::Markdown) {
            Some(source) => {
                self.say("![");
                self.say(alt);
                self.out.push_str(&format!("]({source})"));
            }
            None => self.say(alt),
        }
    }

    pub(super) fn mark(&mut self, name: &str) {
        let sign = match name {
            "b" | "strong" => "**",
            "i" | "em" => "*",
            "del" | "s" => "~~",
            _ => "`",
        };
        let is_told = self.shape == Shape::Markdown && self.verbatim.is_none() && self.marks.len() < DEEPEST;
        if is_told && !self.marks.iter().any(|mark| mark.sign == sign) {
            self.marks.push(Mark { name: name.to_owned(), sign, is_written: false });
        }
    }

    pub(super) fn end_mark(&mut self, name: &str) {
        let Some(at) = self.marks.iter().rposition(|mark| mark.name == name) else { return };
        for mark in self.marks.drain(at..).rev() {
            if mark.is_written {
                self.out.push_str(mark.sign);
            }
        }
    }

    fn close_marks(&mut self) {
        for mark in std::mem::take(&mut self.marks).into_iter().rev() {
            if mark.is_written {
                self.out.push_str(mark.sign);
            }
        }
    }
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
}
