//! How a command is started at each level: by what stands in the order, and by nothing else.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};

use rustix::process::Pid;

use super::super::forward;
use super::super::limits::Guard;
use super::super::order::{Input, Order, Sandbox, Way};
use super::super::sandbox::Bounds;
use super::super::surroundings;

/// The first process: the program, or the sandbox with another keeper in it.
pub(super) struct Main {
    pub(super) pid: Pid,
    /// Another keeper ends everything in the sandbox, and reports.
    pub(super) is_wrapped: bool,
    /// The leash of that one, where it has one of its own.
    pub(super) inner: Option<ChildStdin>,
    pub(super) guard: Option<Guard>,
}

pub(super) fn start(order: &Order, args: &[OsString]) -> io::Result<Main> {
    let counts = order.group.is_none();
    match &order.sandbox {
        Sandbox::Bubblewrap(bounds) => wrapped(bounds, order, args),
        Sandbox::Landlock(bounds) => {
            let guard = Guard::begin(order.limits, counts, &bounds.workspace);
            restrict(bounds, &order.way).and_then(|()| program(order, args, guard))
        }
        Sandbox::Inside => {
            let guard = Guard::begin(order.limits, counts, &std::env::current_dir()?);
            if let Way::Proxy { port, .. } = order.way {
                forward::begin(port)?;
            }
            cut_off().and_then(|()| program(order, args, guard))
        }
        Sandbox::None => program(order, args, Guard::begin(order.limits, counts, &std::env::current_dir()?)),
    }
}

fn program(order: &Order, args: &[OsString], guard: Guard) -> io::Result<Main> {
    let mut command = Command::new(&order.program);
    command.args(args).process_group(0).stdout(io::stdout().as_fd().try_clone_to_owned()?);
    for (held, name, value) in surroundings::unwrapped() {
        command.env_remove(held).env(name, value);
    }
    match order.input {
        Input::Nothing => command.stdin(Stdio::null()).stderr(io::stdout().as_fd().try_clone_to_owned()?),
        Input::Leash => {
            command.stdin(io::stdin().as_fd().try_clone_to_owned()?);
            command.stderr(io::stderr().as_fd().try_clone_to_owned()?)
        }
    };
    Ok(Main { guard: Some(guard), ..main(command)? })
}

/// Not dropped before all is gone: the sandbox ends with the thread that started it.
fn main(mut command: Command) -> io::Result<Main> {
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process without a number"))?;
    Ok(Main { pid, is_wrapped: false, inner: child.stdin.take(), guard: None })
}

#[cfg(target_os = "linux")]
fn wrapped(bounds: &Bounds, order: &Order, args: &[OsString]) -> io::Result<Main> {
    use super::super::KEEP;
    use super::super::sandbox::bubblewrap::{Myself, inside};
    let myself = Myself::open()?;
    let mut command = inside(order.wrapper.as_deref(), bounds, &order.way, &myself)?;
    let inner = Order { sandbox: Sandbox::Inside, ..order.clone() };
    command.arg(KEEP).arg(serde_json::to_string(&inner)?).args(args).process_group(0);
    match order.input {
        Input::Nothing => command.stdin(Stdio::piped()),
        Input::Leash => command.stdin(io::stdin().as_fd().try_clone_to_owned()?),
    };
    command.stdout(io::stdout().as_fd().try_clone_to_owned()?).stderr(io::stderr().as_fd().try_clone_to_owned()?);
    Ok(Main { is_wrapped: true, ..main(command)? })
}

#[cfg(target_os = "linux")]
fn restrict(bounds: &Bounds, way: &Way) -> io::Result<()> {
    super::super::sandbox::landlock::restrict(bounds, way)
}

#[cfg(target_os = "linux")]
fn cut_off() -> io::Result<()> {
    super::super::sandbox::landlock::cut_off()
}

#[cfg(not(target_os = "linux"))]
fn cut_off() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn wrapped(_: &Bounds, _: &Order, _: &[OsString]) -> io::Result<Main> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn restrict(_: &Bounds, _: &Way) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
