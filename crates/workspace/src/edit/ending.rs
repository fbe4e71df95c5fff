//! Line ends: a text is searched as if all were LF, and what is put into it ends its lines as the place does.

use std::borrow::Cow;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    /// That of most lines; `None` for a text without a line end.
    pub(crate) fn of(text: &str) -> Option<Ending> {
        let all = text.bytes().filter(|byte| *byte == b'\n').count();
        let with_cr = text.matches("\r\n").count();
        match all {
            0 => None,
            all if with_cr * 2 > all => Some(Ending::CrLf),
            _ => Some(Ending::Lf),
        }
    }

    pub(crate) fn write(self, text: &str) -> Cow<'_, str> {
        match self {
            Ending::Lf => lf(text),
            Ending::CrLf if text.contains('\n') => Cow::Owned(lf(text).replace('\n', "\r\n")),
            Ending::CrLf => Cow::Borrowed(text),
        }
    }
}

pub(crate) fn lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// A text with all line ends as LF, and where its pieces stand in the text as it is.
#[derive(Debug)]
pub(super) struct Unified<'a> {
    pub(super) text: Cow<'a, str>,
    /// Places in `text` of line ends that have a CR in the text as it is.
    with_cr: Vec<usize>,
}

impl<'a> Unified<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let with_cr = text.match_indices("\r\n").enumerate().map(|(n, (at, _))| at - n).collect();
        Unified { text: lf(text), with_cr }
    }

    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let place = |at: usize| at + self.with_cr.partition_point(|cr| *cr < at);
        place(range.start)..place(range.end)
    }
}
