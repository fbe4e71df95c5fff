//! `question`: the person is asked, and the answers go back to the model.

use serde_json::{Value, json};
use tolka_facts::Time;
use tolka_facts::event::{Question, QuestionAsked, QuestionOption};

use super::act::{Act, Done, Stop};
use super::ask::Want;
use super::field::{Fields, QUESTIONS};
use super::read::fields as map;

/// Clients show it on a tab.
const HEADER: usize = 30;

/// Nobody answers more at once.
const MOST: usize = 20;

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let questions: Vec<Question> = match fields.words(&["question"]) {
        Some(question) => vec![plain(question)],
        None => fields.list(QUESTIONS)?.iter().map(read).collect::<Result<_, _>>()?,
    };
    if questions.is_empty() || questions.len() > MOST {
        return Err(Stop::Failed(format!("`questions` has from 1 to {MOST} of them")));
    }
    act.leave(Want::look("question", "*"), &[]).await?;
    let title = match questions.len() {
        1 => "Asked 1 question".to_owned(),
        count => format!("Asked {count} questions"),
    };
    act.running(&title, &[]).await?;
    let teller = act.scene.teller;
    let asked = QuestionAsked {
        request: teller.ids().question(Time::now()),
        call: Some(act.call.id.clone()),
        questions: questions.clone(),
    };
    let answers = tokio::select! {
        answers = teller.ask_question(asked, act.tools.settings.patience.clone()) => answers?,
        () = act.scene.cancel.fired() => return Err(Stop::Cancelled(None)),
    };
    let Some(answers) = answers else {
        return Err(match act.scene.cancel.is_fired() {
            true => Stop::Cancelled(None),
            false => Stop::failed(
                "The user did not answer: the question was dismissed, or nobody was there. Go on as seems best, and say \
                 what you took for granted.",
            ),
        });
    };
    let answered = |(at, question): (usize, &Question)| {
        let answer = answers.get(at).filter(|answer| !answer.is_empty()).map(|answer| answer.join(", "));
        format!("\"{}\"=\"{}\"", question.question, answer.as_deref().unwrap_or("Unanswered"))
    };
    let told: Vec<String> = questions.iter().enumerate().map(answered).collect();
    let output = format!(
        "User has answered your questions: {}. You can now continue with the user's answers in mind.",
        told.join(", ")
    );
    Ok(Done { title, output, metadata: map(json!({ "answers": answers, "truncated": false })), ..Done::default() })
}

fn plain(question: String) -> Question {
    let header = question.chars().take(HEADER).collect::<String>().trim_end().to_owned();
    Question { header, question, options: Vec::new(), multiple: false }
}

fn read(item: &Value) -> Result<Question, Stop> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().trim().to_owned();
    let question = item.as_str().map_or_else(|| text(item, "question"), str::to_owned);
    if question.is_empty() {
        return Err(Stop::failed("each of `questions` has a `question`"));
    }
    let option = |item: &Value| QuestionOption {
        label: item.as_str().map_or_else(|| text(item, "label"), str::to_owned),
        description: text(item, "description"),
    };
    let mut asked = plain(question);
    let header = text(item, "header");
    if !header.is_empty() {
        asked.header = header.chars().take(HEADER).collect();
    }
    asked.options = item["options"].as_array().into_iter().flatten().map(option).collect();
    asked.options.retain(|option| !option.label.is_empty());
    asked.multiple = item["multiple"].as_bool() == Some(true);
    Ok(asked)
}
