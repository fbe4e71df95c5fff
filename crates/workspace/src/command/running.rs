//! A command that runs, as the server sees it: the output that comes, the leash in hand, the keeper's report at the end.
//!
//! Nothing works on while nobody asks: a full pipe makes the command wait. Every wait can be dropped and begun again.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

use super::order::Report;
use super::proxy::Pass;
use super::text::Repair;
use super::{Exit, Heard, family};

/// A flood comes in pieces of this size.
const PIECE: usize = 16 << 10;

/// What comes this soon after the first byte of a piece is told with it.
const GATHERING: Duration = Duration::from_millis(15);

/// More output than this is of no use to anybody. The command goes on.
const KEPT: usize = 10 << 20;

/// A report is a line. A keeper that says more has lost its mind.
const SAID: usize = 64 << 10;

/// For a keeper to end everything: asking, killing, and what hangs in the kernel, with room for a busy machine.
const ENDING: Duration = Duration::from_secs(10);

/// For what is still in the pipe when the keeper has gone. Only a process that got away can hold it open.
const DRAINING: Duration = Duration::from_millis(100);

/// A command that runs. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Running {
    keeper: Child,
    /// Every keeper begins one.
    session: Option<Pid>,
    /// Everything ends when this is closed.
    leash: Option<ChildStdin>,
    /// `None`: it has come to its end.
    output: Option<ChildStdout>,
    /// `None`: it has come to its end, and with it the keeper.
    report: Option<ChildStderr>,
    said: Vec<u8>,
    gathered: Vec<u8>,
    /// When the piece that is gathered is told.
    due: Option<Instant>,
    repair: Repair,
    /// Bytes that were told, or will be.
    kept: usize,
    lost: u64,
    /// Heard while it was being stopped: at most what is kept of its output, and its end.
    waiting: VecDeque<Heard>,
    is_over: bool,
    /// Its way to the network, if that is a list.
    pass: Option<Pass>,
    /// How much of its output is told.
    most: usize,
}

impl Running {
    pub(super) fn start(mut keeper: Command, pass: Option<Pass>) -> io::Result<Self> {
        let mut keeper = keeper.spawn()?;
        let id = keeper.id().and_then(|id| i32::try_from(id).ok());
        Ok(Running {
            session: id.and_then(Pid::from_raw),
            leash: keeper.stdin.take(),
            output: keeper.stdout.take(),
            report: keeper.stderr.take(),
            keeper,
            said: Vec::new(),
            gathered: Vec::with_capacity(PIECE),
            due: None,
            repair: Repair::default(),
            kept: 0,
            lost: 0,
            waiting: VecDeque::new(),
            is_over: false,
            pass,
            most: KEPT,
        })
    }

    /// For one that goes on, whose reader keeps as much of it as it likes: all of its output is told.
    pub fn unbounded(mut self) -> Self {
        self.most = usize::MAX;
        self
    }

    /// Hosts that it asked for and that are not on the list, so far.
    pub fn refused(&self) -> Vec<String> {
        self.pass.as_ref().map(Pass::refused).unwrap_or_default()
    }

    /// The number of its keeper, from which all that it started comes.
    pub fn keeper(&self) -> Option<u32> {
        self.keeper.id()
    }

    /// Whether it has ended, and that was heard.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What it says next. After [`Heard::Ended`] or [`Heard::Failed`]: `None`. May be dropped at any moment; nothing is
    /// lost by that.
    pub async fn next(&mut self) -> Option<Heard> {
        if let Some(heard) = self.waiting.pop_front() {
            return Some(heard);
        }
        self.hear().await
    }

    /// Ends it, with all that it started, and waits until they are gone. What it said until then, and its end, are next.
    pub async fn stop(&mut self) {
        self.leash = None;
        let all = async {
            while let Some(heard) = self.hear().await {
                self.waiting.push_back(heard);
            }
        };
        if timeout(ENDING, all).await.is_err() {
            // It does nothing any more. What it kept is ended when its report turns out to be missing.
            let _ = self.keeper.start_kill();
            while let Some(heard) = self.hear().await {
                self.waiting.push_back(heard);
            }
        }
    }

    async fn hear(&mut self) -> Option<Heard> {
        if self.is_over {
            return None;
        }
        while let Some(report) = &mut self.report {
            let room = PIECE - self.gathered.len();
            let output = async {
                match &mut self.output {
                    Some(output) => output.take(room as u64).read_buf(&mut self.gathered).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                read = output => {
                    if !matches!(read, Ok(1..)) {
                        self.output = None;
                    }
                    if self.admit() && let Some(piece) = self.piece() {
                        return Some(piece);
                    }
                }
                () = until(self.due) => {
                    if let Some(piece) = self.piece() {
                        return Some(piece);
                    }
                }
                read = report.read_buf(&mut self.said) => {
                    if !matches!(read, Ok(1..)) || self.said.len() > SAID {
                        self.report = None;
                    }
                }
            }
        }
        if let Some(piece) = self.drain().await {
            return Some(piece);
        }
        let _ = self.keeper.wait().await;
        let rest = self.repair.rest();
        if !rest.is_empty() {
            return Some(Heard::Output(rest));
        }
        let heard = match Report::find(&self.said) {
            Some(Report::Ended { code, signal, timed_out, left_behind, over }) => {
                let (lost, refused) = (self.lost, self.refused());
                Heard::Ended(Exit { code, signal, timed_out, left_behind, lost, over, refused })
            }
            Some(Report::Failed { words }) => Heard::Failed(words),
            Some(Report::Over(_)) | None => {
                self.bury().await;
                Heard::Failed("its keeper was killed".to_owned())
            }
        };
        self.is_over = true;
        Some(heard)
    }

    /// Ends what a keeper that was killed has left. One that got away into a session of its own is not found.
    async fn bury(&self) {
        if let Some(session) = self.session {
            let ended = tokio::task::spawn_blocking(move || family::end_session(session)).await;
            if !matches!(ended, Ok(true)) {
                tracing::warn!("a keeper was killed, and processes of its command may be left");
            }
        }
    }

    /// What is still in the pipe when the keeper has gone.
    async fn drain(&mut self) -> Option<Heard> {
        while let Some(output) = &mut self.output {
            let room = (PIECE - self.gathered.len()) as u64;
            let read = timeout(DRAINING, output.take(room).read_buf(&mut self.gathered)).await;
            if !matches!(read, Ok(Ok(1..))) {
                self.output = None;
            }
            if self.admit()
                && let Some(piece) = self.piece()
            {
                return Some(piece);
            }
        }
        self.piece()
    }

    /// Takes in what was read, as far as it is kept. True: the piece is full.
    fn admit(&mut self) -> bool {
        let most = self.most - self.kept;
        if self.gathered.len() > most {
            self.lost += (self.gathered.len() - most) as u64;
            self.gathered.truncate(most);
        }
        if self.gathered.is_empty() {
            return false;
        }
        self.due.get_or_insert_with(|| Instant::now() + GATHERING);
        self.gathered.len() == PIECE
    }

    /// `None`: there is nothing, or only the beginning of a character.
    fn piece(&mut self) -> Option<Heard> {
        self.due = None;
        self.kept += self.gathered.len();
        let piece = self.repair.piece(&self.gathered);
        self.gathered.clear();
        (!piece.is_empty()).then_some(Heard::Output(piece))
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
