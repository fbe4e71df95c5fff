//! What goes wrong, on both wires: each fault is of its kind and says what to do.

use std::time::Duration;

use serde_json::json;
use tolka_agent::native::model::{Anthropic, AnthropicOptions, Model, ModelErrorKind, OpenAi, OpenAiOptions};
use tolka_scripted::{Answer, Beat, Cut, Script, Scripted};

use crate::raw::{JSON, Raw, SSE};
use crate::said::{about, both, endpoint, failed, pieces, prompt, said};

async fn each(answer: Answer, check: impl Fn(tolka_agent::native::model::ModelError)) {
    let provider = Scripted::start(Script::of([answer.for_ever()])).unwrap();
    for (_, model) in both(&provider) {
        check(failed(model.ask(prompt("hello"))).await);
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    use ModelErrorKind::{Auth, Overflow, RateLimited, Rejected, Unavailable, UnknownModel};
    for (answer, kind, words) in [
        (Answer::status(401), Auth, "Check SCRIPTED_API_KEY"),
        (Answer::status(403), Auth, "Check SCRIPTED_API_KEY"),
        (Answer::status(404), UnknownModel, "has no model m-1"),
        (Answer::overflow(), Overflow, "does not fit into m-1"),
        (Answer::status(413), Overflow, "does not fit"),
        (Answer::status(429), RateLimited, "Wait a while"),
        (Answer::status(500), Unavailable, "scripted is not able to answer (500)"),
        (Answer::status(503), Unavailable, "(503)"),
        (Answer::status(529), Unavailable, "Overloaded"),
        (Answer::status(400), Rejected, "rejected the request (400)"),
    ] {
        each(answer.clone(), |error| {
            assert_eq!((error.kind, error.status), (kind, answer.status), "{error}");
            assert!(error.message.contains(words), "{error}");
            assert_eq!(error.retry_after, None);
        })
        .await;
    }
}

#[tokio::test]
async fn waits_are_read_in_every_form() {
    let wait = |name, value| Answer::status(429).header(name, value);
    each(wait("retry-after", "7"), |error| assert_eq!(error.retry_after, Some(Duration::from_secs(7)))).await;
    each(wait("retry-after", "0.5"), |error| assert_eq!(error.retry_after, Some(Duration::from_millis(500)))).await;
    let both = wait("retry-after", "9").header("retry-after-ms", "1500");
    each(both, |error| assert_eq!(error.retry_after, Some(Duration::from_millis(1500)))).await;
    each(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), |error| {
        assert_eq!(error.retry_after, Some(Duration::ZERO));
    })
    .await;
    let later = std::time::SystemTime::now() + Duration::from_secs(3600);
    let later = jiff::Timestamp::try_from(later).unwrap().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    each(wait("retry-after", &later), |error| {
        let wait = error.retry_after.unwrap().as_secs();
        assert!((3500..=3600).contains(&wait), "{wait}");
    })
    .await;
    each(wait("retry-after", "soon"), |error| assert_eq!(error.retry_after, None)).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_cut() {
    for cut in [Cut::Closed, Cut::Reset] {
        let beats = [Beat::Think("Hm".to_owned()), Beat::Text("Half an ans".to_owned()), Beat::Cut(cut)];
        each(Answer::beats(beats), |error| assert_eq!(error.kind, ModelErrorKind::Cut, "{error}")).await;
        each(Answer::beats([Beat::Cut(cut)]), |error| assert_eq!(error.kind, ModelErrorKind::Cut, "{error}")).await;
    }
}

#[tokio::test]
async fn silence_has_an_end() {
    let hang = Answer::beats([Beat::Text("Wait".to_owned()), Beat::Hang]).for_ever();
    let provider = Scripted::start(Script::of([hang])).unwrap();
    let short = |url| {
        let mut endpoint = endpoint(url);
        // Long enough for what is said before the silence.
        endpoint.idle = Duration::from_secs(2);
        endpoint
    };
    let openai = OpenAi::new(short(provider.openai_url()), about(), OpenAiOptions::default());
    let anthropic = Anthropic::new(short(provider.anthropic_url()), about(), AnthropicOptions::default());
    for model in [&openai as &dyn Model, &anthropic] {
        let (given, error) = pieces(model.ask(prompt("hello"))).await;
        assert!(!given.is_empty());
        let error = error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Cut);
        assert!(error.message.contains("silent for 2s"), "{error}");
    }
    // A server that takes the request and never says a word.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut endpoint = endpoint(format!("http://{}/v1", silent.local_addr().unwrap()));
    endpoint.first = Duration::from_millis(150);
    let error = failed(OpenAi::new(endpoint, about(), OpenAiOptions::default()).ask(prompt("hello"))).await;
    assert_eq!(error.kind, ModelErrorKind::Cut);
}

