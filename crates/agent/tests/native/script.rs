//! A model of nothing but lines that were written before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Notify;
use tolka_agent::native::model::{Message, Model, ModelError, ModelErrorKind, Piece, Pieces, Request, ToolSpec};
use tolka_agent::{ModelAbout, Price};
use tolka_facts::Json;
use tolka_facts::event::{Finish, Model as ModelName, Usage};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    Says(Piece),
    Fails(ModelErrorKind),
    FailsWith(ModelError),
    /// Says nothing more, for ever.
    Hangs,
}

/// One answer.
pub(crate) type Play = Vec<Line>;

#[derive(Debug)]
pub(crate) struct Script {
    about: ModelAbout,
    plays: Mutex<VecDeque<Play>>,
    /// What it says when it is asked for a title, which has no tools; an answer like any other if there is none.
    title: Option<Play>,
    titled: Notify,
    /// What it says when it is asked for a summary; one that counts them when these are used up.
    summaries: Mutex<VecDeque<Play>>,
    /// All that it was asked but titles and summaries.
    asked: Mutex<Vec<Asked>>,
    /// What it was asked to summarise.
    summarised: Mutex<Vec<Asked>>,
}

/// A request, as it was at the time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<ToolSpec>,
}

impl From<Request> for Asked {
    fn from(Request { system, messages, tools }: Request) -> Self {
        let messages = messages.into_iter().map(|message| (*message).clone()).collect();
        Asked { system: system.as_ref().to_owned(), messages, tools: tools.to_vec() }
    }
}

impl Script {
    pub(crate) fn new(plays: Vec<Play>) -> Arc<Self> {
        Script::named("m", plays)
    }

    pub(crate) fn named(id: &str, plays: Vec<Play>) -> Arc<Self> {
        Arc::new(Script::of(Script::about(id), None, plays))
    }

    fn about(id: &str) -> ModelAbout {
        ModelAbout {
            context: Some(1_000_000),
            price: Some(Price { input: 1.0, output: 2.0, cache_read: 0.1, cache_write: 1.25 }),
            sees_images: true,
            ..ModelAbout::named(ModelName { provider: "script".into(), id: id.into() })
        }
    }

    pub(crate) fn blind() -> Arc<Self> {
        let about = ModelAbout::named(ModelName { provider: "script".into(), id: "blind".into() });
        Arc::new(Script::of(about, None, Vec::new()))
    }

    /// It gives titles too.
    pub(crate) fn titling(title: Play, plays: Vec<Play>) -> Arc<Self> {
        Arc::new(Script::of(Script::about("m"), Some(title), plays))
    }

    fn of(about: ModelAbout, title: Option<Play>, plays: Vec<Play>) -> Self {
        let (plays, asked) = (Mutex::new(plays.into()), Mutex::default());
        let (summaries, summarised) = (Mutex::default(), Mutex::default());
        Script { about, plays, title, titled: Notify::new(), summaries, asked, summarised }
    }

    /// One that takes so many tokens.
    pub(crate) fn small(context: u64, summaries: Vec<Play>, plays: Vec<Play>) -> Arc<Self> {
        let about = ModelAbout { context: Some(context), output: None, ..Script::about("small") };
        Arc::new(Script { summaries: Mutex::new(summaries.into()), ..Script::of(about, None, plays) })
    }

    /// What it was asked to summarise.
    pub(crate) fn summarised(&self) -> Vec<Asked> {
        self.summarised.lock().unwrap().clone()
    }

    fn summary(&self, request: Request) -> Play {
        let mut summarised = self.summarised.lock().unwrap();
        summarised.push(request.into());
        let usual = || vec![text(&format!("Summary {}.", summarised.len())), ends()];
        self.summaries.lock().unwrap().pop_front().unwrap_or_else(usual)
    }

    /// Returns when a title was asked for and what there is of it was said.
    pub(crate) async fn titled(&self) {
        self.titled.notified().await;
        // The task that asked has to take it in.
        tokio::task::yield_now().await;
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Script {
    fn about(&self) -> &ModelAbout {
        &self.about
    }

    fn ask(&self, request: Request) -> Pieces {
        if let Some(title) = self.title.clone().filter(|_| request.system.contains("a title")) {
            self.titled.notify_one();
            return said(title);
        }
        if request.system.contains("summarising") {
            return said(self.summary(request));
        }
        self.asked.lock().unwrap().push(request.into());
        let play = self.plays.lock().unwrap().pop_front().unwrap_or_else(|| vec![text("And so on."), ends()]);
        said(play)
    }
}

fn said(play: Play) -> Pieces {
    Box::pin(stream::iter(play).then(|line| async {
        // As on a wire, where the next line is not there yet: whoever listens can act on each.
        tokio::task::yield_now().await;
        match line {
            Line::Says(piece) => Ok(piece),
            Line::Fails(kind) => Err(error(kind)),
            Line::FailsWith(error) => Err(error),
            Line::Hangs => std::future::pending().await,
        }
    }))
}

pub(crate) fn error(kind: ModelErrorKind) -> ModelError {
    ModelError { kind, message: format!("It is {kind:?}."), status: Some(500), retry_after: None }
}

pub(crate) fn limited(wait: Duration) -> Line {
    let retry_after = Some(wait);
    Line::FailsWith(ModelError { status: Some(429), retry_after, ..error(ModelErrorKind::RateLimited) })
}

pub(crate) fn text(text: &str) -> Line {
    Line::Says(Piece::Text(text.to_owned()))
}

pub(crate) fn thought(text: &str) -> Line {
    Line::Says(Piece::Thought(text.to_owned()))
}

pub(crate) fn thought_ended(kept: Option<Value>) -> Line {
    Line::Says(Piece::ThoughtEnded { kept: kept.map(Json::from) })
}

pub(crate) fn began(slot: usize, id: &str, name: &str) -> Line {
    Line::Says(Piece::CallBegan { slot, id: id.to_owned(), name: name.to_owned() })
}

pub(crate) fn input(slot: usize, text: &str) -> Line {
    Line::Says(Piece::CallInput { slot, text: text.to_owned() })
}

/// A whole call, its input in two pieces.
pub(crate) fn call(slot: usize, id: &str, name: &str, given: &Value) -> [Line; 3] {
    let given = given.to_string();
    let (head, tail) = given.split_at(given.floor_char_boundary(given.len() / 2));
    [began(slot, id, name), input(slot, head), input(slot, tail)]
}

pub(crate) fn usage() -> Usage {
    Usage { input: 100, output: 10, cache_read: 50, ..Usage::default() }
}

pub(crate) fn ends_with(finish: Finish) -> Line {
    Line::Says(Piece::Ended { finish, is_refusal: false, usage: Some(usage()) })
}

/// Ends, and has used so many tokens.
pub(crate) fn ends_using(finish: Finish, input: u64) -> Line {
    let usage = Usage { input, output: 10, ..Usage::default() };
    Line::Says(Piece::Ended { finish, is_refusal: false, usage: Some(usage) })
}

pub(crate) fn ends() -> Line {
    ends_with(Finish::Stop)
}

pub(crate) fn refuses() -> Line {
    Line::Says(Piece::Ended { finish: Finish::Stop, is_refusal: true, usage: None })
}

/// An answer that makes these calls.
pub(crate) fn calls(calls: impl IntoIterator<Item = (&'static str, Value)>) -> Play {
    let written = calls.into_iter().enumerate().flat_map(|(slot, (name, given))| call(slot, "", name, &given));
    written.chain([ends_with(Finish::ToolCalls)]).collect()
}
