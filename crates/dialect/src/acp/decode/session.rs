//! One session of a stream: where its turns begin and end.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use tolka_facts::event::{Finish, PromptDropped, PromptQueued, PromptSteered, Stop, TurnEnded, TurnStarted};
use tolka_facts::{Block, Draft, Ids, Json, MessageId, Time, TurnId};

use super::super::mark::{self, INTERRUPTED, StopMark, TurnMark};
use super::super::wire::{Chunk, Head};
use super::super::{Interpreter, block};

#[derive(Debug)]
pub(super) struct Session {
    ids: Arc<Ids>,
    pub(super) interpreter: Interpreter,
    turn: Option<Turn>,
    /// Prompts that were sent while another was worked on.
    queue: VecDeque<TurnId>,
    /// The user's words come block by block; the turn begins when they are over.
    words: Option<Words>,
    load: Option<Load>,
    begins: Begins,
}

#[derive(Debug)]
struct Turn {
    id: TurnId,
    /// Nothing said so but its content; then nothing need say that it ends.
    is_implied: bool,
}

#[derive(Debug)]
struct Words {
    turn: TurnId,
    message: Option<String>,
    /// The open turn that they are meant for, if not for one of their own.
    into: Option<TurnId>,
    is_implied: bool,
    blocks: Vec<Block>,
    raw: Vec<Json>,
}

/// A session is being loaded: the agent repeats its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// All of it was heard.
    Repeated,
    /// It is from before this stream.
    New,
}

/// How the stream says that a turn begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// It does not, or not yet: only the agent's side is in it.
    Implied,
    /// By the client's prompt, or by our own mark. What is said between turns belongs to none.
    Said,
}

#[derive(Deserialize)]
struct Prompt {
    prompt: Vec<Json>,
}

impl Session {
    pub(super) fn new(ids: Arc<Ids>) -> Self {
        let interpreter = Interpreter::new(Arc::clone(&ids));
        let (queue, begins) = (VecDeque::new(), Begins::Implied);
        Session { ids, interpreter, turn: None, queue, words: None, load: None, begins }
    }

    pub(super) fn is_in(&self, turn: Option<&str>) -> bool {
        let is = |id: &TurnId| Some(id.as_str()) == turn;
        self.turn.as_ref().is_some_and(|open| is(&open.id)) || self.words.as_ref().is_some_and(|words| is(&words.turn))
    }

    /// The client prompts.
    pub(super) fn prompted(&mut self, params: &Json, raw: Json, now: Time, out: &mut Vec<Draft>) -> TurnId {
        self.flush(now, out);
        self.begins = Begins::Said;
        let (turn, message) = (self.ids.turn(now), self.ids.message(now));
        let blocks = params.read::<Prompt>().map(|prompt| prompt.prompt).unwrap_or_default();
        let content = blocks.iter().filter_map(block::block).collect();
        out.push(queued(turn.clone(), message, content, None).with_raw(raw));
        match &self.turn {
            Some(_) => self.queue.push_back(turn.clone()),
            None => self.start(turn.clone(), false, out),
        }
        turn
    }

    pub(super) fn load(&mut self, is_known: bool) {
        self.load = Some(if is_known { Load::Repeated } else { Load::New });
    }

    pub(super) fn loaded(&mut self, now: Time, out: &mut Vec<Draft>) {
        self.flush(now, out);
        self.end_implied(out);
        self.load = None;
    }

    pub(super) fn update(&mut self, update: &Json, now: Time, out: &mut Vec<Draft>) {
        let what = update.read::<Head>().map(|head| head.session_update).unwrap_or_default();
        let mark = mark::read::<TurnMark>(update);
        if self.load == Some(Load::Repeated) {
            return out.push(Interpreter::foreign(&what, update));
        }
        match what.as_str() {
            "user_message_chunk" => return self.user_chunk(update, mark, now, out),
            "session_info_update" => {
                if let Some(TurnMark { turn, .. }) = mark {
                    self.flush(now, out);
                    self.cut(out);
                    self.is_ours();
                    return self.start(turn, false, out);
                }
            }
            _ => {}
        }
        self.flush(now, out);
        let is_of_turn =
            matches!(&*what, "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update");
        if is_of_turn && self.turn.is_none() {
            if !self.may_imply() {
                return out.push(Interpreter::foreign(&what, update));
            }
            let turn = self.ids.turn(now);
            self.start(turn, true, out);
        }
        self.interpreter.update(update, now, out);
    }

    /// The stream marks its turns.
    fn is_ours(&mut self) {
        self.begins = Begins::Said;
        self.interpreter.keep_parts();
    }

    fn may_imply(&self) -> bool {
        self.begins == Begins::Implied || self.load == Some(Load::New)
    }

