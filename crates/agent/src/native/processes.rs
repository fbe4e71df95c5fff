//! Commands that go on while their session does: development servers, watchers.
//!
//! They belong to the session and not to the turn that started them: a cancel leaves them, and they end when somebody ends
//! them, when the session is deleted, or with the server, whose keepers end them even if it is killed; those of a subagent
//! end with its task. What they print is kept here, the end of it, and is in no fact: that they began and how they ended is. Those who listen hear that through
//! [`News`], since a process may end when no turn runs.

mod log;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tolka_facts::event::{Noticed, ProcessEnded, Severity};
use tolka_facts::{CallId, Draft, Hash, SessionId, Time};
use tolka_workspace::command::{Exit, Heard, Running, listening};
use tolka_workspace::obeyed::Obeyed;

use log::Log;
pub use log::Piece;

/// That run at once, in one session.
const MOST: usize = 8;

/// That have ended, and whose output can still be read: of one session, and of all.
const KEPT: usize = 16;
const KEPT_IN_ALL: usize = 64;

/// For one to end when it is told to: a keeper takes a quarter of a second, and a busy machine more.
const ENDING: Duration = Duration::from_secs(15);

/// Facts on their way. Those who end a process wait when it is full.
const NEWS: usize = 64;

/// What is told of processes, and in which session.
pub type News = mpsc::Receiver<(SessionId, Draft)>;

/// All that run, of all sessions.
#[derive(Debug)]
pub struct Processes {
    /// A std mutex: held for a look-up, never over an await.
    sessions: Mutex<HashMap<SessionId, Vec<Arc<Process>>>>,
    news: mpsc::Sender<(SessionId, Draft)>,
}

/// One of them.
#[derive(Debug)]
pub struct Process {
    pub id: String,
    pub command: String,
    pub call: CallId,
    pub started: Time,
    keeper: Option<u32>,
    state: Mutex<State>,
    /// Who wants it to end.
    stop: watch::Sender<Option<String>>,
    over: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    log: Log,
    /// How far the model has read.
    read: u64,
    ended: Option<Ended>,
}

/// How one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    /// `None`: it ended by itself.
    pub by: Option<String>,
    pub at: Time,
    /// What is to be said of it besides: a bound, a host that it did not reach, why it could not start.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{MOST} processes run in this session already; end one first")]
pub struct TooMany;

impl Processes {
    pub fn new() -> (Arc<Self>, News) {
        let (news, heard) = mpsc::channel(NEWS);
        (Arc::new(Processes { sessions: Mutex::default(), news }), heard)
    }

    /// The name of the process that a call starts.
    pub fn id_of(call: &CallId) -> String {
        format!("p{}", &Hash::of(call.to_string().as_bytes()).as_str()[..6])
    }

    /// Whether there is room for one more.
    pub fn has_room(&self, session: &SessionId) -> Result<(), TooMany> {
        let running = self.of(session).iter().filter(|process| process.ended().is_none()).count();
        if running < MOST { Ok(()) } else { Err(TooMany) }
    }

    /// Whether one of a session runs.
    pub fn is_any_running(&self, session: &SessionId) -> bool {
        self.of(session).iter().any(|process| process.ended().is_none())
    }

    /// Takes over a command that runs. That it began is to be told now; its end is not told before that is.
    pub fn keep(
        self: &Arc<Self>,
        session: SessionId,
        call: CallId,
        command: String,
        running: Running,
        workspace: (PathBuf, Obeyed),
    ) -> Begun {
        let (stop, stopped) = watch::channel(None);
        let process = Arc::new(Process {
            id: Processes::id_of(&call),
            command,
            call,
            started: Time::now(),
            keeper: running.keeper(),
            state: Mutex::default(),
            stop,
            over: watch::Sender::new(false),
        });
        self.sessions().entry(session.clone()).or_default().push(process.clone());
        let (told, is_told) = oneshot::channel();
        let following = follow(self.clone(), process.clone(), running, (stopped, is_told), workspace, session);
        tokio::spawn(following);
        Begun { process, told: Some(told) }
    }

    /// Forgets the oldest of those that have ended, where there are too many.
    fn tidy(&self) {
        let mut sessions = self.sessions();
        let ended = |process: &Arc<Process>| process.ended().map(|ended| (ended.at, process.clone()));
        let mut gone: Vec<(Time, Arc<Process>)> = Vec::new();
        let mut left: Vec<(Time, Arc<Process>)> = Vec::new();
        for all in sessions.values() {
            let mut ended: Vec<_> = all.iter().filter_map(ended).collect();
            ended.sort_by_key(|(at, _)| *at);
            left.extend(ended.split_off(ended.len().saturating_sub(KEPT)));
            gone.extend(ended);
        }
        left.sort_by_key(|(at, _)| *at);
        gone.extend(left.drain(..left.len().saturating_sub(KEPT_IN_ALL)));
        for all in sessions.values_mut() {
            all.retain(|process| !gone.iter().any(|(_, gone)| Arc::ptr_eq(gone, process)));
        }
        sessions.retain(|_, all| !all.is_empty());
    }

    pub fn of(&self, session: &SessionId) -> Vec<Arc<Process>> {
        self.sessions().get(session).cloned().unwrap_or_default()
    }

    pub fn find(&self, session: &SessionId, id: &str) -> Option<Arc<Process>> {
        self.of(session).into_iter().find(|process| process.id == id)
    }

    /// The session is gone: so are its processes, and what they said.
    pub fn forget(&self, session: &SessionId) {
        for process in self.sessions().remove(session).into_iter().flatten() {
            process.stop.send_replace(Some("delete".to_owned()));
        }
    }