#[tokio::test]
async fn a_fault_inside_an_answer_is_told() {
    let error = |kind: &str, message: &str| Beat::Error { kind: kind.to_owned(), message: message.to_owned() };
    use ModelErrorKind::{Overflow, RateLimited, Rejected, Unavailable};
    for (beat, kind) in [
        (error("overloaded_error", "Overloaded"), Unavailable),
        (error("server_error", "The server had an error"), Unavailable),
        (error("rate_limit_error", "Slow down"), RateLimited),
        (error("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"), Overflow),
        (error("invalid_request_error", "no"), Rejected),
    ] {
        let answer = Answer::beats([Beat::Text("Half".to_owned()), beat]);
        each(answer, |error| assert_eq!((error.kind, error.status), (kind, None), "{error}")).await;
    }
}

#[tokio::test]
async fn what_is_no_answer_is_told() {
    for garbage in ["data: {\"choices\":[{\"delta\"\n\n", "data: <html>\n\n", "data: 7\n\n", "data: \u{0}\n\n"] {
        let answer = Answer::beats([Beat::Text("Half".to_owned()), Beat::Garbage(garbage.to_owned())]);
        each(answer, |error| assert_eq!(error.kind, ModelErrorKind::Unavailable, "{error}")).await;
    }
    let answer = Answer::beats([Beat::Garbage("complete nonsense\n".to_owned()), Beat::Cut(Cut::Closed)]);
    each(answer, |error| assert_eq!(error.kind, ModelErrorKind::Cut, "{error}")).await;
    let endless = Answer::beats([Beat::Endless(64 * 1024 * 1024)]);
    each(endless, |error| {
        assert_eq!(error.kind, ModelErrorKind::Unavailable);
        assert!(error.message.contains("longer than 8388608 bytes"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_good_status_does_not_make_a_good_answer() {
    let raw = Raw::start(JSON, &[]).await;
    let openai = OpenAi::new(endpoint(raw.url()), about(), OpenAiOptions::default());
    let anthropic = Anthropic::new(endpoint(raw.url()), about(), AnthropicOptions::default());
    for (body, kind) in [
        (r#"{"error":{"message":"no such thing","code":429}}"#, ModelErrorKind::RateLimited),
        ("{\n  \"error\": \"model requires more system memory\"\n}", ModelErrorKind::Unavailable),
        (r#"{"object":"error","message":"bad","code":400}"#, ModelErrorKind::Rejected),
        (r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#, ModelErrorKind::Auth),
        (r#"{"detail":"Not authenticated","status":1}"#, ModelErrorKind::Unavailable),
        ("", ModelErrorKind::Cut),
        ("{}", ModelErrorKind::Cut),
    ] {
        for head in [JSON, SSE] {
            raw.say(head, &[body.as_bytes()]);
            if head == SSE && body.contains('\n') {
                continue;
            }
            for model in [&openai as &dyn Model, &anthropic] {
                let error = failed(model.ask(prompt("hello"))).await;
                assert_eq!(error.kind, kind, "{model:?} {body}: {error}");
            }
        }
    }
    raw.say("HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n", &[b"<html>Welcome!</html>"]);
    let error = failed(openai.ask(prompt("hello"))).await;
    assert!(error.message.contains("web page; check the base URL"), "{error}");
    raw.say("HTTP/1.1 404 Not Found\r\n", &[b"404 page not found"]);
    let error = failed(openai.ask(prompt("hello"))).await;
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert!(error.message.contains("Check its base URL"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_reached_or_asked_says_so() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let model = |url: String| OpenAi::new(endpoint(url), about(), OpenAiOptions::default());
    let error = failed(model(format!("http://{nobody}/v1")).ask(prompt("hello"))).await;
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.contains("refused") && error.message.contains("Is it running?"), "{error}");
    for bad in ["", "localhost:1/v1", "ftp://localhost/v1"] {
        let error = failed(model(bad.to_owned()).ask(prompt("hello"))).await;
        assert_eq!(error.kind, ModelErrorKind::Rejected);
        assert!(error.message.contains("base URL is wrong"), "{error}");
    }
}

#[tokio::test]
async fn the_provider_refuses_what_real_ones_refuse() {
    let provider = Scripted::start(Script::of([Answer::call("read", json!({})).for_ever()])).unwrap();
    for (_, model) in both(&provider) {
        let first = said(model.ask(prompt("hello"))).await;
        let mut without_result = prompt("hello");
        without_result.messages.push(tolka_agent::native::model::Message::Model(first.outputs).into());
        without_result.messages.extend(prompt("go on").messages);
        let error = failed(model.ask(without_result.clone())).await;
        assert_eq!(error.kind, ModelErrorKind::Rejected, "{error}");
        without_result.messages.remove(1);
        said(model.ask(without_result)).await;
    }
}
