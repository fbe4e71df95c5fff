use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// A line for whoever reads stdout. A reader that has gone, as `head` does, is an error like any other here; `main`
/// takes it for the quiet end that it is.
pub(crate) fn line(text: impl std::fmt::Display) -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{text}")
}

pub(crate) fn is_gone_reader(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.into_iter().any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// For commands whose exit code 1 says something about what they read: when they could not do their work at all, it is 2.
pub(crate) fn or_unusable(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match done {
        Err(error) if !is_gone_reader(&error) => {
            eprintln!("tolka: {error:#}");
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

/// Whether stdout is somebody who likes colours.
pub(crate) fn is_coloured() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// An agent's words must not steer the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}
