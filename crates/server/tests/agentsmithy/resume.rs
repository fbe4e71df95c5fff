//! A client that goes away leaves the turn running, and finds the rest of it when it comes back.

use tolka_agent::Pace;

use crate::agent::Obedient;
use crate::chat::{chat, dialog, message};
use crate::house::House;
use crate::skeleton::{events, pieces, said};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_after_any_of_its_events() {
    for name in ["opencode-rich", "codex"] {
        let house = House::playing(name, Pace::AtOnce).await;
        let told = chat(&house, &message("Do it")).await.whole().await;
        // A turn behind it, that must never be told here.
        chat(&house, &message("And again")).await.whole().await;
        let place = told.header("content-location").unwrap();
        let (session, turn) = (told.header("tolka-session").unwrap(), told.header("tolka-turn").unwrap());
        assert_eq!(place, format!("/api/chat?dialog_id={session}&turn={turn}"));
        let all = pieces(&told.bytes);
        assert!(all.len() > 5);
        for read in 0..=all.len() {
            let rest = house.get(&format!("{place}&skip={read}")).await;
            assert_eq!((rest.status, rest.text()), (200, all[read..].concat()), "{name} after {read}");
        }
        assert_eq!(house.get(place).await.text(), told.text());
        let beyond = house.get(&format!("{place}&skip={}", all.len() + 1)).await;
        assert_eq!(beyond.status, 410, "{}", beyond.text());
        assert!(beyond.json()["detail"].as_str().unwrap().contains(&format!("{} events", all.len())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_the_turn_running() {
    let (agent, gate) = Obedient::gated();
    let house = House::of(agent).await;
    let mut stream = chat(&house, &message("hold")).await;
    stream.until("held").await;
    let had = pieces(&stream.bytes);
    let place = stream.header("content-location").unwrap().to_owned();
    drop(stream);
    // It is found by the dialog alone, too: a client that went before it read the headers knows no turn.
    let found = house.open("GET", "/api/chat", &[], None).await;
    let rest = house.open("GET", &format!("{place}&skip={}", had.len()), &[], None).await;
    gate.send_replace(true);
    let (found, rest) = (found.whole().await, rest.whole().await);
    assert_eq!(found.text(), had.concat() + &rest.text());
    assert_eq!(said(&events(&found.bytes)), "hold: heldhold: let go");
    assert_eq!(events(&found.bytes).last().unwrap()["type"], "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_wait_for_its_answer_leaves_the_turn_running() {
    let (agent, gate) = Obedient::gated();
    let house = House::of(agent).await;
    let dialog = dialog(&house).await;
    let body = r#"{"messages":[{"role":"user","content":"hold"}],"stream":false}"#;
    let asked = house.open("POST", "/api/chat", &[], Some(body.to_owned()));
    let events_of_session = format!("/v1/sessions/{dialog}/events?dialect=agentsmithy");
    let mut watcher = house.open("GET", &events_of_session, &[], None).await;
    tokio::select! {
        _ = asked => panic!("it answered before the turn was over"),
        () = watcher.until("held") => {}
    }
    gate.send_replace(true);
    watcher.until("\"type\":\"done\"").await;
    assert!(String::from_utf8_lossy(&watcher.bytes).contains("let go"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_waits_can_be_followed() {
    let (agent, gate) = Obedient::gated();
    let house = House::of(agent).await;
    let mut first = chat(&house, &message("hold")).await;
    first.until("held").await;
    let second = chat(&house, &message("second")).await;
    let place = second.header("content-location").unwrap().to_owned();
    drop(second);
    assert_eq!(house.get(&format!("{place}&skip=1")).await.status, 410);
    let again = house.open("GET", &place, &[], None).await;
    gate.send_replace(true);
    assert_eq!(said(&events(&again.whole().await.bytes)), "second");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_server_left_ends_with_an_error() {
    let (agent, _gate) = Obedient::gated();
    let house = House::of(agent).await;
    let mut stream = chat(&house, &message("hold")).await;
    stream.until("held").await;
    let place = stream.header("content-location").unwrap().to_owned();
    let (house, had) = tokio::join!(house.restart(), stream.whole());
    let told = house.get(&place).await;
    assert_eq!(told.text(), had.text());
    let events = events(&told.bytes);
    let [.., error, done] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((&error["type"], &done["type"]), (&"error".into(), &"done".into()));
}
