//! A recording of our own facts: a turn of the demo, played again.

use std::time::Duration;

use tokio::time::Instant;
use tolka_agent::{Agent, Pace};
use tolka_facts::event::Stop;
use tolka_facts::{Event, Part, ToolContent, ToolStatus};

use crate::check_steps;
use crate::hall::{Hall, Person, own};

#[tokio::test(start_paused = true)]
async fn shows_everything_in_a_quarter_of_a_minute() {
    let demo = own("demo", Pace::Recorded);
    assert_eq!((demo.name(), demo.model().provider.as_str(), demo.model().id.as_str()), ("demo", "demo", "demo"));
    let mut hall = Hall::open(&demo, 0);
    let began = Instant::now();
    let ended = hall.turn(Person::Allows).await;
    assert_eq!(ended.stop, Stop::EndTurn);
    let took = began.elapsed();
    assert!(took > Duration::from_secs(10) && took < Duration::from_secs(15), "{took:?}");
    assert!((120..=210).contains(&hall.facts.len()), "{}", hall.facts.len());
    check_steps(&hall, "demo");
    assert_eq!(ended.usage, Some(hall.view.tip.head.tokens));

    let transcript = hall.transcript();
    assert!(transcript[0].starts_with("- thinks The request could be anything"), "{transcript:#?}");
    assert!(transcript[1].starts_with("  says This is Tolka's demo: a fixed script, not a model"), "{transcript:#?}");
    let parts = hall.view.messages.iter().flat_map(|message| &message.parts);
    let tools = parts.filter_map(|part| match part {
        Part::Tool(tool) => Some((tool.name.as_deref().unwrap_or_default(), tool.status)),
        _ => None,
    });
    let names = [
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
        "todowrite",
    ];
    assert_eq!(tools.collect::<Vec<_>>(), names.map(|name| (name, ToolStatus::Completed)));
    let told = |name: &str| hall.facts.iter().filter(|fact| fact.event.name() == name).count();
    assert!(told("output_appended") >= 2 && told("plan_set") >= 4 && told("usage_set") >= 4);
    assert!(told("file_changed") == 2 && told("input_appended") > 30);
    assert!(hall.view.tip.plan.iter().all(|entry| entry.status == tolka_facts::event::PlanStatus::Completed));
}

#[tokio::test(start_paused = true)]
async fn its_pieces_fit_together() {
    let mut hall = Hall::open(&own("demo", Pace::Recorded), 0);
    hall.turn(Person::Allows).await;
    let contents = hall.facts.iter().filter_map(|fact| match &fact.event {
        Event::ToolChanged(e) => e.content.as_ref(),
        _ => None,
    });
    let diffs = contents.flatten().filter_map(|content| match content {
        ToolContent::Diff { old, new, .. } => Some((old.as_ref().map(|old| old.head()), new.head())),
        _ => None,
    });
    let diffs: Vec<_> = diffs.collect();
    let [(Some(""), written), (Some(before), after)] = diffs[..] else { panic!("{} diffs", diffs.len()) };
    assert_eq!(written, before);
    assert_eq!(before.replace("label.innerHTML", "label.textContent"), after);
    assert_eq!(hall.view.artifacts.iter().map(|artifact| artifact.size).collect::<Vec<_>>(), [after.len() as u64]);
    for part in hall.view.messages.iter().flat_map(|message| &message.parts) {
        if let Part::Tool(tool) = part
            && !tool.live_output.is_empty()
        {
            let output = tool.output.as_ref().unwrap().value();
            assert_eq!(output["output"].as_str(), Some(tool.live_output.to_string().as_str()));
            assert_eq!(output["metadata"]["output"], output["output"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn its_command_is_yours_to_refuse() {
    let mut hall = Hall::open(&own("demo", Pace::Recorded), 0);
    assert_eq!(hall.turn(Person::Rejects).await.stop, Stop::EndTurn);
    let transcript = hall.transcript();
    let measured = |line: &&String| line.contains("`Measure the finished file`");
    let command = transcript.iter().find(measured).unwrap();
    assert!(command.ends_with("because \"The user rejected permission to use this specific tool call.\""), "{command}");
    assert!(!command.contains("live"));
    hall.turn(Person::Allows).await;
    let again = hall.transcript();
    let again = again.iter().rfind(measured).unwrap();
    assert!(again.contains("~2 bash Execute Completed"), "{again}");
    check_steps(&hall, "demo");
}
