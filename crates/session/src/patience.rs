//! Requests that nobody answers. Each has a time to wait while somebody is there who could answer and one for when
//! nobody is; when it is over, the request is answered in nobody's name and the mind goes on.

use std::time::Duration;

use tokio::time::Instant;
use tolka_agent::{Chosen, Patience};
use tolka_facts::event::{PermissionAnswered, QuestionAnswered};
use tolka_facts::{Ask, Draft, RequestId};

use crate::actor::{Actor, RETRY};

/// Who answers in nobody's name.
const NOBODY: &str = "tolka";

/// Whether somebody is there, and if not, since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Attended,
    AloneSince(Instant),
}

/// When a request has waited long enough. A client that comes back for a moment does not start it anew: it never waits
/// longer than the longer of its two times in all.
pub(crate) fn patience_ends(asked: Instant, patience: &Patience, company: Company) -> Instant {
    let most = asked + patience.attended.max(patience.alone);
    match company {
        Company::Attended => asked + patience.attended,
        Company::AloneSince(since) => most.min(asked.max(since) + patience.alone),
    }
}

impl Actor {
    /// When the first request that waits has waited long enough; `None` while none does.
    pub(crate) fn patience_ends(&mut self) -> Option<Instant> {
        self.turn.as_ref().filter(|turn| turn.is_asking())?;
        let company = self.company();
        let ends = self.turn.as_ref()?.asking().map(|(_, asked, patience)| patience_ends(asked, patience, company));
        ends.min().map(|end| end.max(self.patient_until))
    }

    fn company(&mut self) -> Company {
        if self.ear.is_attended(&self.clerk.tip().head.workspace) {
            self.alone_since = None;
            return Company::Attended;
        }
        Company::AloneSince(*self.alone_since.get_or_insert_with(Instant::now))
    }

    /// Answers what has waited long enough.
    pub(crate) async fn lose_patience(&mut self) {
        self.clerk.settle().await;
        let (now, company) = (Instant::now(), self.company());
        let Some(turn) = &self.turn else { return };
        let overdue = turn.asking().filter(|(_, asked, patience)| patience_ends(*asked, patience, company) <= now);
        let overdue: Vec<(RequestId, Patience, Duration)> = overdue
            .map(|(request, asked, patience)| (request.clone(), patience.clone(), now.duration_since(asked)))
            .collect();
        for (request, patience, waited) in overdue {
            if !self.answer_for_nobody(&request, patience, waited, company).await {
                return;
            }
        }
    }

    /// `false` if the disk did not let it be written; the loop comes back to it.
    async fn answer_for_nobody(
        &mut self,
        request: &RequestId,
        patience: Patience,
        waited: Duration,
        company: Company,
    ) -> bool {
        let Some(ask) = self.clerk.tip().asks().find(|ask| ask.request() == request).cloned() else {
            // It was never told, so that nobody can have answered it either.
            self.turn.iter_mut().for_each(|turn| turn.forget(request));
            return true;
        };
        let reason = reason(waited, company);
        let (draft, chosen) = match &ask {
            Ask::Permission(ask) => {
                // What was not offered cannot be chosen.
                let offered = |option: &String| ask.options.iter().any(|offered| offered.id == *option);
                let option = patience.otherwise.filter(offered);
                let (request, reason) = (request.clone(), Some(reason));
                let answered =
                    PermissionAnswered { request, option: option.clone(), by: NOBODY.into(), reason: reason.clone() };
                (Draft::tolka(answered), option.map(|option| Chosen { option, reason }))
            }
            Ask::Question(_) => {
                let answered = QuestionAnswered { request: request.clone(), answers: None, by: NOBODY.into() };
                (Draft::tolka(answered), None)
            }
        };
        if let Err(error) = self.clerk.append(vec![draft]).await {
            tracing::warn!(session = %self.session, %error, "what nobody answered cannot be decided yet");
            // Not at once again: the disk may stay full for a while.
            self.patient_until = Instant::now() + RETRY;
            return false;
        }
        if let Some(turn) = &mut self.turn {
            match ask {
                Ask::Permission(_) => turn.permission_answered(request, chosen.clone()),
                Ask::Question(_) => turn.question_answered(request, None),
            }
        }
        true
    }
}

fn reason(waited: Duration, company: Company) -> String {
    let there = match company {
        Company::Attended => "Nobody answered",
        Company::AloneSince(_) => "Nobody was there to answer",
    };
    format!("{there} within {}, so it was decided by the settings.", words(waited))
}

fn words(waited: Duration) -> String {
    match waited.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_decides_how_long_a_request_waits() {
        let second = Duration::from_secs;
        let patience = Patience { alone: second(10), attended: second(100), otherwise: None };
        let asked = Instant::now();
        let ends = |company| patience_ends(asked, &patience, company).duration_since(asked);
        assert_eq!(ends(Company::Attended), second(100));
        assert_eq!(ends(Company::AloneSince(asked)), second(10));
        assert_eq!(ends(Company::AloneSince(asked - second(5))), second(10), "alone before it was asked");
        assert_eq!(ends(Company::AloneSince(asked + second(30))), second(40), "the last one left later");
        assert_eq!(ends(Company::AloneSince(asked + second(95))), second(100), "never longer than either time");
    }
}