    /// Ends all of them, and waits for that.
    pub async fn end_all(&self, by: &str) {
        let all: Vec<Arc<Process>> = self.sessions().values().flatten().cloned().collect();
        end(all, by).await;
    }

    /// Ends those of a session, and waits for that. Gives back how many ran.
    pub async fn end_of(&self, session: &SessionId, by: &str) -> usize {
        end(self.of(session), by).await
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Arc<Process>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end(all: Vec<Arc<Process>>, by: &str) -> usize {
    let running: Vec<Arc<Process>> = all.into_iter().filter(|process| process.ended().is_none()).collect();
    for process in &running {
        process.ask_to_end(by);
    }
    for process in &running {
        process.is_over().await;
    }
    running.len()
}

/// A process that is not told of yet. Dropped, it is ended: nobody would know of it.
#[must_use]
#[derive(Debug)]
pub struct Begun {
    process: Arc<Process>,
    told: Option<oneshot::Sender<()>>,
}

impl Begun {
    /// That it began is told, and would survive a crash.
    pub fn told(mut self) -> Arc<Process> {
        if let Some(told) = self.told.take() {
            let _ = told.send(());
        }
        self.process.clone()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.told.is_some() {
            self.process.ask_to_end("cancel");
        }
    }
}

impl Process {
    /// `None` while it runs.
    pub fn ended(&self) -> Option<Ended> {
        self.state().ended.clone()
    }

    /// What it said, from a place on.
    pub fn log(&self, from: u64) -> Piece {
        self.state().log.from(from)
    }

    /// What it said since the model last looked.
    pub(super) fn unread(&self) -> Piece {
        let mut state = self.state();
        let piece = state.log.from(state.read);
        state.read = piece.next;
        piece
    }

    /// Ports that it listens on, in the network that it has. Blocks, shortly.
    pub fn ports(&self) -> Vec<u16> {
        if self.ended().is_some() {
            return Vec::new();
        }
        self.keeper.map(listening).unwrap_or_default()
    }

    /// Ends it. False: it had ended by itself.
    pub async fn end(&self, by: &str) -> bool {
        let is_running = self.ended().is_none();
        if is_running {
            self.ask_to_end(by);
            self.is_over().await;
        }
        is_running
    }

    /// Waits for its end, for a while.
    pub(super) async fn settles(&self, time: Duration) {
        let _ = timeout(time, self.over.subscribe().wait_for(|is_over| *is_over)).await;
    }

    fn ask_to_end(&self, by: &str) {
        // The first one who asked has ended it.
        self.stop.send_if_modified(|asked| asked.is_none() && asked.replace(by.to_owned()).is_none());
    }

    async fn is_over(&self) {
        self.settles(ENDING).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn follow(
    processes: Arc<Processes>,
    process: Arc<Process>,
    mut running: Running,
    (mut stop, is_told): (watch::Receiver<Option<String>>, oneshot::Receiver<()>),
    (workspace, obeyed): (PathBuf, Obeyed),
    session: SessionId,
) {
    let mut by = None;
    let ended = loop {
        let asked = async { stop.wait_for(Option::is_some).await.ok().and_then(|asked| asked.clone()) };
        let heard = tokio::select! {
            biased;
            asked = asked, if by.is_none() => {
                by = asked;
                running.stop().await;
                continue;
            }
            heard = running.next() => heard,
        };
        match heard {
            Some(Heard::Output(text)) => process.state().log.push(&text),
            Some(Heard::Ended(exit)) => break Ended { code: exit.code, by, at: Time::now(), notes: notes(&exit) },
            Some(Heard::Failed(words)) => break Ended { code: None, by, at: Time::now(), notes: vec![words] },
            None => break Ended { code: None, by, at: Time::now(), notes: Vec::new() },
        }
    };
    let told = ProcessEnded { process: process.id.clone(), code: ended.code, by: ended.by.clone() };
    process.state().ended = Some(ended);
    process.over.send_replace(true);
    processes.tidy();
    // If that it began was never told, its end is nobody's news, and the session knows.
    let _ = is_told.await;
    let news = &processes.news;
    // Nobody listens in a server that goes down: the next one finds that it is gone.
    let _ = news.send((session.clone(), Draft::tolka(told))).await;
    if let Some(notice) = tokio::task::spawn_blocking(move || changed(&obeyed, &workspace)).await.ok().flatten() {
        let _ = news.send((session, Draft::tolka(notice))).await;
    }
}

fn notes(exit: &Exit) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(exit.signal.map(|signal| format!("ended by signal {signal}")));
    notes.extend(exit.over.iter().map(|bound| format!("a limit of commands was reached: {bound:?}")));
    if !exit.refused.is_empty() {
        notes.push(format!("not on the list of hosts: {}", exit.refused.join(", ")));
    }
    notes
}

/// It ran beside other commands, so who of them it was is not known.
fn changed(obeyed: &Obeyed, workspace: &std::path::Path) -> Option<Noticed> {
    let changed = obeyed.changes();
    let name = |path: &PathBuf| path.strip_prefix(workspace).unwrap_or(path).display().to_string();
    let names: Vec<String> = changed.iter().take(10).map(name).collect();
    let words = format!(
        "While a process ran: {}. Git runs programs that are named there. Look at it before you use git in this folder.",
        names.join(", ")
    );
    let title = "What git obeys has changed".to_owned();
    (!names.is_empty()).then_some(Noticed { severity: Severity::Warning, title, description: Some(words) })
}
