//! `tolka-scripted script.json --port 0`: the provider as a process, for tests in other languages and for benches.
//!
//! Its first line is its URL. `GET /requests` tells what it was asked, `POST /gates/<name>` opens a gate.

use std::io::{Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use tolka_scripted::{Script, Scripted};

/// A model provider that says what a script says, over the real OpenAI and Anthropic wires.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The script, as JSON.
    script: PathBuf,
    /// 0 for a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// End when standard input ends, so that nothing outlives who started it.
    #[arg(long)]
    until_stdin_ends: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let named = || args.script.display().to_string();
    let text = std::fs::read_to_string(&args.script).with_context(named)?;
    let script = Script::read(serde_json::from_str(&text).with_context(named)?).with_context(named)?;
    let provider = Scripted::start_at(script, args.port)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", provider.url())?;
    out.flush()?;
    if args.until_stdin_ends {
        std::io::stdin().read_to_end(&mut Vec::new())?;
    } else {
        loop {
            std::thread::park();
        }
    }
    Ok(())
}
