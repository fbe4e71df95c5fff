//! Answers to permissions and questions: from any client, and the first one counts.

use tolka_agent::Chosen;
use tolka_facts::event::{OptionKind, PermissionAnswered, PermissionAsked, QuestionAnswered};
use tolka_facts::{Ask, Draft, RequestId};
use tolka_journal::Mark;

use crate::SessionError;
use crate::actor::Actor;

/// An answer to a permission or a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// One of the options by its id.
    Option {
        id: String,
        reason: Option<String>,
    },
    /// By what it means, for families that know no ids.
    Kind {
        allow: bool,
        always: bool,
        reason: Option<String>,
    },
    Questions(Vec<Vec<String>>),
    RejectQuestions,
}

impl Actor {
    /// The first answer wins: whoever comes later learns that it was answered.
    pub(crate) async fn answer(&mut self, request: &RequestId, given: Answer, by: String) -> Result<(), SessionError> {
        let Some(ask) = self.clerk.tip().asks().find(|ask| ask.request() == request).cloned() else {
            let answered = self.clerk.journal().mark(&self.session, &Mark::Answer(request).to_string()).await?;
            let request = request.clone();
            return Err(match answered {
                Some(_) => SessionError::AlreadyAnswered(request),
                None => SessionError::NotAsked(request),
            });
        };
        match ask {
            Ask::Permission(ask) => {
                let (option, reason) = choose(&ask, given)?;
                let request = ask.request;
                let answered = PermissionAnswered {
                    request: request.clone(),
                    option: Some(option.clone()),
                    by,
                    reason: reason.clone(),
                };
                self.append(Draft::client(answered)).await?;
                let chosen = Chosen { option, reason };
                self.turn.iter_mut().for_each(|turn| turn.permission_answered(&request, Some(chosen.clone())));
            }
            Ask::Question(ask) => {
                let answers = match given {
                    Answer::Questions(answers) if answers.len() == ask.questions.len() => Some(answers),
                    Answer::Questions(answers) => {
                        let (given, asked) = (answers.len(), ask.questions.len());
                        return Err(SessionError::WrongAnswers { given, asked });
                    }
                    Answer::RejectQuestions | Answer::Kind { allow: false, .. } => None,
                    Answer::Option { .. } | Answer::Kind { .. } => {
                        return Err(SessionError::WrongAnswers { given: 0, asked: ask.questions.len() });
                    }
                };
                let request = ask.request;
                let answered = QuestionAnswered { request: request.clone(), answers: answers.clone(), by };
                self.append(Draft::client(answered)).await?;
                self.turn.iter_mut().for_each(|turn| turn.question_answered(&request, answers.clone()));
            }
        }
        Ok(())
    }
}

fn choose(ask: &PermissionAsked, given: Answer) -> Result<(String, Option<String>), SessionError> {
    let known = || ask.options.iter().map(|option| option.id.as_str()).collect::<Vec<_>>().join(", ");
    let by_kind = |wanted: [OptionKind; 2]| {
        let find = |kind| ask.options.iter().find(|option| option.kind == kind);
        wanted.into_iter().find_map(find).map(|option| option.id.clone())
    };
    match given {
        Answer::Option { id, reason } if ask.options.iter().any(|option| option.id == id) => Ok((id, reason)),
        Answer::Option { id, .. } => Err(SessionError::NoSuchOption { given: id, known: known() }),
        Answer::Kind { allow, always, reason } => {
            use OptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
            let wanted = match (allow, always) {
                (true, false) => [AllowOnce, AllowAlways],
                (true, true) => [AllowAlways, AllowOnce],
                (false, false) => [RejectOnce, RejectAlways],
                (false, true) => [RejectAlways, RejectOnce],
            };
            let id = by_kind(wanted);
            let given = if allow { "allow" } else { "reject" }.to_owned();
            Ok((id.ok_or_else(|| SessionError::NoSuchOption { given, known: known() })?, reason))
        }
        Answer::Questions(_) | Answer::RejectQuestions => {
            Err(SessionError::NoSuchOption { given: "answers to questions".to_owned(), known: known() })
        }
    }
}
