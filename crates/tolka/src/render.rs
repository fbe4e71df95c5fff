//! Facts as a person reads them in a terminal.

use std::io::Write;

use tolka_facts::event::{FileOperation, PlanStatus, Stop};
use tolka_facts::{Event, Fact, NoBlobs, Tip, ToolStatus};
use tolka_workspace::names::{meant, shown};

use crate::print::{self, plain};

pub(crate) struct Render {
    tip: Tip,
    /// Whether the cursor stands behind text that has no line break yet.
    in_line: bool,
    in_thought: bool,
    /// Whether the model has said something in the step that runs: a try that fails now was cut off.
    in_answer: bool,
    /// Whether the plan was shown since the last call ended: the call that set it has no more to tell.
    has_plan: bool,
    /// Whether the agent has noted something in this turn, as it does when it stops at a limit of its own.
    has_noted: bool,
    coloured: bool,
    /// Nothing is printed: a program reads stdout.
    is_quiet: bool,
}

/// What a line tells of something that may be long.
const TITLE: usize = 240;
/// Of what went wrong there is more to know.
const REASON: usize = 400;

impl Render {
    pub(crate) fn new() -> Self {
        Render {
            tip: Tip::default(),
            in_line: false,
            in_thought: false,
            in_answer: false,
            has_plan: false,
            has_noted: false,
            coloured: print::is_coloured(),
            is_quiet: false,
        }
    }

    pub(crate) fn quiet() -> Self {
        Render { is_quiet: true, ..Render::new() }
    }

    pub(crate) fn show(&mut self, fact: &Fact) {
        self.tip.apply(fact);
        match &fact.event {
            Event::StepStarted(_) => self.in_answer = false,
            Event::TurnStarted(_) => self.has_noted = false,
            Event::TextAppended(_) | Event::ThoughtAppended(_) | Event::InputAppended(_) => self.in_answer = true,
            _ => {}
        }
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
                let has_plan = std::mem::take(&mut self.has_plan);
                if has_plan && name == "todowrite" && tool.status == ToolStatus::Completed {
                    return;
                }
                let title = if tool.title == name { String::new() } else { format!(" {}", short(&tool.title, TITLE)) };
                let exit = exit.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                self.line(&format!("{mark} {name}{title}{exit}"));
                if let Some(error) = &tool.error {
                    self.line(&format!("  {}", short(&error.text(&NoBlobs), REASON)));
                }
            }
            Event::PlanSet(e) => {
                let done = e.entries.iter().filter(|entry| entry.status == PlanStatus::Completed).count();
                let now = e.entries.iter().find(|entry| entry.status == PlanStatus::InProgress);
                let now = now.map(|entry| format!(": {}", short(&entry.content, TITLE))).unwrap_or_default();
                self.line(&format!("plan {done} of {} done{now}", e.entries.len()));
                self.has_plan = true;
            }
            Event::FileChanged(e) => {
                let verb = match e.operation {
                    FileOperation::Create => "created",
                    FileOperation::Update => "changed",
                    FileOperation::Delete => "deleted",
                };
                self.line(&format!("{verb} {} (+{} −{})", shown(&meant(&e.path)), e.added, e.removed));
            }
            Event::ArtifactSaved(e) => self.line(&format!("artifact {} ({})", plain(&e.name), shown(&meant(&e.path)))),
            Event::RetryScheduled(e) => {
                let wait = e.delay_ms as f64 / 1000.0;
                let why = short(&e.message, REASON);
                let said = if std::mem::take(&mut self.in_answer) {
                    format!("the answer was cut off; asking again in {wait:.1} s: {why}")
                } else {
                    format!("try {} failed, the next in {wait:.1} s: {why}", e.attempt)
                };
                self.line(&said);
            }
            Event::CompactionStarted(_) => self.line("the conversation is long; it is being summarised"),
            Event::CompactionEnded(e) => match &e.error {
                Some(error) => self.line(&format!("no summary, all stays as it was: {}", short(error, REASON))),
                None => self.line("summarised"),
            },
            Event::Noticed(e) => {
                self.has_noted = true;
                let more = e.description.as_deref().map(|more| format!(": {}", short(more, REASON)));
                self.line(&format!("note: {}{}", short(&e.title, TITLE), more.unwrap_or_default()));
            }
            Event::Failed(e) => self.line(&format!("error: {}", plain(&e.message))),
            Event::TurnEnded(e) if e.stop != Stop::EndTurn => {
                self.line(match e.stop {
                    Stop::Cancelled => "cancelled",
                    Stop::Interrupted => "interrupted: the server stopped",
                    Stop::Refusal => "the agent refused",
                    Stop::MaxTokens => "stopped at the token limit: the answer is as long as the model's may be",
                    Stop::MaxTurnRequests if self.has_noted => "stopped at that limit",
                    Stop::MaxTurnRequests => "stopped: too many steps",
                    Stop::EndTurn | Stop::Failed => "failed",
                });
            }
            _ => {}
        }
        let _ = std::io::stdout().flush();
    }

    /// What is asked, where nobody is there to choose.
    pub(crate) fn ask_nobody(&mut self, question: &str) {
        self.line(&format!("? {}", plain(question)));
    }

    pub(crate) fn ask_why(&mut self) {
        self.raw("  why? The agent reads it; without a reason the turn ends: ");
        let _ = std::io::stdout().flush();
        self.in_line = false;
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

    /// Ctrl-C ends no line, as Enter would have.
    pub(crate) fn interrupted(&mut self) {
        self.raw("\n");
    }

    pub(crate) fn answered(&mut self, answer: &str, problem: Option<String>) {
        let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
        self.line(&format!("→ {}{problem}", plain(answer)));
    }

    pub(crate) fn end(&mut self, session: &str) {
        self.new_line();
        if self.is_quiet {
            return;
        }
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
        if self.is_quiet {
            return;
        }
        // A terminal that went away is noticed by the process's end, not here.
        let _ = write!(std::io::stdout(), "{text}");
        self.in_line = !text.ends_with('\n');
    }

    fn faint(&self, text: &str) -> String {
        if self.coloured { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The first line, of so many bytes at most; what is left out is shown to be.
fn short(text: &str, most: usize) -> String {
    let text = plain(text.trim());
    let line = text.lines().next().unwrap_or_default().trim_end();
    if line.len() <= most {
        return if line.len() < text.len() { format!("{line} …") } else { line.to_owned() };
    }
    let cut = &line[..line.floor_char_boundary(most)];
    // A word without an end, as a path may be, is cut where it is.
    let end = cut.rfind(' ').filter(|end| *end > most / 2).unwrap_or(cut.len());
    format!("{} …", &cut[..end])
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn what_is_left_out_is_shown_to_be() {
        assert_eq!(short("all of it", 20), "all of it");
        assert_eq!(short("all of it\n", 20), "all of it");
        assert_eq!(short("one\ntwo", 20), "one …");
        assert_eq!(short("words that go on and on", 14), "words that go …");
        assert_eq!(short("aaaaaaaaaaaaaaa", 10), "aaaaaaaaaa …");
        assert_eq!(short("ääää", 3), "ä …");
    }
}
