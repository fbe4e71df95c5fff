//! For the tests of this crate: a keeper, and a server that runs one command and can be killed. In the product both are
//! the command line.
//!
//! `tolka-keeper <level> <workspace> <line> [hidden…]` prints what it hears.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tolka_workspace::command::{Heard, Job, KEEP, Level, Shell, keep};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [first, ..] if first == KEEP => keep(),
        [level, workspace, line, hidden @ ..] => match serve(level, workspace, line, hidden) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => ExitCode::FAILURE,
    }
}

fn serve(level: &str, workspace: &str, line: &str, hidden: &[String]) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let level = Level::ALL.into_iter().find(|known| known.name() == level);
    let shell = Shell::at(&std::env::current_exe()?, level.ok_or("no such level")?)?;
    let shell = shell.hiding(hidden.iter().map(PathBuf::from));
    let job = Job {
        line: line.to_owned(),
        workspace: PathBuf::from(workspace),
        folder: PathBuf::from("."),
        time_limit: Duration::from_secs(60),
        env: Vec::new(),
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut running = shell.start(&job)?;
        while let Some(heard) = running.next().await {
            match heard {
                Heard::Output(text) => {
                    io::stdout().write_all(text.as_bytes())?;
                    io::stdout().flush()?;
                }
                Heard::Ended(exit) => println!("{exit:?}"),
                Heard::Failed(words) => return Err(words.into()),
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}
