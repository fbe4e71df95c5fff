//! Bubblewrap: a view of the file system of its own, and no process to be seen but its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};

use super::super::forward;
use super::super::order::Way;
use super::{Bounds, root};

/// Of what services keep for others, the few things that are read and open nothing. Sockets there, of the container
/// engine or the session bus, would be ways out.
const NEEDED: &[&str] = &["/run/current-system", "/run/opengl-driver"];

/// This very program, to be run inside. By its own open file: its path may be hidden there, or be another program by now.
/// The file must live until the command is started, and what runs inside inherits it, which tells it nothing.
pub(in crate::command) struct Myself {
    file: File,
}

impl Myself {
    pub(in crate::command) fn open() -> io::Result<Self> {
        let file = File::open("/proc/self/exe")?;
        fcntl_setfd(&file, FdFlags::empty())?;
        Ok(Myself { file })
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }
}

/// What runs `myself` inside; its arguments are to follow.
pub(in crate::command) fn inside(
    wrapper: Option<&Path>,
    bounds: &Bounds,
    way: &Way,
    myself: &Myself,
) -> io::Result<Command> {
    let wrapper = wrapper.ok_or_else(|| io::Error::other("there is no program bwrap"))?;
    // Commands write there.
    if wrapper.canonicalize()?.starts_with(&bounds.workspace) {
        return Err(io::Error::other(format!("{} lies in the workspace", wrapper.display())));
    }
    let mut command = Command::new(wrapper);
    command.args(["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--ro-bind", "/", "/"]);
    if *way != Way::Open {
        command.arg("--unshare-net");
    }
    if root::is_root() {
        command.args(["--cap-drop", "ALL"]);
        command.args(root::kept()?.into_iter().flat_map(|name| ["--cap-add", name]));
    }
    let mut mounts = Mounts::default();
    mounts.add("/dev", ["--dev"]);
    mounts.add("/proc", ["--proc"]);
    if root::is_root() {
        // The settings of the whole machine are there, and belong to root whatever else it has given up.
        mounts.covered.push(PathBuf::from("/proc"));
    }
    mounts.cover("/run");
    mounts.add("/var/tmp", ["--tmpfs"]);
    for needed in NEEDED {
        mounts.bind("--ro-bind-try", Path::new(needed), needed);
    }
    // How names are looked up is often said there, by one service or another.
    if let Some(folder) = Path::new("/etc/resolv.conf").canonicalize().ok().as_deref().and_then(Path::parent)
        && folder.starts_with("/run")
        && folder != "/run"
    {
        mounts.bind("--ro-bind", folder, folder);
    }
    if let Way::Proxy { socket: Some(socket), .. } = way {
        mounts.bind("--ro-bind", socket, forward::SOCKET);
    }
    for hidden in &bounds.hidden {
        if hidden.is_dir() {
            mounts.cover(hidden);
        } else if hidden.exists() {
            mounts.bind("--ro-bind", Path::new("/dev/null"), hidden);
        }
    }
    mounts.bind("--bind", &bounds.scratch, "/tmp");
    for writable in bounds.writable.iter().chain([&bounds.workspace]) {
        mounts.bind("--bind-try", writable, writable);
    }
    for pinned in &bounds.pinned {
        mounts.bind("--bind-try", pinned, pinned);
    }
    for guarded in &bounds.guarded {
        mounts.bind("--ro-bind-try", guarded, guarded);
    }
    mounts.write(&mut command);
    command.arg("--chdir").arg(&bounds.folder).arg("--").arg(myself.path());
    Ok(command)
}

/// What lies over what is said by the paths alone: a folder before what is in it, and of two at one place the later.
#[derive(Default)]
struct Mounts {
    list: Vec<(PathBuf, Vec<PathBuf>)>,
    /// To stay as they are: most of them empty.
    covered: Vec<PathBuf>,
}

impl Mounts {
    fn add(&mut self, at: impl Into<PathBuf>, how: [&str; 1]) {
        self.list.push((at.into(), how.map(PathBuf::from).to_vec()));
    }

    fn bind(&mut self, how: &str, what: &Path, at: impl Into<PathBuf>) {
        self.list.push((at.into(), vec![PathBuf::from(how), what.to_owned()]));
    }

    fn cover(&mut self, at: impl Into<PathBuf>) {
        let at = at.into();
        self.add(&at, ["--tmpfs"]);
        self.covered.push(at);
    }

    fn write(mut self, command: &mut Command) {
        // By parts, so that a folder comes before what is in it. It keeps the order of those at one place.
        self.list.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (at, how) in self.list {
            command.args(how).arg(at);
        }
        // Only now: places for other mounts may have been made in them.
        for covered in self.covered {
            command.arg("--remount-ro").arg(covered);
        }
    }
}
