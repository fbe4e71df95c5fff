//! A task that needs several times what the model takes, with a provider that counts what it is sent and refuses what is too
//! long: it is done, nothing is done or asked twice, and of no call the result is lost. And in every dialect, how summaries
//! are told: one in the middle of a turn, one that a person wants, and one that fails.

mod asked;

use serde_json::{Value, json};
use tolka_scripted::{Answer, Beat, Counts, Script, When};

use super::normal::Normal;
use super::stage::{Stage, Talk, Wire};
use super::story::{assert_same, every_stream_is_what_the_facts_make_it, golden};
use crate::http::{get, post};

/// Tokens that the provider takes, and the configuration knows of.
const CONTEXT: u64 = 16_000;
/// Each is a file of some four thousand tokens.
const FILES: usize = 15;

/// Summaries are asked for in these words.
fn summary() -> When {
    When { system: Some("summarising".to_owned()), ..When::default() }
}

fn mark(file: usize) -> String {
    format!("The secret of file {file} is {}.", file * file + 1000)
}

fn write_files(stage: &Stage) {
    for file in 1..=FILES {
        let filler = format!("Nothing of interest is on this line of file {file}.\n").repeat(300);
        let text = format!("{filler}{}\n", mark(file));
        std::fs::write(stage.house.workspace().join(format!("{file}.txt")), text).unwrap();
    }
}

fn long_task() -> Script {
    let read = |file: usize| Answer::call("read", json!({ "filePath": format!("{file}.txt") }));
    let mut answers: Vec<Answer> = (1..=FILES).map(read).collect();
    answers.push(Answer::text("All are read."));
    answers.push(Answer::text("Some files on secrets were read.").when(summary()).for_ever());
    Script { context: Some(CONTEXT), ..Script::of(answers) }
}

/// A request of the provider, whether it is for a summary, and whether it was too long.
struct Sent {
    text: String,
    is_summary: bool,
    was_refused: bool,
}

fn sent(stage: &Stage) -> Vec<Sent> {
    let requests = stage.provider.requests();
    let wrong: Vec<_> = requests.iter().filter_map(|request| request.refused.clone()).collect();
    assert_eq!(wrong, Vec::<String>::new());
    let sent = |request: tolka_scripted::Received| {
        let text = request.body.to_string();
        Sent { is_summary: text.contains("summarising"), was_refused: request.answer.is_none(), text }
    };
    requests.into_iter().map(sent).collect()
}

/// What is told of a long task, and the provider's side of it.
fn play_long_task(wire: Wire, sizes: &str) -> (usize, usize) {
    let stage = Stage::sized(wire, long_task(), sizes);
    write_files(&stage);
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    talk.prompt("Find every secret; forget none.");
    let ended = talk.until_type("turn_ended");
    assert_eq!(ended["data"]["stop"], "end_turn", "{:#?}", talk.told("failed"));
    assert_eq!(talk.said(), "All are read.");
    let compactions = talk.told("compaction_ended");
    assert!(compactions.iter().all(|ended| ended["error"].is_null()), "{compactions:#?}");

    // Each call was made, and run, once.
    let is_end = |change: &&&Value| change["status"] == "completed";
    assert_eq!(talk.told("tool_changed").iter().filter(is_end).count(), FILES);
    let sent = sent(&stage);
    let refused = sent.iter().filter(|sent| sent.was_refused).count();
    let steps: Vec<&Sent> = sent.iter().filter(|sent| !sent.is_summary && !sent.was_refused).collect();
    assert_eq!(steps.len(), FILES + 1);
    for step in &steps {
        assert_eq!(step.text.matches("Find every secret; forget none.").count(), 1, "the task is known, and once");
    }
    // The model was sent far more than it takes, and every result before it went on.
    let bytes =
        (1..=FILES).map(|file| std::fs::metadata(stage.house.workspace().join(format!("{file}.txt"))).unwrap().len());
    assert!(bytes.sum::<u64>() / 4 > 3 * CONTEXT);
    for file in 1..=FILES {
        let mark = mark(file);
        let next = steps.get(file).unwrap();
        let is_sent = next.text.contains(&mark);
        assert!(is_sent || refused > 0, "where it is known how much fits, the next step is sent the result: {mark}");
        // Later it is sent on, or was summarised.
        for later in &steps[file..] {
            let at = sent.iter().position(|sent| std::ptr::eq(sent, *later)).unwrap();
            let is_summarised = sent[..at].iter().any(|sent| sent.is_summary && sent.text.contains(&mark));
            assert!(later.text.contains(&mark) || is_summarised, "{mark}");
        }
    }
    every_stream_is_what_the_facts_make_it(&talk, &server);
    // What was summarised stays readable.
    let view = get(server.address, &format!("/v1/sessions/{}/view", talk.session)).expect(200).to_string();
    (1..=FILES).for_each(|file| assert!(view.contains(&mark(file)), "{file}"));
    assert!(view.contains("Some files on secrets were read."));
    let messages = get(server.address, &format!("/session/{}/message", talk.session)).expect(200);
    let messages = messages.as_array().unwrap();
    let summaries = messages.iter().filter(|message| message["info"]["summary"] == true).count();
    assert_eq!(summaries, compactions.len());
    assert_eq!(messages.len(), 1 + (FILES + 1) + refused_steps(&talk) + 2 * summaries);
    (compactions.len(), refused)
}

