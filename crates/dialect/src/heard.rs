use tolka_facts::{Draft, SessionId, Time};

/// What a decoder read, and of whom and when as far as its wire says.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// `None`: the stream is about one session and does not name it.
    pub session: Option<SessionId>,
    pub time: Option<Time>,
    pub draft: Draft,
}

impl Heard {
    /// The drafts of one frame: all of them are of its session and its time.
    pub(crate) fn all(
        drafts: Vec<Draft>,
        session: Option<&SessionId>,
        time: Option<Time>,
    ) -> impl Iterator<Item = Heard> {
        drafts.into_iter().map(move |draft| Heard { session: session.cloned(), time, draft })
    }
}
