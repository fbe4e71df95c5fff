//! A session made of nothing but a recording's mind and a fixed clock, so that it tells the same every time.

use std::path::PathBuf;
use std::sync::Arc;

use tolka_agent::{Agent, Chosen, Ended, Mind, NoPast, Pace, Place, Prompt, Recording, Replay, Said, teller};
use tolka_facts::event::{
    OptionKind, PermissionAnswered, PromptQueued, QuestionAnswered, SessionCreated, TurnEnded, TurnStarted,
};
use tolka_facts::{Block, Draft, Event, Fact, Ids, SessionId, Time, Tip};

/// 2100-01-01. Ids hold the time at which they are made, and a recording is played by the machine's clock; but
/// they never go back, so after one of this day all others are made of it as well.
pub(crate) const BEGAN: u64 = 4_102_444_800_000;
const WORKSPACE: &str = "/home/ada/project";

/// What the person says when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Allow,
    Reject,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A session that is only its facts: it stamps what it hears and ends turns as a session's actor does.
pub(crate) struct Session {
    id: SessionId,
    ids: Arc<Ids>,
    tip: Tip,
    facts: Vec<Fact>,
    answer: Answer,
}

impl Session {
    pub(crate) async fn play(path: &str, answer: Answer) -> Vec<Fact> {
        let recording = Recording::open(root().join(path)).unwrap();
        let turns = recording.turns();
        let replay = Replay::new("replay", recording, Pace::AtOnce);
        let (ids, now) = (Arc::new(Ids::seeded(1)), Time::from_millis(BEGAN));
        let id = ids.session(now);
        let mut mind = replay.open(Place {
            session: id.clone(),
            workspace: WORKSPACE.into(),
            turns: 0,
            past: Arc::new(NoPast),
            family: None,
            depth: 0,
        });
        let mut session = Session { id, ids, tip: Tip::default(), facts: Vec::new(), answer };
        session.stamp(Draft::client(SessionCreated {
            workspace: WORKSPACE.into(),
            agent: replay.name().into(),
            title: "New session".into(),
            mode: None,
            model: Some(replay.model()),
            parent: None,
        }));
        for _ in 0..turns {
            session.turn(mind.as_mut()).await;
        }
        session.facts
    }

    async fn turn(&mut self, mind: &mut dyn Mind) {
        let now = Time::from_millis(BEGAN);
        let (turn, message, content) = (self.ids.turn(now), self.ids.message(now), vec![Block::text("Go on.")]);
        let queued = PromptQueued {
            turn: turn.clone(),
            message,
            content: content.clone(),
            key: None,
            agent: None,
            model: None,
            context: None,
            steers: None,
        };
        self.stamp(Draft::client(queued));
        self.stamp(Draft::tolka(TurnStarted { turn, checkpoint: None }));
        let (teller, mut said, _switch) = teller(self.ids.clone());
        let mut running = mind.turn(Prompt { content, ..Prompt::default() }, &teller);
        let ended = loop {
            tokio::select! {
                biased;
                Some(said) = said.recv() => self.hear(said),
                ended = &mut running => break ended,
            }
        };
        drop(running);
        while let Ok(said) = said.try_recv() {
            self.hear(said);
        }
        self.end(ended);
    }

    fn hear(&mut self, said: Said) {
        match said {
            Said::Told(draft) => self.stamp(draft),
            Said::Permission(draft, _, reply) => {
                let Event::PermissionAsked(ask) = draft.event.clone() else { panic!("{draft:?}") };
                self.stamp(draft);
                let is_it = |kind: OptionKind| kind.allows() == (self.answer == Answer::Allow);
                let option = ask.options.iter().find(|option| is_it(option.kind)).map(|option| option.id.clone());
                let (request, by) = (ask.request, "local".to_owned());
                self.stamp(Draft::client(PermissionAnswered { request, option: option.clone(), by, reason: None }));
                reply.send(option.map(|option| Chosen { option, reason: None })).unwrap();
            }
            Said::Question(draft, _, reply) => {
                let Event::QuestionAsked(ask) = draft.event.clone() else { panic!("{draft:?}") };
                self.stamp(draft);
                let first = |question: &tolka_facts::event::Question| vec![question.options[0].label.clone()];
                let answers: Option<Vec<_>> =
                    (self.answer == Answer::Allow).then(|| ask.questions.iter().map(first).collect());
                let (request, by) = (ask.request, "local".to_owned());
                self.stamp(Draft::client(QuestionAnswered { request, answers: answers.clone(), by }));
                reply.send(answers).unwrap();
            }
            Said::ToldWith(draft, _) => self.stamp(draft),
            Said::Steering(reply) => reply.send(Vec::new()).unwrap(),
            Said::Settle(done) => done.send(()).unwrap(),
        }
    }

    /// As a session's actor ends a turn: nothing stays open behind it.
    fn end(&mut self, ended: Ended) {
        let Ended { stop, usage, cost, meta, failure } = ended;
        let open = self.tip.turn.clone().unwrap();
        let drafts = open.end_what_is_open(stop).into_iter().chain(failure.map(Draft::agent));
        drafts.for_each(|draft| self.stamp(draft));
        self.stamp(Draft::agent(TurnEnded { turn: open.id, stop, usage, cost, meta }));
    }

    fn stamp(&mut self, draft: Draft) {
        let seq = self.facts.len() as u64 + 1;
        let fact = draft.stamp(self.id.clone(), seq, Time::from_millis(BEGAN + seq));
        self.tip.apply(&fact);
        self.facts.push(fact);
    }
}
