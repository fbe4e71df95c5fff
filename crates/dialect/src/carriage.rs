/// How a dialect carries one kind of event. The tables of all dialects make docs/dialects.md, and tests hold the
/// encoders to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriage {
    /// The frames that tell it, by name, and nothing of it is lost.
    Whole(&'static [&'static str]),
    /// The frames that tell it, and what of it is lost.
    Partly(&'static [&'static str], &'static str),
    /// Nothing tells it, and why.
    Never(&'static str),
}

impl Carriage {
    pub fn frames(self) -> &'static [&'static str] {
        match self {
            Carriage::Whole(frames) | Carriage::Partly(frames, _) => frames,
            Carriage::Never(_) => &[],
        }
    }
}

/// One row for every event, in the order of [`tolka_facts::Event::NAMES`].
pub type CarriageTable = [(&'static str, Carriage)];
