//! The keeper's own side: a process that runs one command and is not done before all of it is gone.
//!
//! Its stdin is the leash, its stdout the output of the command, its stderr the report. The command gets none of
//! them but the output. A session of its own, so that nobody's terminal can be asked for a password, and no key
//! press there reaches the command.

mod start;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, WaitOptions, WaitStatus};

use super::family;
use super::group::Group;
use super::limits::{Bound, Guard};
use super::order::{Input, Order, Report, Sandbox};
use start::{Main, start};

/// For what a command left behind to end by itself, such as a `tee` that writes the last lines.
const AFTERMATH: Duration = Duration::from_millis(100);

/// Between asking to end and ending.
const GRACE: Duration = Duration::from_millis(200);

/// For a program whose input has ended to end by itself, which is what most of them do.
const PARTING: Duration = Duration::from_secs(2);

/// What has not gone this long after it was killed hangs in the kernel, and goes when it comes back from there.
const HANGING: Duration = Duration::from_secs(3);

/// For a keeper in a sandbox to end everything there, before the sandbox itself is ended.
const SLACK: Duration = Duration::from_secs(2);

/// For a sandbox to be set up: until then the keeper inside does not count. A busy machine may take long for it.
const BEGINNING: Duration = Duration::from_secs(20);

/// SIGXFSZ, which every system of ours has under this number.
const TOO_LARGE: i32 = 25;

/// Between two looks at what a command uses up, and of one that has gone on for a while: it costs something each time.
const LOOK: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_millis(500);
const A_WHILE: Duration = Duration::from_secs(10);

/// Between two rounds of killing what new processes came up meanwhile.
const ROUND: Duration = Duration::from_millis(5);

enum Event {
    Started(Main),
    NotStarted(io::Error),
    /// Nobody holds the leash any more.
    Loose,
    Ended(WaitStatus),
    /// No process is left.
    AllGone,
}

/// Runs one command, as the arguments of this process say. The whole life of a keeper. What it has to say is said in its
/// report.
pub fn keep() -> ExitCode {
    let report = run(std::env::args_os().skip(2)).unwrap_or_else(|words| Some(Report::Failed { words }));
    if let Some(report) = report.and_then(|report| serde_json::to_string(&report).ok()) {
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "{report}");
    }
    ExitCode::SUCCESS
}

fn run(mut args: impl Iterator<Item = OsString>) -> Result<Option<Report>, String> {
    let order = args.next().ok_or("a keeper is started by Tolka itself, with an order")?;
    let order = order.to_str().and_then(|order| serde_json::from_str::<Order>(order).ok());
    let mut order = order.ok_or("the order of a keeper cannot be read")?;
    let args: Vec<OsString> = args.collect();
    family::close_off();
    // It fails for one that leads a group already, which is as good.
    let _ = rustix::process::setsid();
    family::adopt().map_err(|error| format!("processes cannot be kept: {error}"))?;
    let time_limit = match order.sandbox {
        // The keeper inside is the one that counts it, unless it is stopped.
        Sandbox::Bubblewrap(_) => order.time_limit.saturating_add(BEGINNING),
        Sandbox::Landlock(_) | Sandbox::Inside | Sandbox::None => order.time_limit,
    };
    let is_outermost = !matches!(order.sandbox, Sandbox::Inside);
    let group = order.group.as_ref().filter(|_| is_outermost).and_then(|place| Group::make(place, &order.limits).ok());
    let group = group.filter(|group| group.enter().is_ok());
    if is_outermost && group.is_none() {
        // The keeper counts then.
        order.group = None;
    }
    // Each of the two threads says two things and three things.
    let (tell, events) = sync_channel(5);
    let told = tell.clone();
    let input = order.input;
    thread::spawn(move || hold(input, &told));
    thread::spawn(move || work(&order, &args, &tell));
    Ok(watch(&events, time_limit, group, input))
}

/// Waits for the end of the leash. What is sent over it is the command's to read, where it is its input.
fn hold(input: Input, tell: &SyncSender<Event>) {
    match input {
        Input::Nothing => drop(io::stdin().lock().read_to_end(&mut Vec::new())),
        Input::Leash => wait_for_hangup(),
    }
    let _ = tell.send(Event::Loose);
}

/// That nobody can write to a pipe any more is told even to those who do not read it.
fn wait_for_hangup() {
    let stdin = io::stdin();
    loop {
        let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Starts the command, and buries whoever ends, until nobody is left.
fn work(order: &Order, args: &[OsString], tell: &SyncSender<Event>) {
    let main = match start(order, args) {
        Ok(main) => {
            let pid = main.pid;
            let _ = tell.send(Event::Started(main));
            pid
        }
        Err(error) => {
            let _ = tell.send(Event::NotStarted(error));
            return;
        }
    };
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == main => drop(tell.send(Event::Ended(status))),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // No child is left, and with that no descendant.
            Err(_) => break,
        }
    }
    let _ = tell.send(Event::AllGone);
}

/// What is known of the command so far.
struct Watch<'a> {
    events: &'a Receiver<Event>,
    main: Main,
    group: Option<Group>,
    /// What it has to end by itself when nobody holds the leash any more.
    parting: Duration,
    ended: Option<WaitStatus>,
    over: Option<Bound>,
}

enum Seen {
    AllGone,
    Loose,
    Ended,
    Nothing,
    /// A bound is exceeded.
    Over,
}

