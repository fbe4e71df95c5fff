//! Tools that are for the person: the plan, questions, artifacts.

use serde_json::json;
use tolka_facts::event::{ArtifactKind, PlanEntry, PlanStatus, Priority};
use tolka_facts::{Event, ToolStatus};

use crate::hall::{Hall, Person};

#[tokio::test]
async fn a_plan_is_set() {
    let mut hall = Hall::open();
    let todos = json!([
        { "content": "Look", "status": "completed", "priority": "high" },
        { "content": "Write", "status": "in-progress", "activeForm": "Writing" },
        "Check",
    ]);
    let ended = hall.call("todowrite", json!({ "todos": todos.to_string() })).await;
    let told = json!([
        { "content": "Look", "status": "completed", "priority": "high" },
        { "content": "Write", "status": "in_progress", "priority": "medium" },
        { "content": "Check", "status": "pending", "priority": "medium" },
    ]);
    let text = serde_json::to_string_pretty(&told).unwrap();
    let output = json!({ "output": text, "metadata": { "todos": told, "truncated": false } });
    assert_eq!(ended.went_well().output(), output);
    assert_eq!(ended.tool.title, "2 todos");
    let plans = hall.told().of(|event| match event {
        Event::PlanSet(plan) => Some(plan.entries.clone()),
        _ => None,
    });
    let entry = |content: &str, status, priority| PlanEntry { content: content.to_owned(), status, priority };
    assert_eq!(
        plans,
        [vec![
            entry("Look", PlanStatus::Completed, Priority::High),
            entry("Write", PlanStatus::InProgress, Priority::Medium),
            entry("Check", PlanStatus::Pending, Priority::Medium),
        ]]
    );
    hall.call("todowrite", json!({ "todos": [{ "status": "pending" }] }))
        .await
        .failed("each of `todos` has a `content`");
    hall.call("todowrite", json!({ "todos": "soon" })).await.failed("`todos` is a list");
    hall.call("todowrite", json!({})).await.failed("`todos` is missing");
}

#[tokio::test]
async fn a_question_is_asked_and_its_answer_goes_back() {
    let mut hall = Hall::open();
    hall.person = Person::Answers(vec![vec!["Red".to_owned()], vec![]]);
    let input = json!({ "questions": [
        { "question": "Which colour?", "header": "Colour", "options": [{ "label": "Red", "description": "Warm" }, "Blue"] },
        { "question": "Anything else to say about it all?", "multiple": true },
    ] });
    let ended = hall.call("question", input).await;
    assert_eq!(
        ended.went_well().said(),
        "User has answered your questions: \"Which colour?\"=\"Red\", \"Anything else to say about it all?\"=\"Unanswered\". \
         You can now continue with the user's answers in mind."
    );
    assert_eq!(ended.output()["metadata"]["answers"], json!([["Red"], []]));
    let asked = hall.questions().remove(0);
    assert_eq!(asked.call, Some(ended.tool.call.clone()));
    assert_eq!((asked.questions[0].options.len(), asked.questions[0].options[1].label.as_str()), (2, "Blue"));
    assert_eq!(
        (asked.questions[1].header.as_str(), asked.questions[1].multiple),
        ("Anything else to say about it", true)
    );
    hall.person = Person::IsAway;
    let ended = hall.call("question", json!({ "question": "Well?" })).await;
    ended.failed("The user did not answer");
    assert!(!ended.outcome.ends_turn);
    hall.call("question", json!({ "questions": [] })).await.failed("from 1 to 20");
}

#[tokio::test]
async fn an_artifact_is_shown() {
    let mut hall = Hall::open();
    hall.put("todo/index.html", "<h1>Todo</h1>");
    let ended = hall.call("artifact", json!({ "path": hall.absolute("todo"), "name": "My todos" })).await;
    assert_eq!(ended.went_well().said(), "The user is shown My todos (todo/).");
    let saved = hall.told().of(|event| match event {
        Event::ArtifactSaved(saved) => Some(saved.clone()),
        _ => None,
    });
    assert_eq!(
        (saved[0].kind, saved[0].name.as_str(), saved[0].path.as_str()),
        (ArtifactKind::WebApp, "My todos", "todo/")
    );
    assert_eq!(ended.output()["metadata"]["artifact"]["kind"], "web_app");
    let names: Vec<_> = hall.told().events.iter().map(Event::name).collect();
    assert_eq!(names, ["tool_changed", "artifact_saved", "tool_changed"]);
    hall.call("artifact", json!({ "filePath": "none" })).await.failed("nothing is at none");
    hall.call("artifact", json!({ "filePath": "/etc/hosts" })).await.failed("leads out of the workspace");
    hall.call("artifact", json!({ "filePath": "todo", "kind": "film" })).await.failed("there is no kind `film`");
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_somebody_is_asked_ends_the_call() {
    let mut hall = Hall::open();
    hall.person = Person::Cancels;
    let ended = hall.call("bash", json!({ "command": "make" })).await;
    assert_eq!(ended.tool.status, ToolStatus::Cancelled);
    assert!(ended.outcome.is_error && !ended.outcome.ends_turn);
}