    /// A block of what the user said. Agents echo prompts, so unless it is marked it begins a turn only where nothing
    /// else would.
    fn user_chunk(&mut self, update: &Json, mark: Option<TurnMark>, now: Time, out: &mut Vec<Draft>) {
        let chunk = update.read::<Chunk>().and_then(|chunk| Some((block::block(&chunk.content)?, chunk.message_id)));
        let Some((block, message)) = chunk else {
            self.flush(now, out);
            return out.push(Interpreter::foreign("user_message_chunk", update));
        };
        let goes_on = |words: &&mut Words| match &mark {
            Some(mark) => words.turn == mark.turn,
            None => words.is_implied && words.message == message,
        };
        if let Some(words) = self.words.as_mut().filter(goes_on) {
            words.blocks.push(block);
            return words.raw.push(update.clone());
        }
        self.flush(now, out);
        let is_implied = mark.is_none();
        let is_echo = is_implied && (self.turn.as_ref().is_some_and(|turn| !turn.is_implied) || !self.may_imply());
        if is_echo {
            return out.push(Interpreter::foreign("user_message_chunk", update));
        }
        if !is_implied {
            self.is_ours();
        }
        let (turn, into) = match mark {
            Some(TurnMark { turn, into }) => (turn, into.filter(|into| self.is_open(into))),
            None => (self.ids.turn(now), None),
        };
        if into.is_none() {
            self.cut(out);
        }
        self.words = Some(Words { turn, message, into, is_implied, blocks: vec![block], raw: vec![update.clone()] });
    }

    /// The user's words are over.
    pub(super) fn flush(&mut self, now: Time, out: &mut Vec<Draft>) {
        let Some(Words { turn, message, into, is_implied, blocks, raw }) = self.words.take() else { return };
        let message = message.map_or_else(|| self.ids.message(now), MessageId::from);
        let raw = match raw.as_slice() {
            [one] => one.clone(),
            several => Json::of(&several),
        };
        out.push(queued(turn.clone(), message, blocks, into.clone()).with_raw(raw));
        match into {
            Some(into) => out.push(Draft::agent(PromptSteered { turn, into })),
            None => self.start(turn, is_implied, out),
        }
    }

    fn is_open(&self, turn: &TurnId) -> bool {
        self.turn.as_ref().is_some_and(|open| open.id == *turn)
    }

    fn start(&mut self, turn: TurnId, is_implied: bool, out: &mut Vec<Draft>) {
        self.turn = Some(Turn { id: turn.clone(), is_implied });
        out.push(Draft::tolka(TurnStarted { turn, checkpoint: None }));
    }

    /// Another turn begins: the one before has ended, whether or not the stream said so.
    fn cut(&mut self, out: &mut Vec<Draft>) {
        self.end_implied(out);
        if let Some(turn) = self.turn.take() {
            self.interpreter.close(Finish::Cancelled, out);
            out.push(ended(turn.id, Stop::Interrupted));
        }
    }

    fn end_implied(&mut self, out: &mut Vec<Draft>) {
        if let Some(turn) = self.turn.take_if(|turn| turn.is_implied) {
            self.interpreter.close(Finish::Stop, out);
            out.push(ended(turn.id, Stop::EndTurn));
        }
    }

    /// The prompt of a turn has its response.
    pub(super) fn ended(&mut self, turn: &TurnId, outcome: Result<Json, Json>, now: Time, out: &mut Vec<Draft>) {
        if let Some(at) = self.queue.iter().position(|queued| queued == turn) {
            self.queue.remove(at);
            return out.push(Draft::client(PromptDropped { turn: turn.clone() }));
        }
        self.stopped(Some(turn.clone()), outcome, now, out);
        if let Some(next) = self.queue.pop_front() {
            self.start(next, false, out);
        }
    }

    /// The open turn ends. If none is open, the agent had nothing to say in it.
    pub(super) fn stopped(
        &mut self,
        named: Option<TurnId>,
        outcome: Result<Json, Json>,
        now: Time,
        out: &mut Vec<Draft>,
    ) {
        self.flush(now, out);
        if self.turn.is_none() {
            let turn = named.unwrap_or_else(|| self.ids.turn(now));
            self.start(turn, false, out);
        }
        let Some(Turn { id: turn, .. }) = self.turn.take() else { return };
        match outcome {
            Ok(result) => {
                let (stop, usage, meta) = self.interpreter.ended(&result, out);
                out.push(Draft::agent(TurnEnded { turn, stop, usage, cost: None, meta }));
            }
            Err(error) => {
                let is_cut = error.read::<ErrorData>().and_then(|error| mark::read::<StopMark>(&error.data));
                self.interpreter.close(Finish::Error, out);
                if is_cut.is_some_and(|mark| mark.stop == INTERRUPTED) {
                    let ended = ended(turn, Stop::Interrupted).event;
                    return out.push(Draft::agent(ended).with_raw(error));
                }
                out.push(Draft::agent(self.interpreter.failed(&error)).with_raw(error));
                out.push(ended(turn, Stop::Failed));
            }
        }
    }
}

#[derive(Deserialize)]
struct ErrorData {
    data: Json,
}

fn queued(turn: TurnId, message: MessageId, content: Vec<Block>, steers: Option<TurnId>) -> Draft {
    Draft::client(PromptQueued { turn, message, content, key: None, agent: None, model: None, context: None, steers })
}

fn ended(turn: TurnId, stop: Stop) -> Draft {
    Draft::tolka(TurnEnded { turn, stop, usage: None, cost: None, meta: None })
}