impl Watch<'_> {
    /// What happens next, if anything does before `until`.
    fn next(&mut self, until: Instant) -> Seen {
        match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::AllGone) => Seen::AllGone,
            Ok(Event::Loose) => Seen::Loose,
            Ok(Event::Ended(status)) => {
                self.ended = Some(status);
                Seen::Ended
            }
            Ok(Event::Started(_) | Event::NotStarted(_)) | Err(RecvTimeoutError::Timeout) => Seen::Nothing,
            // The one who waits for the processes is gone, by a panic.
            Err(RecvTimeoutError::Disconnected) => Seen::AllGone,
        }
    }

    fn is_all_gone(&mut self, until: Instant) -> bool {
        loop {
            match self.next(until) {
                Seen::AllGone => return true,
                Seen::Nothing => return false,
                Seen::Loose | Seen::Ended | Seen::Over => {}
            }
        }
    }

    /// What happens next, with a look now and then at what the command uses up.
    fn next_or_over(&mut self, until: Instant) -> Seen {
        let began = Instant::now();
        loop {
            let look = Instant::now() + if began.elapsed() < A_WHILE { LOOK } else { LATER };
            match self.next(until.min(look)) {
                Seen::Nothing if look < until => {
                    self.over = self.main.guard.as_ref().and_then(Guard::over);
                    if self.over.is_some() {
                        return Seen::Over;
                    }
                }
                seen => return seen,
            }
        }
    }

    /// Asks everybody to end, and then makes them.
    fn end(&mut self) {
        if let Some(inner) = self.main.inner.take() {
            drop(inner);
            if self.is_all_gone(Instant::now() + SLACK) {
                return;
            }
        }
        let group = self.main.pid;
        if self.over == Some(Bound::Processes) {
            // Asked to end, they would start others meanwhile.
            family::signal(group, Signal::STOP);
        } else {
            family::signal(group, Signal::TERM);
            if self.is_all_gone(Instant::now() + GRACE) {
                return;
            }
        }
        let hanging = Instant::now() + HANGING;
        while Instant::now() < hanging {
            if let Some(group) = &self.group {
                group.kill();
            }
            family::signal(group, Signal::KILL);
            if self.is_all_gone(Instant::now() + ROUND) {
                return;
            }
        }
    }
}

/// `None`: the report is another keeper's to give.
fn watch(events: &Receiver<Event>, time_limit: Duration, group: Option<Group>, input: Input) -> Option<Report> {
    // A time beyond what the clock can say is none.
    let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
    let deadline = Instant::now().checked_add(time_limit).unwrap_or(far).min(far);
    let mut is_loose = false;
    let main = loop {
        match events.recv() {
            Ok(Event::Started(main)) => break Ok(main),
            Ok(Event::NotStarted(error)) => break Err(Report::failed("it cannot be started", &error)),
            Ok(Event::Loose) => is_loose = true,
            Ok(Event::Ended(_) | Event::AllGone) | Err(_) => {
                break Err(Report::Failed { words: "its keeper lost it".to_owned() });
            }
        }
    };
    if let Some(group) = &group {
        // From this thread, which no sandbox holds. One that cannot leave is counted with its command.
        let _ = group.leave();
    }
    let main = match main {
        Ok(main) => main,
        Err(report) => return Some(report),
    };
    let parting = match input {
        Input::Nothing => Duration::ZERO,
        Input::Leash if main.is_wrapped => PARTING + SLACK,
        Input::Leash => PARTING,
    };
    let mut watch = Watch { events, main, group, parting, ended: None, over: None };
    let report = watch.follow(is_loose, deadline);
    let counted = watch.group.as_ref().map(Group::over).unwrap_or_default();
    match report {
        _ if watch.main.is_wrapped => (!counted.is_empty()).then_some(Report::Over(counted)),
        Report::Ended { code, signal, timed_out, left_behind, mut over } => {
            over.extend(counted);
            Some(Report::Ended { code, signal, timed_out, left_behind, over })
        }
        report => Some(report),
    }
}

impl Watch<'_> {
    /// Until all is gone.
    fn follow(&mut self, is_loose: bool, deadline: Instant) -> Report {
        let seen = if is_loose { Seen::Loose } else { self.next_or_over(deadline) };
        match seen {
            Seen::AllGone => self.report(false, 0),
            Seen::Loose if !self.parting.is_zero() && self.is_all_gone(Instant::now() + self.parting) => {
                self.report(false, 0)
            }
            Seen::Ended if self.is_all_gone(Instant::now() + AFTERMATH) => {
                family::sweep(self.main.pid);
                self.report(false, 0)
            }
            Seen::Ended => {
                let left = family::living().len();
                self.end();
                self.report(false, left)
            }
            Seen::Loose | Seen::Nothing | Seen::Over => {
                self.end();
                self.report(matches!(seen, Seen::Nothing), 0)
            }
        }
    }

    fn report(&self, timed_out: bool, left_behind: usize) -> Report {
        let Some(status) = self.ended else {
            return Report::Failed { words: "it was killed, and hangs in the kernel".to_owned() };
        };
        let (code, signal) = (status.exit_status(), status.terminating_signal());
        // The shell's way to say which signal ended what it ran last.
        let is_too_large = signal == Some(TOO_LARGE) || code == Some(128 + TOO_LARGE);
        let over = self.over.into_iter().chain(is_too_large.then_some(Bound::FileSize)).collect();
        Report::Ended { code, signal, timed_out, left_behind, over }
    }
}
