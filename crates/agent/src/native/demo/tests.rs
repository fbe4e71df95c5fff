use futures_util::StreamExt;
use serde_json::{Value, json};
use tolka_facts::Json;

use super::super::model::{Input, Message, Output, Returned, ToolSpec};
use super::*;

/// A conversation with the script, in which the test is the hands.
struct Talk {
    request: Request,
    said: String,
    plays: usize,
}

#[derive(Debug, Clone)]
struct Wanted {
    id: String,
    name: String,
    input: Value,
}

impl Talk {
    fn offered(tools: &[&str]) -> Self {
        let tool = |name: &&str| ToolSpec { name: (*name).to_owned(), description: String::new(), schema: json!({}) };
        let request = Request { tools: tools.iter().map(tool).collect(), ..Request::default() };
        Talk { request, said: String::new(), plays: 0 }
    }

    fn prompt(&mut self) {
        self.plays = 0;
        self.request.messages.push(Message::User(vec![Input::Text("whatever".to_owned())]).into());
    }

    /// One step; its calls.
    async fn step(&mut self) -> Vec<Wanted> {
        let demo = Demo::new(Pace::AtOnce);
        let pieces: Vec<_> = demo.ask(self.request.clone()).map(Result::unwrap).collect().await;
        let (mut calls, mut outputs, mut thought, mut text) =
            (Vec::<Wanted>::new(), Vec::new(), String::new(), String::new());
        let mut inputs: Vec<String> = Vec::new();
        let mut ended = None;
        for piece in pieces {
            assert!(ended.is_none(), "something comes after the end");
            match piece {
                Piece::Text(more) => text += &more,
                Piece::Thought(more) => thought += &more,
                Piece::ThoughtEnded { .. } => {}
                Piece::CallBegan { id, name, slot } => {
                    assert_eq!(slot, calls.len());
                    calls.push(Wanted { id, name, input: Value::Null });
                    inputs.push(String::new());
                }
                Piece::CallInput { slot, text } => inputs[slot] += &text,
                Piece::Ended { finish, is_refusal, usage } => ended = Some((finish, is_refusal, usage.unwrap())),
            }
        }
        let (finish, is_refusal, usage) = ended.unwrap();
        assert_eq!(finish, if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls });
        assert!(!is_refusal && usage.output > 0);
        outputs.push(Output::Text(text.clone()));
        for (wanted, input) in calls.iter_mut().zip(&inputs) {
            wanted.input = serde_json::from_str(input).unwrap();
            let input = Json::parse(input).unwrap();
            outputs.push(Output::Call { id: wanted.id.clone(), name: wanted.name.clone(), input });
        }
        self.said += &text;
        self.plays += 1;
        assert!(self.plays < 20, "it does not come to an end: {}", self.said);
        self.request.messages.push(Message::Model(outputs).into());
        calls
    }

    /// Goes on until nothing is called for; each call is answered by `hands`: the words, and whether it went well.
    async fn turn(&mut self, mut hands: impl FnMut(&Wanted) -> (String, bool)) -> Vec<Wanted> {
        let mut all = Vec::new();
        loop {
            let calls = self.step().await;
            if calls.is_empty() {
                return all;
            }
            let returned = calls.iter().map(|call| {
                let (words, went_well) = hands(call);
                Returned { call: call.id.clone(), content: vec![Input::Text(words)], is_error: !went_well }
            });
            let returned = returned.collect();
            self.request.messages.push(Message::Results(returned).into());
            all.extend(calls);
        }
    }
}

const TOOLS: [&str; 8] = ["todowrite", "glob", "grep", "read", "write", "edit", "bash", "artifact"];

fn names(calls: &[Wanted]) -> Vec<&str> {
    calls.iter().map(|call| call.name.as_str()).collect()
}

/// Hands that keep one file.
fn keep(file: &mut Option<String>, call: &Wanted) -> (String, bool) {
    let text = |field: &str| call.input[field].as_str().unwrap_or_default().to_owned();
    match call.name.as_str() {
        "glob" => (file.as_ref().map_or("No files found", |_| "/w/todo/index.html").to_owned(), true),
        "read" => (file.clone().unwrap_or_default(), file.is_some()),
        "write" => {
            *file = Some(text("content"));
            ("Wrote file successfully.".to_owned(), true)
        }
        "edit" => {
            let (old, new) = (text("oldString"), text("newString"));
            let before = file.clone().unwrap();
            if before.matches(&old).count() != 1 {
                return ("oldString not found".to_owned(), false);
            }
            *file = Some(before.replace(&old, &new));
            ("Edited.".to_owned(), true)
        }
        "bash" if text("command").starts_with("ls") => ("exit code 2".to_owned(), false),
        _ => ("done".to_owned(), true),
    }
}

#[tokio::test]
async fn everything_appears_and_the_app_is_whole() {
    let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
    talk.prompt();
    let calls = talk.turn(|call| keep(&mut file, call)).await;
    assert_eq!(
        names(&calls),
        [
            "todowrite",
            "glob",
            "grep",
            "write",
            "read",
            "todowrite",
            "edit",
            "todowrite",
            "bash",
            "bash",
            "artifact",
            "todowrite"
        ]
    );
    assert_eq!(file.as_deref(), Some(include_str!("todo.html")));
    assert!(talk.said.starts_with("This is Tolka's demo: a fixed script, not a model"), "{}", talk.said);
    assert!(talk.said.contains("Done: A to-do app in one file, `todo/index.html`."), "{}", talk.said);
    let ids: std::collections::HashSet<_> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), calls.len(), "ids are not used twice");
    let last = &calls.last().unwrap().input["todos"];
    assert!(last.as_array().unwrap().iter().all(|todo| todo["status"] == "completed"));
}

