//! Commands that go on while their session does: that they have ended is told, whoever knows it.

use tolka_facts::event::ProcessEnded;
use tolka_facts::{Draft, Event, Tip};

use crate::actor::Actor;

/// How the open processes are told as ended, those of which it is so.
pub(crate) fn ended(tip: &Tip, by: &str, is_so: impl Fn(&str) -> bool) -> Vec<Draft> {
    let gone = tip.processes.iter().filter(|running| is_so(&running.process));
    let end = |process: String| Draft::tolka(ProcessEnded { process, code: None, by: Some(by.to_owned()) });
    gone.map(|running| end(running.process.clone())).collect()
}

/// Whether it is the end of a process that is told as ended already.
pub(crate) fn is_known_end(tip: &Tip, event: &Event) -> bool {
    let Event::ProcessEnded(end) = event else { return false };
    !tip.processes.iter().any(|running| running.process == end.process)
}

impl Actor {
    /// What a server that was killed has left open: its keepers have ended it.
    pub(crate) async fn end_lost_processes(&mut self) {
        let (agent, session) = (self.agent.clone(), self.session.clone());
        let is_lost = |process: &str| !agent.as_ref().is_some_and(|agent| agent.is_running(&session, process));
        let lost = ended(self.clerk.tip(), "restart", is_lost);
        if !lost.is_empty() {
            self.clerk.append_or_keep(lost).await;
        }
    }
}
