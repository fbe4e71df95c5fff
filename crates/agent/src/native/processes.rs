//! Commands that go on while their session does: development servers, watchers.
//!
//! They belong to the session and not to the turn that started them: a cancel leaves them, and they end when somebody ends
//! them, when the session is deleted, or with the server, whose keepers end them even if it is killed. What they print is
//! kept here, the end of it, and is in no fact: that they began and how they ended is. Those who listen hear that through
//! [`News`], since a process may end when no turn runs.

mod log;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tolka_facts::event::{Noticed, ProcessEnded, Severity};
use tolka_facts::{CallId, Draft, Hash, SessionId, Time};
use tolka_workspace::command::{Exit, Heard, Running, listening};
use tolka_workspace::obeyed::Obeyed;

use log::Log;
pub use log::Piece;

/// That run at once, in one session.
const MOST: usize = 8;

/// That have ended, and whose output can still be read.
const KEPT: usize = 16;

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

    /// Takes over a command that runs. That it began is told already.
    pub fn keep(
        self: &Arc<Self>,
        session: SessionId,
        call: CallId,
        command: String,
        running: Running,
        workspace: (PathBuf, Obeyed),
    ) -> Arc<Process> {
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
        let mut sessions = self.sessions();
        let all = sessions.entry(session.clone()).or_default();
        // The oldest of those that have ended go first.
        let gone = all.iter().filter(|one| one.ended().is_some()).count().saturating_sub(KEPT - 1);
        for _ in 0..gone {
            if let Some(at) = all.iter().position(|one| one.ended().is_some()) {
                all.remove(at);
            }
        }
        all.push(process.clone());
        drop(sessions);
        let following = follow(process.clone(), running, stopped, workspace, session, self.news.clone());
        tokio::spawn(following);
        process
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
        for process in &all {
            process.ask_to_end(by);
        }
        for process in all {
            process.is_over().await;
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Arc<Process>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
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
    process: Arc<Process>,
    mut running: Running,
    mut stop: watch::Receiver<Option<String>>,
    (workspace, obeyed): (PathBuf, Obeyed),
    session: SessionId,
    news: mpsc::Sender<(SessionId, Draft)>,
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
