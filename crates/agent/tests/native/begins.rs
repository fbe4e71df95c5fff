//! What a turn begins with: the model, the system prompt, the title, what came with the prompt.

use std::sync::Arc;

use serde_json::json;
use tolka_agent::native::model::{Input, Message, Model};
use tolka_agent::native::settings::Titles;
use tolka_agent::{Agent, UNNAMED, native::Native};
use tolka_facts::event::{Model as ModelName, Stop};
use tolka_facts::{Block, Event, Json};

use crate::hall::{Act, Hall};
use crate::script::{Line, Script, ends, text};

fn titles(hall: &Hall) -> Vec<String> {
    let title = |fact: tolka_facts::Fact| match fact.event {
        Event::SessionChanged(changed) => changed.title,
        _ => None,
    };
    hall.facts().into_iter().filter_map(title).collect()
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_named_is_called_by_its_prompt() {
    let mut hall = Hall::open(vec![Script::new(Vec::new())]);
    hall.say("Named already").await;
    assert_eq!(titles(&hall), [""; 0]);
    hall.title = UNNAMED.to_owned();
    hall.say("Fix the tests\nplease").await;
    assert_eq!(titles(&hall), ["Fix the tests"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_gives_the_title_and_never_delays_the_turn() {
    // The title is asked for first: the task that does it starts while the folder's instructions are read.
    for (title, expected) in [
        (vec![text("\"Tests, "), text("fixed\"\n"), ends()], vec!["Fix them", "Tests, fixed"]),
        (vec![Line::Hangs], vec!["Fix them"]),
        (vec![Line::Fails(tolka_agent::native::model::ModelErrorKind::Auth)], vec!["Fix them"]),
    ] {
        let model = Script::titling(title, vec![vec![text("Yes."), ends()]]);
        let mut hall = Hall::open(vec![model.clone()]);
        hall.settings.titles = Titles::Model;
        hall.title = UNNAMED.to_owned();
        assert_eq!(hall.say("Fix them").await.stop, Stop::EndTurn);
        model.titled().await;
        hall.title = "Fix them".to_owned();
        assert_eq!(hall.say("More").await.stop, Stop::EndTurn);
        assert_eq!(titles(&hall), expected);
    }
}

/// What the title took is in the usage of the turn that tells it, and in what the session costs.
#[tokio::test(start_paused = true)]
async fn a_title_is_paid_for() {
    let one = 125e-6;
    for (is_renamed, title) in [(false, "Tests, fixed"), (true, "Mine")] {
        let model = Script::titling(vec![text("Tests, fixed"), ends()], vec![vec![text("Yes."), ends()]]);
        let mut hall = Hall::open(vec![model.clone()]);
        hall.settings.titles = Titles::Model;
        hall.title = UNNAMED.to_owned();
        let first = hall.say("Fix them").await;
        model.titled().await;
        hall.title = if is_renamed { title.to_owned() } else { "Fix them".to_owned() };
        let second = hall.say("More").await;
        let inputs = [first, second].map(|ended| (ended.usage.unwrap().input, ended.cost.unwrap()));
        assert_eq!(inputs.map(|(input, _)| input).iter().sum::<u64>(), 300, "two steps and a title: {inputs:?}");
        assert!((inputs.iter().map(|(_, cost)| cost).sum::<f64>() - 3.0 * one).abs() < 1e-12, "{inputs:?}");
        let cost = hall.memory.view().tip.head.cost.unwrap().amount;
        assert!((cost - 3.0 * one).abs() < 1e-12, "{cost}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_folder_and_the_configuration_have_a_word() {
    let model = Script::new(Vec::new());
    let mut hall = Hall::open(vec![model.clone()]);
    let folder = hall.folder.path().to_owned();
    std::fs::write(folder.join("CLAUDE.md"), "Not this one.").unwrap();
    std::fs::write(folder.join("AGENTS.md"), "Use tabs.").unwrap();
    std::fs::create_dir(folder.join(".git")).unwrap();
    hall.settings.instructions = Some("Be kind.".to_owned());
    hall.say("Hi").await;
    let system = model.asked()[0].system.clone();
    for words in ["Use tabs.", "Be kind.", "in a git repository", folder.to_str().unwrap()] {
        assert!(system.contains(words), "{words}: {system}");
    }
    assert!(!system.contains("Not this one."), "{system}");
    assert!(!system.contains("plan mode"), "{system}");
}

#[tokio::test(start_paused = true)]
async fn a_link_in_the_folder_does_not_lead_out() {
    let model = Script::new(Vec::new());
    let mut hall = Hall::open(vec![model.clone()]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "hunter2").unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), hall.folder.path().join("AGENTS.md")).unwrap();
    std::fs::write(hall.folder.path().join("CLAUDE.md"), [0xff, 0xfe]).unwrap();
    std::fs::write(hall.folder.path().join(".cursorrules"), "Use spaces.").unwrap();
    assert_eq!(hall.say("Hi").await.stop, Stop::EndTurn);
    let system = model.asked()[0].system.clone();
    assert!(!system.contains("hunter2") && system.contains("Use spaces."), "{system}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_brings_pictures_files_and_what_the_editor_shows() {
    let model = Script::new(Vec::new());
    let mut hall = Hall::open(vec![model.clone()]);
    let content = vec![
        Block::text("Look"),
        Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None },
        Block::Resource {
            uri: "file:///tmp/n.txt".into(),
            mime: None,
            text: Some("x".repeat(40_000).into()),
            blob: None,
        },
        Block::Resource {
            uri: "file:///tmp/n.pdf".into(),
            mime: Some("application/pdf".into()),
            text: None,
            blob: Some("aGk=".into()),
        },
    ];
    let context = Json::from(json!({ "current_file": { "path": "a.rs", "selection": "fn" } }));
    hall.prompt(content, Some(context), |_| Act::Nothing).await;
    hall.say("And?").await;
    let asked = model.asked();
    let Message::User(inputs) = &asked[0].messages[0] else { panic!("{asked:?}") };
    assert!(matches!(&inputs[0], Input::Text(text) if text.contains("a.rs")), "{inputs:?}");
    assert_eq!(inputs[1], Input::Text("Look".into()));
    assert_eq!(inputs[2], Input::Image { mime: "image/png".into(), data: "aGk=".into() });
    assert!(matches!(&inputs[3], Input::Text(text) if text.len() > 40_000));
    assert!(matches!(&inputs[4], Input::File { name, .. } if name == "n.pdf"));
    assert_eq!(asked[1].messages[0], asked[0].messages[0], "what was long is whole when it is read back");
}

#[tokio::test(start_paused = true)]
async fn a_blind_model_is_told_that_there_is_a_picture() {
    let model = Script::blind();
    let mut hall = Hall::open(vec![model.clone()]);
    let picture = Block::Image { data: "aGk=".into(), mime: "image/png".into(), uri: None };
    hall.prompt(vec![picture], None, |_| Act::Nothing).await;
    let asked = model.asked();
    let [Message::User(inputs)] = &asked[0].messages[..] else { panic!("{asked:?}") };
    assert!(matches!(&inputs[0], Input::Text(text) if text.contains("cannot see")), "{inputs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_chooses_its_model_and_an_unknown_one_is_named() {
    let (one, two) = (Script::named("one", Vec::new()), Script::named("two", Vec::new()));
    let mut hall = Hall::open(vec![one.clone(), two.clone()]);
    hall.model = Some(two.about().model.clone());
    hall.say("Hi").await;
    assert_eq!((one.asked().len(), two.asked().len()), (0, 1));
    hall.model = Some(tolka_facts::event::Model { provider: "script".into(), id: "three".into() });
    let ended = hall.say("Hi").await;
    let failure = ended.failure.unwrap().message;
    assert!(failure.contains("script/three") && failure.contains("script/one, script/two"), "{failure}");
    hall.model = None;
    hall.say("Hi").await;
    assert_eq!((one.asked().len(), two.asked().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_agent_says_what_it_has() {
    let hall = Hall::open(vec![Script::named("one", Vec::new()), Script::named("two", Vec::new())]);
    let agent = Native::new("native", Arc::new(hall.settings));
    let models: Vec<String> = agent.models().into_iter().map(|about| about.model.id).collect();
    assert_eq!(models, ["one", "two"]);
    assert_eq!(agent.model().id, "one");
    let named = |provider: &str, id: &str| ModelName { provider: provider.into(), id: id.into() };
    for (provider, id, expected) in [
        ("script", "two", Some("two")),
        ("", "two", Some("two")),
        ("", "three", None),
        ("other", "two", None),
        ("script", "", None),
    ] {
        let found = agent.find_model(&named(provider, id));
        assert_eq!(found, expected.map(|id| named("script", id)), "{provider}/{id}");
    }
    let modes: Vec<String> = agent.modes().into_iter().map(|mode| mode.name).collect();
    assert_eq!(modes, ["build", "plan"]);
}