/// Steps that came to nothing because the conversation did not fit.
fn refused_steps(talk: &Talk) -> usize {
    talk.told("step_ended").iter().filter(|ended| ended["finish"] == "error").count()
}

#[test]
fn a_task_of_three_times_what_the_model_takes_is_done_and_nothing_is_lost() {
    for wire in [Wire::OpenAi, Wire::Anthropic] {
        let sizes = format!("context = {CONTEXT}\noutput = 2000");
        let (compactions, refused) = play_long_task(wire, &sizes);
        assert!(compactions >= 3, "{compactions} summaries");
        assert_eq!(refused, 0, "it is known how much fits");
    }
}

#[test]
fn a_task_that_is_too_long_is_done_though_nobody_knows_what_the_model_takes() {
    let (compactions, refused) = play_long_task(Wire::OpenAi, "");
    assert!(compactions >= 3 && refused >= compactions, "{compactions} summaries, {refused} refused");
}

/// Three files, of which two are summarised; a summary that a person wants; one that fails.
fn short_task() -> Script {
    let used = |answer: Answer, input: u64| Answer {
        usage: Some(Counts { input, output: 20, ..Counts::default() }),
        ..answer
    };
    let read = |name: &str, input: u64| used(Answer::call("read", json!({ "filePath": name })), input);
    let summed = |text: &str| used(Answer::text(text).when(summary()), 2_000);
    let refused = Answer { body: Some(json!({ "error": { "message": "not today" } })), ..Answer::status(400) };
    let script = Script::of([
        read("one.txt", 3_000),
        read("two.txt", 5_000),
        read("three.txt", 7_600),
        used(Answer::beats([Beat::Text("The files are read.".to_owned())]), 3_500),
        used(Answer::text("It was three."), 1_500),
        summed("One and two were read: they are full of ones and twos. Three is being read."),
        summed("Three files were read, and the person was told so."),
        refused.when(summary()),
    ]);
    Script { piece: Some(24), ..script }
}

fn tell_short_task(wire: Wire) -> (Stage, Talk, crate::server::Server) {
    let stage = Stage::sized(wire, short_task(), "context = 8000\noutput = 1000");
    for (name, word) in [("one", "1 "), ("two", "2 "), ("three", "3 ")] {
        let line = format!("{}\n", word.repeat(40).trim_end());
        std::fs::write(stage.house.workspace().join(format!("{name}.txt")), line.repeat(50)).unwrap();
    }
    let server = stage.serve();
    let mut talk = Talk::begin(server.address);
    let compact = |talk: &Talk, body: &Value| {
        post(server.address, &format!("/v1/sessions/{}/compact", talk.session), body).expect(202);
    };
    talk.prompt("Read one, two and three.");
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    compact(&talk, &json!({ "instructions": "Heed the numbers." }));
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    talk.prompt("Which was the last?");
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "end_turn");
    compact(&talk, &json!({}));
    assert_eq!(talk.until_type("turn_ended")["data"]["stop"], "failed");
    let errors: Vec<bool> = talk.told("compaction_ended").iter().map(|ended| ended["error"].is_string()).collect();
    assert_eq!(errors, [false, false, true]);
    (stage, talk, server)
}

/// How much is sent after a summary is a guess, in which the length of the folder's name has its part.
fn told(stage: &Stage, talk: &Talk) -> String {
    let mut facts = talk.facts.clone();
    for at in 1..facts.len() {
        if facts[at - 1]["type"] == "compaction_ended" && facts[at]["type"] == "usage_set" {
            facts[at]["data"]["used"] = json!(3_000);
        }
    }
    let workspace = stage.house.workspace().canonicalize().unwrap();
    Normal::default().saying(workspace.to_str().unwrap(), "/work/files").facts(&facts)
}

#[test]
fn summaries_are_told_alike_on_both_wires_and_in_every_dialect() {
    let (stage, talk, server) = tell_short_task(Wire::OpenAi);
    every_stream_is_what_the_facts_make_it(&talk, &server);
    let facts = told(&stage, &talk);
    drop(server);
    let (other, talk, _server) = tell_short_task(Wire::Anthropic);
    assert_same(&facts, &told(&other, &talk));
    golden(&stage.house, "native-compaction", &facts);
}