#[tokio::test]
async fn a_second_prompt_finds_the_first_ones_work() {
    let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
    for (_, colour) in words::COLOURS.iter().chain(&words::COLOURS[..1]) {
        talk.prompt();
        let calls = talk.turn(|call| keep(&mut file, call)).await;
        assert!(file.as_ref().unwrap().contains(&format!("--accent: {colour};")), "{colour}");
        assert!(names(&calls).contains(&"edit") && calls.len() >= 9);
    }
    assert_eq!(file.as_deref(), Some(include_str!("todo.html")), "the colours go round");
    assert_eq!(talk.request.messages.iter().filter(|message| matches!(***message, Message::User(_))).count(), 5);
}

#[tokio::test]
async fn a_strangers_file_is_left_alone() {
    let mut talk = Talk::offered(&TOOLS);
    talk.prompt();
    let mut stranger = Some("<h1>mine</h1>".to_owned());
    let calls = talk
        .turn(|call| match call.name.as_str() {
            "write" => ("written".to_owned(), true),
            "edit" => ("edited".to_owned(), true),
            _ => keep(&mut stranger, call),
        })
        .await;
    let touched: Vec<_> = calls.iter().filter(|call| matches!(call.name.as_str(), "write" | "edit")).collect();
    assert_eq!(touched.len(), 2);
    assert!(touched.iter().all(|call| call.input["filePath"] == "todo-2/index.html"), "{touched:?}");
    assert!(talk.said.contains("`todo-2/index.html`"));
}

#[tokio::test]
async fn what_fails_is_said_and_the_turn_goes_on_or_ends() {
    // Nothing can be written.
    let mut talk = Talk::offered(&TOOLS);
    talk.prompt();
    let calls = talk.turn(|call| (format!("{}: disk full", call.name), call.name != "write")).await;
    assert_eq!(calls.iter().filter(|call| call.name == "write").count(), 3);
    assert!(talk.said.ends_with("What I was told: write: disk full"), "{}", talk.said);

    // A person does not want the file.
    let mut talk = Talk::offered(&TOOLS);
    talk.prompt();
    let refused = "The user rejected permission to use this specific tool call with the following feedback: no";
    let calls = talk.turn(|call| (refused.to_owned(), call.name != "write")).await;
    assert_eq!(names(&calls), ["todowrite", "glob", "grep", "write"]);
    assert!(talk.said.ends_with("Nothing was changed."), "{}", talk.said);

    // A person does not want the command, and says why.
    let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
    talk.prompt();
    let calls = talk
        .turn(|call| match call.name.as_str() {
            "bash" => ("The user rejected permission: not today".to_owned(), false),
            _ => keep(&mut file, call),
        })
        .await;
    assert!(
        talk.said.contains("All right, not that command. The user rejected permission: not today."),
        "{}",
        talk.said
    );
    assert!(names(&calls).ends_with(&["artifact", "todowrite"]) && talk.said.contains("Done:"));

    // Everything fails.
    let mut talk = Talk::offered(&TOOLS);
    talk.prompt();
    talk.turn(|_| ("no".to_owned(), false)).await;
    assert!(talk.said.contains("I could not write the file"), "{}", talk.said);
}

#[tokio::test]
async fn an_edit_that_finds_nothing_is_no_end() {
    let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
    talk.prompt();
    talk.turn(|call| match call.name.as_str() {
        "edit" => ("oldString not found in the file".to_owned(), false),
        _ => keep(&mut file, call),
    })
    .await;
    assert!(talk.said.contains("The edit did not go through: oldString not found in the file."), "{}", talk.said);
    assert!(talk.said.contains("with a line that still needs mending"), "{}", talk.said);
}

#[tokio::test]
async fn a_word_in_the_middle_is_heard() {
    let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
    talk.prompt();
    let calls = talk.step().await;
    let returned = calls.iter().map(|call| Returned { call: call.id.clone(), content: Vec::new(), is_error: false });
    let returned = returned.collect();
    talk.request.messages.push(Message::Results(returned).into());
    talk.prompt();
    talk.turn(|call| keep(&mut file, call)).await;
    assert!(talk.said.contains("You said something while I worked."), "{}", talk.said);
    assert!(file.is_some() && talk.said.contains("Done:"));
}

#[tokio::test]
async fn in_plan_mode_it_only_looks() {
    let mut talk = Talk::offered(&["todowrite", "glob", "grep", "read", "bash"]);
    talk.prompt();
    let calls = talk.turn(|_| ("No files found".to_owned(), true)).await;
    assert_eq!(names(&calls), ["todowrite", "glob", "grep"]);
    assert!(talk.said.contains("In this mode I change nothing"), "{}", talk.said);
}

#[tokio::test(start_paused = true)]
async fn it_takes_its_time_unless_told_otherwise() {
    let timed = async |pace: Pace| {
        let (mut talk, mut file) = (Talk::offered(&TOOLS), None);
        talk.prompt();
        talk.turn(|call| keep(&mut file, call)).await;
        let began = tokio::time::Instant::now();
        for at in 0..talk.request.messages.len() {
            if matches!(*talk.request.messages[at], Message::Model(_)) {
                let request = Request { messages: talk.request.messages[..at].to_vec(), ..talk.request.clone() };
                let _ = Demo::new(pace).ask(request).collect::<Vec<_>>().await;
            }
        }
        began.elapsed()
    };
    let took = timed(Pace::Recorded).await;
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(15), "{took:?}");
    let took = timed(Pace::Times(10.0)).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(timed(Pace::AtOnce).await, Duration::ZERO);
}
