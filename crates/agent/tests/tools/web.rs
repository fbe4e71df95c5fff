//! The web from a server that means no good, and from search engines that are asked as they want to be.

mod engines;
mod host;

use serde_json::{Value, json};
use tolka_agent::native::model::Input;
use tolka_agent::native::permission::{Leave, Rules};
use tolka_agent::native::web::{Allowed, Web};
use tolka_facts::{Event, ToolKind, ToolStatus};

use crate::dialects::smithy;
use crate::hall::{Ended, Hall, Person, rule};
use host::Host;

/// May reach that host and nothing else of this machine.
fn reaching(host: &Host) -> Web {
    Web { allowed: Allowed(vec![host.place().parse().unwrap()]), ..Web::default() }
}

async fn fetched(host: &Host, path: &str) -> Ended {
    Hall::on_the_web(reaching(host)).call("webfetch", json!({ "url": host.url(path), "timeout": 55 })).await
}

#[tokio::test]
async fn a_page_is_told_as_markdown_and_as_document_003_wants_it() {
    let host = Host::start().await;
    let ended = fetched(&host, "/page").await;
    let (url, output) = (host.url("/page"), ended.went_well().output());
    assert_eq!(output["output"], format!("# Hello\n\nSome **bold** words and a [link]({}).", host.url("/there")));
    assert_eq!(
        output["metadata"],
        json!({
            "url": url, "final_url": url, "status": 200, "content_type": "text/html", "size": 152, "truncated": false,
            "encoding": "UTF-8",
        })
    );
    assert_eq!((ended.tool.kind, ended.tool.title.as_str()), (ToolKind::Fetch, &*format!("{url} (text/html)")));
    let mut hall = Hall::on_the_web(reaching(&host));
    let ended = hall.call("webfetch", json!({ "url": host.url("/to//page") })).await;
    assert_eq!(
        smithy(&hall, &ended),
        json!({
            "type": "web_browse_result", "mode": "http", "url": host.url("/to//page"), "final_url": url, "status": 200,
            "content_type": "text/html", "encoding": "UTF-8", "text": output["output"],
        })
    );
    let ended = hall.call("webfetch", json!({ "url": host.url("/missing") })).await;
    assert_eq!(smithy(&hall, &ended)["type"], "web_browse_error");
    let head = host.heard().remove(0);
    assert!(head.contains("tolka/") || head.contains("Tolka/"), "{head}");
    assert!(!head.to_lowercase().contains("cookie") && !head.to_lowercase().contains("authorization"), "{head}");
}

