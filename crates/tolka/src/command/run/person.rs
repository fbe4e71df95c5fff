//! The person at the terminal: who answers what the agent asks, and who presses Ctrl-C.

use std::io::IsTerminal;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::render::Render;

pub(super) struct Person {
    interrupts: Signal,
    is_there: bool,
}

pub(super) enum Choice {
    Option(usize),
    /// Nobody is there to choose.
    Nobody,
    Interrupted,
}

pub(super) enum Reason {
    Said(Option<String>),
    Interrupted,
}

impl Person {
    /// From here on Ctrl-C is heard, and ends nothing by itself.
    pub(super) fn at_terminal() -> Result<Self> {
        let interrupts = signal(SignalKind::interrupt()).context("Ctrl-C cannot be listened to")?;
        Ok(Person { interrupts, is_there: std::io::stdin().is_terminal() })
    }

    /// Whoever is there is not asked: a program reads what is printed.
    pub(super) fn away() -> Result<Self> {
        Ok(Person { is_there: false, ..Person::at_terminal()? })
    }

    /// Comes back when somebody presses Ctrl-C.
    pub(super) async fn interrupts(&mut self) {
        if self.interrupts.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    pub(super) async fn choose(&mut self, render: &mut Render, question: &str, options: &[&str]) -> Result<Choice> {
        if !self.is_there {
            render.ask_nobody(question);
            return Ok(Choice::Nobody);
        }
        loop {
            render.ask(question, options);
            let line = tokio::select! {
                line = read_line() => line?,
                () = self.interrupts() => {
                    render.interrupted();
                    return Ok(Choice::Interrupted);
                }
            };
            let Some(line) = line else { return Ok(Choice::Nobody) };
            match line.trim().parse::<usize>() {
                Ok(n) if (1..=options.len()).contains(&n) => return Ok(Choice::Option(n - 1)),
                _ => continue,
            }
        }
    }

    /// Why something was refused, by somebody who was there to refuse it.
    pub(super) async fn reason(&mut self, render: &mut Render) -> Result<Reason> {
        render.ask_why();
        let line = tokio::select! {
            line = read_line() => line?,
            () = self.interrupts() => {
                render.interrupted();
                return Ok(Reason::Interrupted);
            }
        };
        let line = line.map(|line| line.trim().to_owned());
        Ok(Reason::Said(line.filter(|line| !line.is_empty())))
    }
}

/// In a thread of its own that nobody waits for: reading a terminal cannot be broken off, and the process has to be able to end
/// meanwhile. `None` at the end of the input.
async fn read_line() -> Result<Option<String>> {
    let (said, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).map(|read| (read > 0).then_some(line));
        // Nobody may want it any more.
        let _ = said.send(read);
    });
    Ok(line.await.context("the terminal cannot be read")??)
}
