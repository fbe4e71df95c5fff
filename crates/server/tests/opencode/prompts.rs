use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use crate::host::Host;

pub(crate) fn text(text: &str) -> Value {
    json!({ "parts": [{ "type": "text", "text": text }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_prompt_gets_the_message_that_the_list_shows() {
    let host = Host::start().await;
    let path = format!("/session/{}/message", host.new_session().await);
    let (status, answer) = host.post(&path, text("hello")).await;
    assert_eq!((status, &answer["info"]["role"]), (StatusCode::OK, &json!("assistant")));
    let kinds: Vec<&Value> = answer["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["step-start", "text", "step-finish"]);
    assert_eq!(answer["parts"][1]["text"], "hello");
    assert!(answer["info"]["time"]["completed"].is_number());

    host.post(&path, text("again")).await;
    let (_, all) = host.get(&path).await;
    let roles: Vec<&Value> = all.as_array().unwrap().iter().map(|message| &message["info"]["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(all[1], answer);
    assert_eq!(all[0]["info"]["id"], answer["info"]["parentID"]);
    let id = answer["info"]["id"].as_str().unwrap();
    assert_eq!(host.get(&format!("{path}/{id}")).await, (StatusCode::OK, answer.clone()));
    let (status, error) = host.get(&format!("{path}/msg_nope")).await;
    assert_eq!((status, &error["name"]), (StatusCode::NOT_FOUND, &json!("NotFoundError")));

    let page = host.send(Method::GET, &format!("{path}?limit=3"), &[], "").await;
    let cursor = page.headers()["x-next-cursor"].to_str().unwrap().to_owned();
    assert_eq!(host.get(&format!("{path}?limit=3&before={cursor}")).await.1, json!([all[0]]));
    let id = all[1]["info"]["id"].as_str().unwrap();
    assert_eq!(host.get(&format!("{path}?limit=3&before={id}")).await.1, json!([all[0]]), "an id will do");
    let (status, error) = host.get(&format!("{path}?limit=3&before=msg_nope~9")).await;
    assert_eq!((status, &error["name"]), (StatusCode::BAD_REQUEST, &json!("BadRequest")));
}

/// Also where prompts were made while an earlier turn ran.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_any_size_are_the_whole_list() {
    let host = Host::start().await;
    let session = host.new_session().await;
    let path = format!("/session/{session}/message");
    for n in 0..3 {
        for m in 0..3 {
            host.post(&format!("/session/{session}/prompt_async"), text(&format!("{n} {m}"))).await;
        }
        host.post(&path, text("and wait")).await;
    }
    let (_, all) = host.get(&path).await;
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 24);
    for message in all {
        let id = message["info"]["id"].as_str().unwrap();
        assert_eq!(host.get(&format!("{path}/{id}")).await, (StatusCode::OK, message.clone()));
    }
    for limit in [1, 2, 5, 7, 23, 24, 99] {
        let (mut glued, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let before = cursor.map(|cursor| format!("&before={cursor}")).unwrap_or_default();
            let page = host.send(Method::GET, &format!("{path}?limit={limit}{before}"), &[], "").await;
            cursor = page.headers().get("x-next-cursor").map(|cursor| cursor.to_str().unwrap().to_owned());
            let body = page.into_body().collect().await.unwrap().to_bytes();
            let messages: Vec<Value> = serde_json::from_slice(&body).unwrap();
            assert_eq!(messages.len(), limit.min(all.len() - glued.len()));
            glued.splice(..0, messages);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(glued, *all, "{limit} at a time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_sent_twice_is_one_turn() {
    let host = Host::start().await;
    let path = format!("/session/{}/message", host.new_session().await);
    let mut prompt = text("once");
    prompt["messageID"] = json!("msg_mine");
    let (first, second) = (host.post(&path, prompt.clone()).await, host.post(&path, prompt.clone()).await);
    assert_eq!(first, second);
    assert_eq!(first.1["info"]["parentID"], "msg_mine");
    assert_eq!(host.get(&path).await.1.as_array().unwrap().len(), 2);
    prompt["messageID"] = json!("mine");
    assert_eq!(host.post(&path, prompt).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_prompt_is_said_in_opencodes_words() {
    let host = Host::start().await;
    let path = format!("/session/{}/message", host.new_session().await);
    let (status, error) = host.post(&path, json!({ "parts": "bad" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let message = "Expected array, got \"bad\"\n  at [\"parts\"]";
    assert_eq!(error, json!({ "name": "BadRequest", "data": { "message": message, "kind": "Payload" } }));
    let mut unanswered = text("note this");
    unanswered["noReply"] = json!(true);
    let (status, error) = host.post(&path, unanswered).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["data"]["message"].as_str().unwrap().contains("noReply"));
    assert_eq!(host.get(&path).await.1, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_in_the_message_or_is_the_answer() {
    let host = Host::start().await;
    let path = format!("/session/{}/message", host.new_session().await);
    let (status, answer) = host.post(&path, text("stumble")).await;
    assert_eq!((status, &answer["info"]["error"]["name"]), (StatusCode::OK, &json!("APIError")));
    assert_eq!(answer["parts"][1]["text"], "oh");
    let (status, error) = host.post(&path, text("fail")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(error, json!({ "name": "UnknownError", "data": { "message": "The model is not in the mood" } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_the_turn_and_what_waits_behind_it() {
    let host = Host::start().await;
    let id = host.new_session().await;
    let (path, abort) = (format!("/session/{id}/message"), format!("/session/{id}/abort"));
    let mut feed = host.listen("/event", &[]).await;
    let waiting = host.post(&path, text("wait"));
    let aborting = async {
        feed.until("message.part.delta").await;
        assert_eq!(host.get("/session/status").await.1, json!({ &id: { "type": "busy" } }));
        assert_eq!(host.post(&format!("/session/{id}/prompt_async"), text("next")).await.0, StatusCode::NO_CONTENT);
        assert_eq!(host.post(&abort, json!({})).await, (StatusCode::OK, json!(true)));
        feed.until("session.idle").await;
    };
    let ((status, answer), ()) = tokio::join!(waiting, aborting);
    assert_eq!((status, &answer["info"]["error"]["name"]), (StatusCode::OK, &json!("MessageAbortedError")));
    assert_eq!(host.get("/session/status").await.1, json!({}));
    assert_eq!(host.get(&path).await.1.as_array().unwrap().len(), 2, "the prompt that waited is gone");
    assert_eq!(host.post(&abort, json!({})).await, (StatusCode::OK, json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_does_not_stop_the_turn() {
    let host = Host::start().await;
    let id = host.new_session().await;
    let mut feed = host.listen("/event", &[]).await;
    let path = format!("/session/{id}/message");
    tokio::select! {
        _ = host.post(&path, text("may I")) => panic!("nobody answered"),
        _ = feed.until("permission.asked") => {}
    }
    let (_, pending) = host.get("/permission").await;
    let request = pending[0]["id"].as_str().unwrap();
    assert_eq!(host.post(&format!("/permission/{request}/reply"), json!({ "reply": "once" })).await.1, json!(true));
    feed.until("session.idle").await;
    let (_, all) = host.get(&path).await;
    assert_eq!(all[1]["parts"][1]["text"], "Some(\"yes\")");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_lets_those_who_wait_go() {
    let host = Host::start().await;
    let id = host.new_session().await;
    let path = format!("/session/{id}/message");
    let mut feed = host.listen("/event", &[]).await;
    let body = text("wait").to_string();
    let response = {
        let sending = host.send(Method::POST, &path, &[], &body);
        tokio::pin!(sending);
        tokio::select! {
            _ = &mut sending => panic!("it should wait"),
            _ = feed.until("message.part.delta") => {}
        }
        host.stop();
        sending.await
    };
    assert_eq!(response.status(), StatusCode::OK, "the turn ended before the server did, and its message says how");
    assert!(feed.ends_badly().await, "a feed is cut, not ended");
    let host = host.restart().await;
    let (_, all) = host.get(&path).await;
    assert_eq!(all[1]["info"]["error"]["name"], "MessageAbortedError");
}

/// Starts a turn that lasts and a prompt behind it, then does what `then` says while both clients wait.
async fn two_waiting(host: &Host, first: &str, then: impl AsyncFnOnce(&str)) -> [(StatusCode, Value); 2] {
    let id = host.new_session().await;
    let path = format!("/session/{id}/message");
    let mut feed = host.listen("/event", &[]).await;
    let second = async {
        // The user's part, and the first of the agent: from there on the turn has a message to end with.
        feed.until("message.part.updated").await;
        feed.until("message.part.updated").await;
        host.post(&path, text("second")).await
    };
    let mut other = host.listen("/event", &[]).await;
    let steering = async {
        // Two messages of the user: both prompts are durable.
        for _ in 0..2 {
            while other.until("message.updated").await.last().unwrap().data["properties"]["info"]["role"] != "user" {}
        }
        then(&id).await;
    };
    let (first, second, ()) = tokio::join!(host.post(&path, text(first)), second, steering);
    [first, second]
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_in_a_row_each_get_their_own_answer() {
    let host = Host::start().await;
    let answers = two_waiting(&host, "may I", async |_| {
        let mut listed = json!([]);
        while listed == json!([]) {
            listed = host.get("/permission").await.1;
        }
        let request = listed[0]["id"].as_str().unwrap();
        host.post(&format!("/permission/{request}/reply"), json!({ "reply": "once" })).await;
    });
    let said = answers.await.map(|(status, answer)| (status, answer["parts"][1]["text"].clone()));
    assert_eq!(said, [(StatusCode::OK, json!("Some(\"yes\")")), (StatusCode::OK, json!("second"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_vain_is_told() {
    let host = Host::start().await;
    let [first, second] = two_waiting(&host, "wait", async |id| {
        host.post(&format!("/session/{id}/abort"), json!({})).await;
    })
    .await;
    assert_eq!((first.0, second.0), (StatusCode::OK, StatusCode::CONFLICT));
    let [first, second] = two_waiting(&host, "wait", async |id| {
        host.call(Method::DELETE, &format!("/session/{id}"), "").await;
    })
    .await;
    assert_eq!((first.0, second.0), (StatusCode::OK, StatusCode::NOT_FOUND));
}
