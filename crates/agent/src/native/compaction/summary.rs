//! The model is asked for a summary: in one go, or piece by piece where it does not fit into the model itself.

use futures_util::StreamExt as _;
use tolka_facts::Draft;
use tolka_facts::event::{Finish, RetryScheduled};

use super::plan::Room;
use super::{size, transcript, words};
use crate::Gone;
use crate::native::model::{Input, Message, ModelError, ModelErrorKind, Piece, Request};
use crate::native::spent::{Spent, Used};
use crate::native::turn::{Turn, Why, retry};

/// A model that does not take this much cannot be helped.
const LEAST: usize = 2 * 1024;
/// Of a summary, in bytes: more is no summary, and a model may go on for ever.
const LONGEST: usize = 64 * 1024;

/// Fewer words say nothing.
const FEWEST: u64 = 100;

/// Why there is no summary.
#[derive(Debug)]
pub(super) enum Unsummarised {
    /// The model failed, after so many tries.
    Model(ModelError, u32),
    Silent,
    Refused,
    /// It did not come to its end: what it leaves out nobody knows.
    TooLong,
    /// There is nothing that was not summarised before.
    Nothing,
    Halted(Why),
}

impl Unsummarised {
    pub(super) fn words(&self) -> String {
        match self {
            Unsummarised::Model(error, _) => error.message.clone(),
            Unsummarised::Silent => "The model said nothing when it was asked for a summary.".to_owned(),
            Unsummarised::Refused => "The model refused to make a summary.".to_owned(),
            Unsummarised::TooLong => {
                "The model's summary was too long, and was cut off before its end; a shorter one was too.".to_owned()
            }
            Unsummarised::Nothing => "There is nothing to summarise yet.".to_owned(),
            Unsummarised::Halted(Why::Cancelled) => "The turn was cancelled before there was a summary.".to_owned(),
            Unsummarised::Halted(Why::TimeUp) => "The turn's time was over before there was a summary.".to_owned(),
        }
    }
}

/// What came of it, and what it took.
pub(super) struct Summarised {
    pub(super) made: Result<String, Unsummarised>,
    pub(super) used: Used,
}

/// A summary of a transcript, heeding what a person wishes.
pub(super) async fn of(text: &str, wishes: &str, room: Room, turn: &mut Turn<'_, '_>) -> Result<Summarised, Gone> {
    let mut spent = Spent::default();
    let made = in_pieces(text, wishes, room, turn, &mut spent).await?;
    let used = Used { usage: spent.usage, cost: spent.cost };
    Ok(Summarised { made, used })
}

async fn in_pieces(
    text: &str,
    wishes: &str,
    room: Room,
    turn: &mut Turn<'_, '_>,
    spent: &mut Spent,
) -> Result<Result<String, Unsummarised>, Gone> {
    // Beside it stand our own words, the summary so far and the one to come.
    let mut size = usize::try_from(room.most * size::BYTES.0 / size::BYTES.1).unwrap_or(usize::MAX) / 10 * 6;
    size = size.max(LEAST);
    // A word is a token and a third.
    let mut most_words = (room.most / 13).clamp(FEWEST, 1_500);
    let (mut rest, mut so_far) = (text, None::<String>);
    while !rest.is_empty() {
        let end = transcript::cut(rest, size);
        let said = words::request(so_far.as_deref(), &rest[..end], wishes, most_words);
        match ask(said, turn, spent).await? {
            Ok(summary) => (so_far, rest) = (Some(summary), &rest[end..]),
            Err(Unsummarised::Model(error, _)) if error.kind == ModelErrorKind::Overflow && end > LEAST => {
                size = (end / 2).max(LEAST);
            }
            Err(Unsummarised::TooLong) if most_words > FEWEST => most_words = (most_words / 2).max(FEWEST),
            Err(unmade) => return Ok(Err(unmade)),
        }
    }
    Ok(so_far.ok_or(Unsummarised::Nothing))
}

/// Asks until there is an answer, or it is in vain.
async fn ask(said: String, turn: &mut Turn<'_, '_>, spent: &mut Spent) -> Result<Result<String, Unsummarised>, Gone> {
    let tries = turn.mind.settings.tries.max(1);
    let messages = vec![std::sync::Arc::new(Message::User(vec![Input::Text(said)]))];
    let request = Request { system: words::TASK.into(), messages, tools: std::sync::Arc::default() };
    let mut failed = 0;
    loop {
        let error = match listen(request.clone(), turn, spent).await {
            Err(Unsummarised::Model(error, _)) => error,
            done => return Ok(done),
        };
        failed += 1;
        let Some(delay) = retry::delay(&error, failed, tries) else {
            return Ok(Err(Unsummarised::Model(error, failed)));
        };
        let retry = RetryScheduled {
            attempt: u64::from(failed),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            message: error.message,
            code: error.status.map(i64::from),
        };
        turn.teller.tell(Draft::agent(retry)).await?;
        if let Err(why) = turn.halt.or(tokio::time::sleep(delay)).await {
            return Ok(Err(Unsummarised::Halted(why)));
        }
    }
}

/// One call of the model. What it thinks, and calls that nobody offered it, are no part of a summary.
async fn listen(request: Request, turn: &mut Turn<'_, '_>, spent: &mut Spent) -> Result<String, Unsummarised> {
    let mut pieces = turn.model.ask(request);
    let mut said = String::new();
    let cut = || ModelError {
        kind: ModelErrorKind::Cut,
        message: "The model's summary ended in the middle.".to_owned(),
        status: None,
        retry_after: None,
    };
    loop {
        let piece = match turn.halt.or(pieces.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(error))) => return Err(Unsummarised::Model(error, 1)),
            Ok(None) => return Err(Unsummarised::Model(cut(), 1)),
            Err(why) => return Err(Unsummarised::Halted(why)),
        };
        match piece {
            Piece::Text(text) => {
                said.push_str(&text);
                if said.len() > LONGEST {
                    return Err(Unsummarised::TooLong);
                }
            }
            Piece::Ended { finish: Finish::Error, .. } => return Err(Unsummarised::Model(cut(), 1)),
            Piece::Ended { finish, is_refusal, usage } => {
                spent.add(Used::by(turn.model.about(), usage));
                return match said.trim() {
                    _ if is_refusal => Err(Unsummarised::Refused),
                    _ if finish == Finish::Length => Err(Unsummarised::TooLong),
                    "" => Err(Unsummarised::Silent),
                    said => Ok(said.to_owned()),
                };
            }
            Piece::Thought(_) | Piece::ThoughtEnded { .. } | Piece::CallBegan { .. } | Piece::CallInput { .. } => {}
        }
    }
}
