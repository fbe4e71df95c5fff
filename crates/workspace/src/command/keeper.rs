//! The keeper's own side: a process that runs one command and is not done before all of it is gone.
//!
//! Its stdin is the leash, its stdout the output of the command, its stderr the report. The command gets none of
//! them but the output. A session of its own, so that nobody's terminal can be asked for a password, and no key
//! press there reaches the command.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::family;
use super::order::{Order, Report, Sandbox};
use super::sandbox::Bounds;

/// For what a command left behind to end by itself, such as a `tee` that writes the last lines.
const AFTERMATH: Duration = Duration::from_millis(100);

/// Between asking to end and ending.
const GRACE: Duration = Duration::from_millis(200);

/// What has not gone this long after it was killed hangs in the kernel, and goes when it comes back from there.
const HANGING: Duration = Duration::from_secs(3);

/// For a keeper in a sandbox to end everything there, before the sandbox itself is ended.
const SLACK: Duration = Duration::from_millis(600);

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

/// The first process: the shell, or the sandbox with another keeper in it.
struct Main {
    pid: Pid,
    /// The leash of the other keeper, which ends everything in the sandbox and reports.
    inner: Option<ChildStdin>,
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
    let (Some(order), Some(line)) = (args.next(), args.next()) else {
        return Err("a keeper is started by Tolka itself, with an order".to_owned());
    };
    let order = order.to_str().and_then(|order| serde_json::from_str::<Order>(order).ok());
    let order = order.ok_or("the order of a keeper cannot be read")?;
    family::close_off();
    // It fails for one that leads a group already, which is as good.
    let _ = rustix::process::setsid();
    family::adopt().map_err(|error| format!("processes cannot be kept: {error}"))?;
    let time_limit = match order.sandbox {
        // The keeper inside is the one that counts it, unless it is stopped.
        Sandbox::Bubblewrap(_) => order.time_limit.saturating_add(SLACK),
        Sandbox::Landlock(_) | Sandbox::Inside | Sandbox::None => order.time_limit,
    };
    // Each of the two threads says two things and three things.
    let (tell, events) = sync_channel(5);
    let told = tell.clone();
    thread::spawn(move || hold(&told));
    thread::spawn(move || work(&order, line, &tell));
    Ok(watch(&events, time_limit))
}

/// Waits for the end of the leash. Nothing is ever sent over it.
fn hold(tell: &SyncSender<Event>) {
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    let _ = tell.send(Event::Loose);
}

/// Starts the command, and buries whoever ends, until nobody is left.
fn work(order: &Order, line: OsString, tell: &SyncSender<Event>) {
    let main = match start(order, line) {
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

fn start(order: &Order, line: OsString) -> io::Result<Main> {
    match &order.sandbox {
        Sandbox::Bubblewrap(bounds) => wrapped(bounds, order, line),
        Sandbox::Landlock(bounds) => {
            restrict(bounds)?;
            shell(order, line)
        }
        Sandbox::Inside => {
            cut_off()?;
            shell(order, line)
        }
        Sandbox::None => shell(order, line),
    }
}

fn shell(order: &Order, line: OsString) -> io::Result<Main> {
    let mut command = Command::new(&order.program);
    command.arg("-c").arg(line).process_group(0).stdin(Stdio::null());
    command.stdout(io::stdout().as_fd().try_clone_to_owned()?).stderr(io::stdout().as_fd().try_clone_to_owned()?);
    main(command)
}

/// Not dropped before all is gone: the sandbox ends with the thread that started it.
fn main(mut command: Command) -> io::Result<Main> {
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(Main { pid, inner: child.stdin.take() })
}

#[cfg(target_os = "linux")]
fn wrapped(bounds: &Bounds, order: &Order, line: OsString) -> io::Result<Main> {
    use super::KEEP;
    use super::sandbox::bubblewrap::{Myself, inside};
    let myself = Myself::open()?;
    let mut command = inside(bounds, &myself)?;
    let inner = Order { sandbox: Sandbox::Inside, ..order.clone() };
    command.arg(KEEP).arg(serde_json::to_string(&inner)?).arg(line).process_group(0).stdin(Stdio::piped());
    command.stdout(io::stdout().as_fd().try_clone_to_owned()?).stderr(io::stderr().as_fd().try_clone_to_owned()?);
    main(command)
}

#[cfg(target_os = "linux")]
fn restrict(bounds: &Bounds) -> io::Result<()> {
    super::sandbox::landlock::restrict(bounds)
}

#[cfg(target_os = "linux")]
fn cut_off() -> io::Result<()> {
    super::sandbox::landlock::cut_off()
}

#[cfg(not(target_os = "linux"))]
fn cut_off() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn wrapped(_: &Bounds, _: &Order, _: OsString) -> io::Result<Main> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Bounds) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What is known of the command so far.
struct Watch<'a> {
    events: &'a Receiver<Event>,
    main: Main,
    ended: Option<WaitStatus>,
}

enum Seen {
    AllGone,
    Loose,
    Ended,
    Nothing,
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
                Seen::Loose | Seen::Ended => {}
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
        family::signal(group, Signal::TERM);
        if self.is_all_gone(Instant::now() + GRACE) {
            return;
        }
        let hanging = Instant::now() + HANGING;
        while Instant::now() < hanging {
            family::signal(group, Signal::KILL);
            if self.is_all_gone(Instant::now() + ROUND) {
                return;
            }
        }
    }
}

/// `None`: the report is another keeper's to give.
fn watch(events: &Receiver<Event>, time_limit: Duration) -> Option<Report> {
    // A time beyond what the clock can say is none.
    let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
    let deadline = Instant::now().checked_add(time_limit).unwrap_or(far).min(far);
    let mut is_loose = false;
    let main = loop {
        match events.recv() {
            Ok(Event::Started(main)) => break main,
            Ok(Event::NotStarted(error)) => return Some(Report::failed("it cannot be started", &error)),
            Ok(Event::Loose) => is_loose = true,
            Ok(Event::Ended(_) | Event::AllGone) | Err(_) => {
                return Some(Report::Failed { words: "its keeper lost it".to_owned() });
            }
        }
    };
    let is_wrapped = main.inner.is_some();
    let mut watch = Watch { events, main, ended: None };
    let report = watch.follow(is_loose, deadline);
    (!is_wrapped).then_some(report)
}

impl Watch<'_> {
    /// Until all is gone.
    fn follow(&mut self, is_loose: bool, deadline: Instant) -> Report {
        let seen = if is_loose { Seen::Loose } else { self.next(deadline) };
        match seen {
            Seen::AllGone => self.report(false, 0),
            Seen::Ended if self.is_all_gone(Instant::now() + AFTERMATH) => {
                family::sweep(self.main.pid);
                self.report(false, 0)
            }
            Seen::Ended => {
                let left = family::living().len();
                self.end();
                self.report(false, left)
            }
            Seen::Loose | Seen::Nothing => {
                self.end();
                self.report(matches!(seen, Seen::Nothing), 0)
            }
        }
    }

    fn report(&self, timed_out: bool, left_behind: usize) -> Report {
        match self.ended {
            Some(status) => Report::Ended {
                code: status.exit_status(),
                signal: status.terminating_signal(),
                timed_out,
                left_behind,
            },
            None => Report::Failed { words: "it was killed, and hangs in the kernel".to_owned() },
        }
    }
}
