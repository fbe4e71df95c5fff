//! Facts as a person reads them in a terminal.

use std::io::Write;

use tolka_facts::event::{FileOperation, PlanStatus, Stop};
use tolka_facts::{Event, Fact, NoBlobs, Tip, ToolStatus};

use crate::print::{self, plain};

pub(crate) struct Render {
    tip: Tip,
    /// Whether the cursor stands behind text that has no line break yet.
    in_line: bool,
    in_thought: bool,
    coloured: bool,
}

impl Render {
    pub(crate) fn new() -> Self {
        Render { tip: Tip::default(), in_line: false, in_thought: false, coloured: print::is_coloured() }
    }

    pub(crate) fn show(&mut self, fact: &Fact) {
        self.tip.apply(fact);
        match &fact.event {
            Event::TextAppended(e) => {
                if std::mem::take(&mut self.in_thought) {
                    self.new_line();
                }
                self.raw(&plain(&e.text));
            }
            Event::ThoughtAppended(e) => {
                if !std::mem::replace(&mut self.in_thought, true) {
                    self.new_line();
                }
                let text = self.faint(&plain(&e.text));
                self.raw(&text);
            }
            Event::ToolChanged(e) => {
                let Some(tool) = self.tip.tool(&e.call).cloned() else { return };
                if tool.is_open() {
                    return;
                }
                // A command that failed is a call that went well.
                let exit = tool.output.as_ref().and_then(|output| output.value()["metadata"]["exit"].as_i64());
                let exit = exit.filter(|code| *code != 0 && tool.status == ToolStatus::Completed);
                let mark = match tool.status {
                    ToolStatus::Completed if exit.is_some() => "✗",
                    ToolStatus::Completed => "✓",
                    ToolStatus::Failed => "✗",
                    ToolStatus::Cancelled | ToolStatus::Pending | ToolStatus::Running => "–",
                };
                let name = tool.name.as_deref().unwrap_or("tool");
                let title = if tool.title == name { String::new() } else { format!(" {}", first_line(&tool.title)) };
                let exit = exit.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                self.line(&format!("{mark} {name}{title}{exit}"));
                if let Some(error) = &tool.error {
                    self.line(&format!("  {}", first_line(&error.text(&NoBlobs))));
                }
            }
            Event::PlanSet(e) => {
                let done = e.entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
                let now = e.entries.iter().find(|entry| entry.status == PlanStatus::InProgress);
                let now = now.map(|entry| format!(": {}", first_line(&entry.content))).unwrap_or_default();
                self.line(&format!("plan {done}/{}{now}", e.entries.len()));
            }
            Event::FileChanged(e) => {
                let verb = match e.operation {
                    FileOperation::Create => "created",
                    FileOperation::Update => "changed",
                    FileOperation::Delete => "deleted",
                };
                self.line(&format!("{verb} {} (+{} −{})", plain(&e.path), e.added, e.removed));
            }
            Event::ArtifactSaved(e) => self.line(&format!("artifact {} ({})", plain(&e.name), plain(&e.path))),
            Event::RetryScheduled(e) => {
                let wait = e.delay_ms as f64 / 1000.0;
                self.line(&format!("try {} failed, the next in {wait:.1} s: {}", e.attempt, first_line(&e.message)));
            }
            Event::Noticed(e) => self.line(&format!("note: {}", first_line(&e.title))),
            Event::Failed(e) => self.line(&format!("error: {}", plain(&e.message))),
            Event::TurnEnded(e) if e.stop != Stop::EndTurn => {
                self.line(match e.stop {
                    Stop::Cancelled => "cancelled",
                    Stop::Interrupted => "interrupted: the server stopped",
                    Stop::Refusal => "the agent refused",
                    Stop::MaxTokens | Stop::MaxTurnRequests => "the agent stopped at a limit",
                    Stop::EndTurn | Stop::Failed => "failed",
                });
            }
            _ => {}
        }
        let _ = std::io::stdout().flush();
    }

    pub(crate) fn ask(&mut self, question: &str, options: &[&str]) {
        self.line(&format!("? {}", plain(question)));
        for (n, option) in (1..).zip(options) {
            self.line(&format!("  {n} {}", plain(option)));
        }
        self.raw(&format!("  1–{}: ", options.len()));
        let _ = std::io::stdout().flush();
        self.in_line = false;
    }

    pub(crate) fn answered(&mut self, answer: &str, problem: Option<String>) {
        let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
        self.line(&format!("→ {}{problem}", plain(answer)));
    }

    pub(crate) fn end(&mut self, session: &str) {
        self.new_line();
        eprintln!("{}", self.faint(&format!("session {session}")));
    }

    fn line(&mut self, text: &str) {
        self.in_thought = false;
        self.new_line();
        let text = self.faint(text);
        self.raw(&format!("{text}\n"));
    }

    fn new_line(&mut self) {
        if std::mem::take(&mut self.in_line) {
            self.raw("\n");
        }
    }

    fn raw(&mut self, text: &str) {
        // A terminal that went away is noticed by the process's end, not here.
        let _ = write!(std::io::stdout(), "{text}");
        self.in_line = !text.ends_with('\n');
    }

    fn faint(&self, text: &str) -> String {
        if self.coloured { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn first_line(text: &str) -> String {
    /// Of a line that says what happened; more is in the session.
    const SHOWN: usize = 240;
    let line = text.lines().next().unwrap_or_default();
    let shown = plain(&line[..line.floor_char_boundary(SHOWN)]);
    if line.len() > SHOWN { format!("{shown}…") } else { shown }
}
