//! `tolka check`: holds a stream against the rules of its dialect. The stream is a file, a pipe or a live server's.

pub(super) mod answer;
mod report;
mod silence;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::Args;
use hyper::header::{HeaderName, HeaderValue};
use tolka_dialect::{Dialect, Finding, Judge};

use super::dialects::names;
use crate::fetch::{self, Question};
use crate::print;
use crate::source::Source;
use answer::Answer;
use report::{Ended, Form, Report};
use silence::Silence;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka check --dialect onyx captured.sse
  curl -sN … | tolka check --dialect agentsmithy -
  tolka check --dialect opencode --for 10 http://localhost:4096/event
  tolka check --dialect onyx --post '{\"content\":\"hello\"}' http://localhost:4096/api/build/sessions/<id>/send-message

A feed that never ends is left with --for, --events or Ctrl-C; what is still open then is no fault.
Exit codes: 0 nothing breaks the rules, 1 something does, 2 there was nothing to judge.")]
pub(crate) struct Check {
    /// A file, an http(s) URL, or `-` for stdin
    source: String,
    #[arg(long, value_name = "NAME", help = format!("Whose rules, guessed if it is left out: {}", names()))]
    dialect: Option<Dialect>,
    /// POST this JSON to the URL and judge the answer; `@file` reads it from a file, `-` from stdin
    #[arg(long, value_name = "BODY")]
    post: Option<String>,
    /// A header for the URL, `name: value`; may be repeated
    #[arg(long = "header", value_name = "HEADER", value_parser = fetch::header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    // Never taken from the environment: the URL may be a stranger's.
    /// Token for the URL, sent as `Authorization: Bearer`
    #[arg(long, value_name = "SECRET")]
    token: Option<String>,
    /// Leave after so many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    time: Option<Duration>,
    /// Leave after so many events
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// As JSON, one object at the end; of each rule the first 1000 findings, and in `omitted` how many more
    #[arg(long)]
    json: bool,
    /// List every finding; without it, the first 20 of each rule
    #[arg(long)]
    all: bool,
}

fn seconds(text: &str) -> Result<Duration> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

impl Check {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        print::or_unusable(self.check().await)
    }

    async fn check(&self) -> Result<ExitCode> {
        let form = match (self.json, self.all) {
            (true, _) => Form::Json,
            (false, true) => Form::Full,
            (false, false) => Form::Short,
        };
        let mut trial = Trial { judge: None, report: Report::new(&self.source, form), found: Vec::new() };
        let ended = tokio::select! {
            // In this order, so that nothing is told before Ctrl-C is heeded.
            biased;
            () = self.leave() => Ended::Left,
            ended = self.listen(&mut trial) => ended?,
        };
        let Trial { mut judge, mut report, mut found } = trial;
        if let Some(judge) = judge.as_mut().filter(|_| ended != Ended::Left) {
            judge.finish(&mut found);
        }
        report.tell(&mut found)?;
        let events = judge.map(|judge| judge.tally().clone()).unwrap_or_default();
        if events.is_empty() && report.is_clean() {
            bail!("there is no event in {}", self.source);
        }
        report.end(&events, &ended)?;
        Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn leave(&self) {
        let time = async {
            match self.time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        // Where it cannot be heeded, Ctrl-C ends the process as it always did.
        tokio::select! {
            () = time => {}
            Ok(()) = tokio::signal::ctrl_c() => {}
        }
    }

    async fn listen(&self, trial: &mut Trial) -> Result<Ended> {
        let is_url = self.source.starts_with("http://") || self.source.starts_with("https://");
        let mut source = if is_url {
            let post = self.post.as_deref().map(body).transpose()?;
            let question = Question { url: &self.source, post, headers: &self.headers, token: self.token.as_deref() };
            let (answer, body) = Answer::hear(question.ask().await?).await?;
            answer.judge(&mut trial.found);
            trial.report.tell(&mut trial.found)?;
            match body {
                Some(body) => Source::answer(body),
                None => return Ok(Ended::Unheard),
            }
        } else {
            if self.post.is_some() || !self.headers.is_empty() || self.token.is_some() {
                bail!("--post, --header and --token go with a URL, and `{}` is none", self.source);
            }
            Source::open(&self.source)?
        };
        let dialect = match self.dialect {
            Some(dialect) => dialect,
            None => {
                let guess = source.guess().await?;
                let dialect = guess.context("it is not clear in which dialect this is; say it with --dialect")?;
                trial.report.guessed();
                dialect
            }
        };
        trial.report.dialect = Some(dialect);
        let judge = trial.judge.insert(dialect.judge());
        let mut silence = Silence::new(is_url && !self.json);
        loop {
            match silence.watch(source.next()).await {
                Ok(Some(chunk)) => {
                    let is_enough = self.feed(judge, &chunk, &mut trial.found);
                    silence.heard(judge.tally().values().sum());
                    trial.report.tell(&mut trial.found)?;
                    if is_enough {
                        return Ok(Ended::Left);
                    }
                }
                Ok(None) => return Ok(Ended::Whole),
                Err(error) if is_url => return Ok(Ended::Broken(format!("{error:#}"))),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether as many events were judged as were wanted.
    fn feed(&self, judge: &mut Judge, chunk: &[u8], found: &mut Vec<Finding>) -> bool {
        let Some(wanted) = self.events else {
            judge.feed(chunk, found);
            return false;
        };
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            judge.feed(line, found);
            if judge.tally().values().sum::<u64>() >= wanted {
                return true;
            }
        }
        false
    }
}

struct Trial {
    /// There when the dialect is known.
    judge: Option<Judge>,
    report: Report,
    /// Not reported yet.
    found: Vec<Finding>,
}

fn body(post: &str) -> Result<Bytes> {
    let read = match post.strip_prefix('@') {
        Some(path) => std::fs::read(path).with_context(|| format!("cannot read {path}"))?,
        None if post == "-" => std::io::read_to_string(std::io::stdin()).context("stdin cannot be read")?.into_bytes(),
        None => post.as_bytes().to_vec(),
    };
    Ok(read.into())
}