#[tokio::test]
async fn a_page_has_the_form_that_was_asked_for() {
    let host = Host::start().await;
    let mut hall = Hall::on_the_web(reaching(&host));
    let text = hall.call("webfetch", json!({ "url": host.url("/page"), "format": "text" })).await;
    assert_eq!(text.went_well().output()["output"], "Hello\n\nSome bold words and a link.");
    let html = hall.call("webfetch", json!({ "url": host.url("/page"), "format": "html" })).await;
    assert!(html.went_well().said().starts_with("<!doctype html>"));
    hall.call("webfetch", json!({ "url": host.url("/page"), "format": "pdf" })).await.failed("`format` is");
    let json = hall.call("webfetch", json!({ "url": host.url("/json") })).await;
    assert_eq!(json.went_well().output()["output"], "{\"a\": [1, 2]}");
    let picture = hall.call("webfetch", json!({ "url": host.url("/png") })).await;
    assert!(matches!(picture.went_well().outcome.content[..], [Input::Text(_), Input::Image { .. }]));
    hall.call("webfetch", json!({ "url": host.url("/pdf") }))
        .await
        .failed("application/pdf, which cannot be read as text");
    hall.call("webfetch", json!({ "url": host.url("/binary") })).await.failed("is binary");
    hall.call("webfetch", json!({ "url": host.url("/missing") })).await.failed("answered 404. It says:\nNot here");
    let unsaid = hall.call("webfetch", json!({ "url": host.url("/unsaid") })).await;
    assert_eq!(unsaid.went_well().output()["output"], "# Unsaid");
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let host = Host::start().await;
    for path in ["/endless", "/endless-page"] {
        let ended = fetched(&host, path).await;
        let output = ended.went_well().output();
        assert_eq!(output["metadata"]["truncated"], true);
        assert!(output["output"].as_str().unwrap().len() < 600 * 1024, "what is kept is bounded");
        assert!(ended.said().len() < 60 * 1024 && ended.said().contains("only the beginning of it"), "{path}");
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_cut() {
    let host = Host::start().await;
    let ended = fetched(&host, "/bomb").await;
    let metadata = ended.went_well().output()["metadata"].clone();
    assert_eq!((&metadata["size"], &metadata["truncated"]), (&json!(5 << 20), &json!(true)));
    // It unpacks to nothing, for ever.
    let hollow = fetched(&host, "/hollow").await;
    let metadata = hollow.went_well().output()["metadata"].clone();
    assert_eq!((&metadata["size"], &metadata["truncated"]), (&json!(0), &json!(true)));
    fetched(&host, "/no-gzip").await.failed("cannot be unpacked");
    fetched(&host, "/brotli").await.failed("packed as `br`, which was not asked for");
    let good = fetched(&host, "/gzip").await;
    assert_eq!(good.went_well().output()["output"], "packed words");
}

#[tokio::test]
async fn a_redirect_loop_ends() {
    let host = Host::start().await;
    fetched(&host, "/loop").await.failed("redirects more than 5 times");
    assert_eq!(host.heard().len(), 6);
    let near = fetched(&host, "/hops/5").await;
    assert_eq!(near.went_well().output()["output"], "arrived");
    assert_eq!(near.output()["metadata"]["final_url"], host.url("/hops/0"));
    fetched(&host, "/hops/6").await.failed("redirects more than 5 times");
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_followed() {
    let (host, private) = (Host::start().await, Host::start().await);
    for (path, words) in [
        (format!("/to/{}", private.url("/secret")), "is an address of this machine or a private network"),
        (format!("/to/http://localhost:{}/secret", private.port), "is an address of this machine or a private network"),
        (format!("/to/http://[::ffff:127.0.0.1]:{}/secret", private.port), "is an address of this machine"),
        ("/to/http://169.254.169.254/latest/meta-data/".to_owned(), "is an address of this machine"),
        ("/to/file:///etc/passwd".to_owned(), "`file:` cannot be fetched"),
        (format!("/to/http://me:pass@{}/page", host.place()), "a name or a password in it"),
        ("/to/http://[".to_owned(), "which is no URL"),
    ] {
        fetched(&host, &path).await.failed(words);
    }
    assert_eq!(private.heard(), [""; 0], "nobody knocked there");
}

#[tokio::test]
async fn what_is_private_is_refused_before_anybody_knocks() {
    let private = Host::start().await;
    let mut hall = Hall::on_the_web(Web::default());
    for url in [private.url("/secret"), format!("http://localhost:{}/", private.port), "http://0/".to_owned()] {
        hall.call("webfetch", json!({ "url": url })).await.failed("unless `[web] allow` in tolka.toml names it");
    }
    for (url, words) in
        [("ftp://a/b", "only http:// and https:// can"), ("x", "is no URL"), ("http://a:b@c/", "leave them out")]
    {
        hall.call("webfetch", json!({ "url": url })).await.failed(words);
    }
    assert_eq!(private.heard(), [""; 0]);
}

#[tokio::test]
async fn slow_servers_are_given_up() {
    let host = Host::start().await;
    let mut hall = Hall::on_the_web(reaching(&host));
    for path in ["/drip", "/silent", "/slow-head", "/endless-head"] {
        let ended = hall.call("webfetch", json!({ "url": host.url(path), "timeout": 1 })).await;
        assert_eq!(ended.tool.status, ToolStatus::Failed, "{path}");
        let error = ended.error();
        assert!(
            error.contains("took longer than 1 seconds") || error.contains("no answer that can be read"),
            "{error}"
        );
    }
    host.all_gone().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let host = Host::start().await;
    fetched(&host, "/short").await.failed("broke off");
    fetched(&host, "/nonsense").await.failed("no answer that can be read");
    drop(host);
}

#[tokio::test]
async fn a_wrong_charset_breaks_nothing() {
    let host = Host::start().await;
    for (path, expected, encoding) in [
        ("/latin1", "grün", "windows-1252"),
        ("/latin1-as-utf8", "gr\u{fffd}n", "UTF-8"),
        ("/unknown-charset", "grün", "UTF-8"),
        ("/meta", "привет", "KOI8-R"),
        ("/utf16", "grün", "UTF-16LE"),
    ] {
        let ended = fetched(&host, path).await;
        let output = ended.went_well().output();
        assert_eq!(
            (&output["output"], &output["metadata"]["encoding"]),
            (&json!(expected), &json!(encoding)),
            "{path}"
        );
    }
    assert!(fetched(&host, "/latin1-as-utf8").await.said().contains("some of it is not UTF-8"));
}

#[tokio::test]
async fn leave_is_for_a_host() {
    let host = Host::start().await;
    let (place, page) = (host.place(), json!({ "url": host.url("/page") }));
    let mut hall = Hall::made(Rules::default(), |_| Vec::new(), reaching(&host));
    hall.person = Person::Chooses("always", None);
    hall.call("webfetch", page.clone()).await.went_well();
    let asked = hall.asked();
    assert_eq!((asked[0].permission.as_str(), asked[0].patterns.as_slice()), ("webfetch", &[place.clone()][..]));
    hall.call("webfetch", page.clone()).await.went_well();
    assert_eq!(hall.asked().len(), 1, "always is always");
    // The same server by another name, which nobody has allowed.
    let elsewhere = format!("/to/http://localhost:{}/page", host.port);
    hall.call("webfetch", json!({ "url": host.url(&elsewhere) })).await.failed("which is another host; call webfetch");
    hall.person = Person::Chooses("reject", None);
    let ended = hall.call("webfetch", json!({ "url": format!("http://localhost:{}/page", host.port) })).await;
    assert!(ended.outcome.ends_turn);
    let mut denied = Hall::with(Rules::with([rule("webfetch", "*", Leave::Deny)]));
    denied.call("webfetch", page).await.failed("do not allow `webfetch`");
    assert_eq!(denied.asked(), []);
}

#[tokio::test]
async fn a_fetch_is_durable_before_it_is_sent_and_ends_when_cancelled() {
    let host = Host::start().await;
    let mut hall = Hall::on_the_web(reaching(&host));
    hall.call("webfetch", json!({ "url": host.url("/page") })).await.went_well();
    assert_eq!(hall.told().settled.len(), 1);
    hall.cancel_at = Some(|event| matches!(event, Event::ToolChanged(e) if e.status == Some(ToolStatus::Running)));
    let ended = hall.call("webfetch", json!({ "url": host.url("/drip"), "timeout": 120 })).await;
    assert_eq!(ended.tool.status, ToolStatus::Cancelled);
}

#[tokio::test]
async fn several_pages_are_fetched_side_by_side() {
    let host = Host::start().await;
    let mut hall = Hall::on_the_web(reaching(&host));
    // Each waits until both are there.
    let both: Vec<(&str, Value)> =
        ["/together", "/together"].iter().map(|path| ("webfetch", json!({ "url": host.url(path) }))).collect();
    for ended in hall.calls(&both).await {
        assert_eq!(ended.went_well().output()["output"], "together");
    }
}
