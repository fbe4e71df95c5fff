//! The demo's model: a fixed script that says it is one, in the place where a model would be.
//!
//! Everything around it is real: the loop, the tools, the permissions, the files. It keeps nothing between two calls: what
//! it says next follows from the conversation it is sent, as with any model, so that a restart, a second session or a tool
//! that failed find it as ready as before.

mod script;
mod seen;
mod words;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::time::Sleep;
use tolka_facts::event::{Finish, Model as Named, Usage};

use super::model::{Model, ModelError, Piece, Pieces, Request};
use super::permission::{Leave, ONCE, Rule, Rules};
use crate::{ModelAbout, Pace, Patience};
use script::Step;
use seen::Seen;

/// What the demo's model, its agent and its provider are called.
pub const DEMO: &str = "demo";

#[derive(Debug)]
pub struct Demo {
    about: ModelAbout,
    pace: Pace,
}

impl Demo {
    pub fn new(pace: Pace) -> Arc<Self> {
        let about = ModelAbout {
            name: "Demo (a fixed script, no model)".to_owned(),
            context: Some(128_000),
            output: Some(16_000),
            ..ModelAbout::named(Named { provider: DEMO.to_owned(), id: DEMO.to_owned() })
        };
        Arc::new(Demo { about, pace })
    }

    /// What everybody's rules say: its second command is asked, so that people see how they are asked. What lies outside
    /// is no business of a script.
    pub fn rules() -> Rules {
        let (permission, pattern) = ("outside".to_owned(), "*".to_owned());
        Rules::with([Rule { permission, pattern, leave: Leave::Deny }])
    }

    /// A demo that nobody watches goes on by itself; whoever watches has time to look around.
    pub fn patience() -> Patience {
        Patience {
            alone: Duration::from_secs(10),
            attended: Duration::from_secs(10 * 60),
            otherwise: Some(ONCE.to_owned()),
        }
    }
}

impl Model for Demo {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, request: Request) -> Pieces {
        let seen = Seen::in_request(&request);
        // Without tools it is asked for a summary.
        let step = if request.tools.is_empty() { seen.summary() } else { seen.next_step() };
        Box::pin(Saying::new(&step, self.pace, &request))
    }
}

/// A step, said piece by piece.
struct Saying {
    /// The next one last; each with the wait before it.
    left: Vec<(Duration, Piece)>,
    wait: Option<Pin<Box<Sleep>>>,
    pace: Pace,
}

impl Saying {
    fn new(step: &Step, pace: Pace, request: &Request) -> Self {
        let mut left = pieces(step, request);
        left.reverse();
        Saying { left, wait: None, pace }
    }
}

impl Stream for Saying {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some((wait, _)) = self.left.last() else { return Poll::Ready(None) };
        let wait = self.pace.due(*wait);
        if !wait.is_zero() {
            let sleep = self.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
            std::task::ready!(sleep.as_mut().poll(context));
            self.wait = None;
        }
        Poll::Ready(self.left.pop().map(|(_, piece)| Ok(piece)))
    }
}

/// How long a model thinks before it says the first word.
const FIRST: Duration = Duration::from_millis(600);
const WORDS: Duration = Duration::from_millis(70);
/// Input of calls comes faster than people read.
const INPUT: Duration = Duration::from_millis(25);

fn pieces(step: &Step, request: &Request) -> Vec<(Duration, Piece)> {
    let mut pieces = Vec::new();
    if !step.thought.is_empty() {
        pieces.extend(cut(&step.thought, 28).map(|text| (WORDS, Piece::Thought(text))));
        pieces.push((Duration::ZERO, Piece::ThoughtEnded { kept: None }));
    }
    pieces.extend(cut(&step.text, 20).map(|text| (WORDS, Piece::Text(text))));
    // Unlike those of any other step: the conversation only ever gets longer.
    let nth = request.messages.len();
    for (slot, call) in step.calls.iter().enumerate() {
        let id = format!("call_demo_{nth}_{slot}");
        pieces.push((WORDS, Piece::CallBegan { slot, id, name: call.name.to_owned() }));
        let input = call.input.to_string();
        pieces.extend(cut(&input, 160).map(|text| (INPUT, Piece::CallInput { slot, text })));
    }
    if let Some((wait, _)) = pieces.first_mut() {
        *wait = FIRST;
    }
    let said = step.thought.len()
        + step.text.len()
        + step.calls.iter().map(|call| call.input.to_string().len()).sum::<usize>();
    let finish = if step.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    let usage = Usage { input: tokens(request.bytes()), output: tokens(said), ..Usage::default() };
    pieces.push((Duration::ZERO, Piece::Ended { finish, is_refusal: false, usage: Some(usage) }));
    pieces
}

/// The usual guess. A script uses none, but meters that never move are no demo.
fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// In pieces of about so many bytes, between words where there are any.
fn cut(text: &str, about: usize) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let from = rest.ceil_char_boundary(about);
        let end = match rest[from..].find(' ') {
            Some(at) if at < about => from + at + 1,
            None if rest.len() - from < about => rest.len(),
            Some(_) | None => from,
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece.to_owned())
    })
}

#[cfg(test)]
mod tests;
