//! The keeper's own side: a process that runs one command and is not done before all of it is gone.
//!
//! Its stdin is the leash, its stdout the output of the command, its stderr the report. The command gets none of
//! them but the output. A session of its own, so that nobody's terminal can be asked for a password, and no key
//! press there reaches the command.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::family;
use super::order::{Order, Report};

/// For what a command left behind to end by itself, such as a `tee` that writes the last lines.
const AFTERMATH: Duration = Duration::from_millis(100);

/// Between asking to end and ending.
const GRACE: Duration = Duration::from_millis(200);

/// What has not gone this long after it was killed hangs in the kernel, and goes when it comes back from there.
const HANGING: Duration = Duration::from_secs(3);

/// Between two rounds of killing what new processes came up meanwhile.
const ROUND: Duration = Duration::from_millis(5);

enum Event {
    Started(Pid),
    NotStarted(io::Error),
    /// Nobody holds the leash any more.
    Loose,
    Ended(WaitStatus),
    /// No process is left.
    AllGone,
}

/// Runs one command, as the arguments of this process say. The whole life of a keeper.
pub fn keep() -> ExitCode {
    let report = run(std::env::args_os().skip(2)).unwrap_or_else(|words| Report::Failed { words });
    let line = serde_json::to_string(&report).unwrap_or_default();
    // Nobody may be there to read it.
    let _ = writeln!(io::stderr(), "{line}");
    match report {
        Report::Ended { .. } => ExitCode::SUCCESS,
        Report::Failed { .. } => ExitCode::FAILURE,
    }
}

fn run(mut args: impl Iterator<Item = OsString>) -> Result<Report, String> {
    let (Some(order), Some(line)) = (args.next(), args.next()) else {
        return Err("a keeper is started by Tolka itself, with an order".to_owned());
    };
    let order = order.to_str().and_then(|order| serde_json::from_str::<Order>(order).ok());
    let order = order.ok_or("the order of a keeper cannot be read")?;
    // It fails for one that leads a group already, which is as good.
    let _ = rustix::process::setsid();
    family::adopt().map_err(|error| format!("processes cannot be kept: {error}"))?;
    let time_limit = order.time_limit;
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
        Ok(main) => main,
        Err(error) => {
            let _ = tell.send(Event::NotStarted(error));
            return;
        }
    };
    let _ = tell.send(Event::Started(main));
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

fn start(order: &Order, line: OsString) -> io::Result<Pid> {
    let mut command = Command::new(&order.program);
    command.arg("-c").arg(line).process_group(0);
    command.stdin(Stdio::null());
    command.stdout(io::stdout().as_fd().try_clone_to_owned()?).stderr(io::stdout().as_fd().try_clone_to_owned()?);
    let id = command.spawn()?.id();
    i32::try_from(id).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("a process without a number"))
}

/// What is known of the command so far.
struct Watch<'a> {
    events: &'a Receiver<Event>,
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
    fn end(&mut self, group: Pid) {
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

fn watch(events: &Receiver<Event>, time_limit: Duration) -> Report {
    // A time beyond what the clock can say is none.
    let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
    let deadline = Instant::now().checked_add(time_limit).unwrap_or(far).min(far);
    let mut is_loose = false;
    let group = loop {
        match events.recv() {
            Ok(Event::Started(pid)) => break pid,
            Ok(Event::NotStarted(error)) => return Report::failed("the shell cannot be started", &error),
            Ok(Event::Loose) => is_loose = true,
            Ok(Event::Ended(_) | Event::AllGone) | Err(_) => {
                return Report::Failed { words: "its keeper lost it".to_owned() };
            }
        }
    };
    let mut watch = Watch { events, ended: None };
    let mut timed_out = false;
    if is_loose {
        watch.end(group);
        return watch.report(timed_out, 0);
    }
    match watch.next(deadline) {
        Seen::AllGone => return watch.report(timed_out, 0),
        Seen::Ended => {
            if watch.is_all_gone(Instant::now() + AFTERMATH) {
                return watch.report(timed_out, 0);
            }
            let left = family::living().len();
            watch.end(group);
            return watch.report(timed_out, left);
        }
        Seen::Loose => {}
        Seen::Nothing => timed_out = true,
    }
    watch.end(group);
    watch.report(timed_out, 0)
}

impl Watch<'_> {
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
