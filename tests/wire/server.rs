//! A `tolka serve` of our own, and the folders that outlive it.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Nothing here takes this long unless it hangs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Runs until `done` gives something. For conditions of the outside world that cannot be waited on.
pub(crate) fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(began.elapsed() < DEADLINE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn tolka() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tolka"));
    let ambient =
        ["TOLKA_DATA", "TOLKA_TOKEN", "TOLKA_LOG", "TOLKA_CONFIG", "TOLKA_MODEL", "XDG_DATA_HOME", "NO_COLOR"];
    let of_providers = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let of_providers = of_providers.filter(|name| name.ends_with("_API_KEY") || name.ends_with("_BASE_URL"));
    for name in ambient.into_iter().map(str::to_owned).chain(of_providers) {
        command.env_remove(name);
    }
    // Neither the configuration of the person who runs the tests nor their Ollama: nobody lists models on port 9.
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("CLAUDE_CONFIG_DIR", "/nonexistent")
        .env("OLLAMA_HOST", "127.0.0.1:9");
    command
}

/// What a server keeps, what its agents work in, and what they play.
pub(crate) struct House {
    dir: TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        let house = House { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(house.workspace()).unwrap();
        house
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A file with a recording to play; gives the name of its agent.
    pub(crate) fn plays(&self, recording: &str) -> String {
        let path = self.dir.path().join("recording.jsonl");
        std::fs::write(&path, recording).unwrap();
        format!("replay:{}", path.display())
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// A command on this house's data, with its folder as the current one.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tolka();
        command.args(args).current_dir(self.workspace()).env("TOLKA_DATA", self.data());
        command
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        Server::start(self, 0, args)
    }
}

/// The agent that plays one of the recordings of real agents.
pub(crate) fn recorded(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/recordings/acp").canonicalize().unwrap();
    format!("replay:{}", folder.join(format!("{name}.jsonl")).display())
}

/// A port that nobody has now: clients that come back need the same one after a restart. It is below those that the
/// system gives to whoever asks for any: one of these could be somebody else's while the server is down.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let ports = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
    let mut ports = ports.map(|n| (12_000 + std::process::id().wrapping_mul(101).wrapping_add(n) % 18_000) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// To a child that was not waited for yet: its number is still its own.
pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it printed first.
    pub(crate) first_line: String,
}

impl Server {
    /// Up when its first line is there.
    pub(crate) fn start(house: &House, port: u16, args: &[&str]) -> Self {
        let mut child = Server::spawn(house, port, args);
        let stdout = child.stdout.take().unwrap();
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut first = String::new();
            let mut reader = BufReader::new(stdout);
            let _ = reader.read_line(&mut first);
            let _ = line.send(first);
            // Goes on reading: a full pipe would stop the server.
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
        });
        let first_line = lines.recv_timeout(DEADLINE).expect("the server prints a line").trim_end().to_owned();
        let address = first_line.strip_prefix("http://").and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let mut problem = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut problem);
            panic!("the server did not start: {first_line:?} {problem}");
        };
        Server { child, address, first_line }
    }

    /// Started, and perhaps not up yet.
    pub(crate) fn spawn(house: &House, port: u16, args: &[&str]) -> Child {
        let mut command = house.command(&["serve", "--port", &port.to_string()]);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL: it can do nothing about it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn terminate(&self) {
        send(self.pid(), Signal::TERM);
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        until("the server's end", || self.child.try_wait().unwrap())
    }

    /// The most memory that it has ever had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
        peak.parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
