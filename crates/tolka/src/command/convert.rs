use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use tolka_dialect::{Carriage, DecodeError, Dialect, Frames, Retelling};
use tolka_facts::{SessionId, Time};

use super::dialects::names;
use crate::print;
use crate::source::Source;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka convert --from acp --to onyx run.jsonl            a recording, as Onyx's readers want it
  tolka convert --to tolka < stream.sse > facts.jsonl     whatever it is, as facts
  curl -sN localhost:4096/event | tolka convert --from opencode --to agentsmithy

Each event is told as soon as it is read. Where a stream has no times, it is as if it happened now.
What the other dialect cannot tell is counted on stderr; `tolka dialects --markdown` says why.
Exit codes: 0 all was read, 1 some events could not be read and were left out, 2 nothing could be done.")]
pub(crate) struct Convert {
    /// A stream or a recording; `-` is stdin
    #[arg(default_value = "-", hide_default_value = true)]
    file: String,
    #[arg(long, value_name = "NAME", help = format!("Dialect of what is read, guessed if it is left out: {}", names()))]
    from: Option<Dialect>,
    #[arg(long, value_name = "NAME", help = "Dialect to tell it in: the same names")]
    to: Dialect,
    /// Tell this session of a stream that is about several; without it, most dialects tell the first
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Do not say what the other dialect cannot tell
    #[arg(long)]
    quiet: bool,
}

impl Convert {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        print::or_unusable(self.convert().await)
    }

    async fn convert(&self) -> Result<ExitCode> {
        let mut source = Source::open(&self.file)?;
        let from = match self.from {
            Some(from) => from,
            None => {
                let guess = source.guess().await?;
                let from = guess.context("it is not clear in which dialect this is; say it with --from")?;
                if !self.quiet {
                    eprintln!("read as {from}");
                }
                from
            }
        };
        let mut retelling = Retelling::new(from, self.to, Time::now());
        if let Some(session) = &self.session {
            retelling = retelling.of_session(SessionId::from(session.as_str()));
        }
        let (mut unread, mut written) = (0_u64, 0);
        let mut told = |frames: &mut Frames, read: Result<(), DecodeError>| {
            if let Err(error) = read {
                unread += 1;
                eprintln!("left out: {}", print::plain(&error.to_string()));
            }
            written += frames.len();
            write(self.to, frames)
        };
        let mut frames = Frames::default();
        while let Some(chunk) = source.next().await? {
            // A line at a time: what cannot be read in one must not hide what stands in the next.
            for line in chunk.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
                let read = retelling.feed(line, &mut frames);
                if read.is_err() {
                    told(&mut frames, read)?;
                }
            }
            told(&mut frames, Ok(()))?;
        }
        let read = retelling.finish(&mut frames);
        told(&mut frames, read)?;
        if retelling.understood() == 0 && retelling.left_out().is_empty() && !retelling.lost().is_empty() {
            bail!("nothing in {} is of the dialect {from}; say with --from which one it is", self.file);
        }
        if !self.quiet {
            for (session, count) in retelling.left_out() {
                eprintln!("left out: {count} facts of {session}, which is another session; choose one with --session");
            }
            losses(self.to, &retelling).iter().for_each(|loss| eprintln!("{loss}"));
        }
        if written == 0 && unread == 0 && retelling.lost().is_empty() && retelling.left_out().is_empty() {
            bail!("there is no event in {}", self.file);
        }
        if unread == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let (events, were) = if unread == 1 { ("event", "was") } else { ("events", "were") };
        eprintln!("{unread} {events} could not be read as {from} and {were} left out");
        Ok(ExitCode::FAILURE)
    }
}

fn write(to: Dialect, frames: &mut Frames) -> Result<()> {
    let mut bytes = Vec::new();
    frames.iter().for_each(|frame| to.write_frame(frame, &mut bytes));
    frames.clear();
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&bytes)?;
    Ok(stdout.flush()?)
}

/// A sentence for each kind of event that the dialect has no words for.
fn losses(to: Dialect, retelling: &Retelling) -> Vec<String> {
    let why = |event: &str| match to.carriage().iter().find(|(name, _)| *name == event) {
        Some((_, Carriage::Never(why))) => format!(" ({})", why.trim_end_matches('.')),
        _ => String::new(),
    };
    retelling.lost().iter().map(|(event, count)| format!("not told in {to}: {count} {event}{}", why(event))).collect()
}
