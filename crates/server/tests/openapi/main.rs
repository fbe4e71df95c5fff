//! `/v1/openapi.json` against the server: every route is in it, everything in it is a route, and what the
//! server answers has the shapes that it promises.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod checkpoints;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tolka_agent::native::Reaching;
use tolka_agent::native::permission::{Grants, Rules};
use tolka_agent::{Agent, Pace, Recording, Replay};
use tolka_dialect::Dialect;
use tolka_facts::{Event, Ids};
use tolka_journal::{Sqlite, SqliteOptions};
use tolka_mcp::{Hub, Reach};
use tolka_server::{Config, Hands, Sandbox, Server};
use tolka_session::{Desk, DeskOptions};
use tolka_workspace::command::{Level, Shell};

const ROUTES: &str = include_str!("../../src/v1.rs");
const DEMO: &str = include_str!("../../../../tests/data/recordings/tolka/demo.jsonl");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

fn document() -> Value {
    serde_json::from_str(include_str!("../../src/v1/openapi.json")).unwrap()
}

/// (method, path) of everything that the document promises.
fn documented(document: &Value) -> BTreeSet<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, item): (&String, &Value)| {
        let methods: Vec<_> = METHODS.iter().filter(|method| item.get(**method).is_some()).collect();
        methods.into_iter().map(|method| ((*method).to_owned(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// (method, path) of every `.route("…", …)` in the source of the router.
fn routed() -> BTreeSet<(String, String)> {
    let routes = ROUTES.split("Router::new()").nth(1).unwrap().split("\n}").next().unwrap();
    let mut found = BTreeSet::new();
    for route in routes.split(".route(").skip(1) {
        let (path, handlers) = route.trim_start().strip_prefix('"').unwrap().split_once('"').unwrap();
        let path = format!("/v1{}", path.trim_end_matches('/'));
        for method in METHODS.iter().filter(|method| handlers.contains(&format!("{method}("))) {
            found.insert(((*method).to_owned(), path.clone()));
        }
    }
    found
}

#[test]
fn the_document_names_every_route_and_no_other() {
    assert_eq!(documented(&document()), routed());
}

#[test]
fn the_document_knows_every_event_and_dialect() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Fact"]["properties"]["v"]["const"], tolka_facts::VERSION);
    assert_eq!(schemas["Fact"]["properties"]["type"]["enum"], json!(Event::NAMES));
    assert_eq!(schemas["Dialect"]["enum"], json!(Dialect::ALL.map(Dialect::name)));
}

fn data_of(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("data")
}

fn hands(data: &Path) -> Hands {
    let grants = Grants::new(data);
    grants.add(Path::new("/w"), "bash", "cargo *", &"ses_1".into()).unwrap();
    let (network, hosts) = ("list".into(), vec!["example.org".into()]);
    let sandbox = Sandbox { level: "landlock".into(), network, hosts, cannot_stop: vec!["the network".into()] };
    let (grants, sandbox) = (Some(Arc::new(grants)), Some(sandbox));
    Hands { rules: Rules::default().0, grants, mcp: Some(servers()), sandbox, processes: None }
}

/// One that does not come up.
fn servers() -> Arc<Hub> {
    let shell = Shell::at(Path::new("/nowhere"), Level::None).unwrap();
    let reach = Reach::Program { command: vec!["false".into()], env: Vec::new() };
    Arc::new(Hub::new(vec![tolka_mcp::Config::new("none", reach)], Arc::new(Reaching::new(Arc::new(shell)))))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_allowed_always_is_listed_and_taken_back() {
    let house = House::open().await;
    let listed = async || house.ask("get", "/v1/permissions", None).await.1;
    let before = listed().await;
    let [grant] = &before["grants"].as_array().unwrap()[..] else { panic!("one was given: {before}") };
    assert_eq!((&grant["permission"], &grant["pattern"]), (&json!("bash"), &json!("cargo *")));
    let rules = before["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["permission"] == "bash" && rule["leave"] == "ask"), "{before}");

    let path = format!("/v1/permissions/{}", grant["id"].as_str().unwrap());
    assert_eq!(house.ask("delete", &path, None).await.0, 204);
    assert_eq!(listed().await["grants"], json!([]));
    let (status, again) = house.ask("delete", &path, None).await;
    assert_eq!((status, &again["error"]["code"]), (404, &json!("not_found")));
    assert_eq!(house.ask("get", "/v1", None).await.1["sandbox"]["level"], "landlock");
    house.close().await;
}

struct House {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    folder: tempfile::TempDir,
}

impl House {
    async fn open() -> Self {
        House::on(tempfile::tempdir().unwrap(), DeskOptions::default()).await
    }

    async fn on(folder: tempfile::TempDir, options: DeskOptions) -> Self {
        let data = folder.path().join("data");
        let journal = Sqlite::open(&SqliteOptions::new(data.clone())).unwrap();
        let agent: Arc<dyn Agent> = Arc::new(Replay::new("demo", Recording::parse(DEMO).unwrap(), Pace::AtOnce));
        let desk = Desk::with_options(journal, Arc::from([agent]), Arc::new(Ids::seeded(7)), options);
        let config = Config {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            workspace: folder.path().canonicalize().unwrap(),
            data,
            token: None,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            max_readers: 10,
            hands: hands(&data_of(&folder)),
            gather: Duration::ZERO,
        };
        let server = Server::bind(config, desk).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        House { address, stop, running, folder }
    }

    async fn close(self) {
        self.stop.send(()).unwrap();
        self.running.await.unwrap();
    }

    /// Status, and the body if it is JSON. A stream is left after its head.
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let (verb, address, length) = (method.to_uppercase(), self.address, body.len());
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(body.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let read = tokio::time::timeout(Duration::from_secs(60), socket.read(&mut piece)).await.unwrap().unwrap();
            answer.extend_from_slice(&piece[..read]);
            if read == 0 || String::from_utf8_lossy(&answer).contains("text/event-stream") {
                break;
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_documented_path_is_a_route() {
    let house = House::open().await;
    for (method, path) in documented(&document()) {
        let (status, answer) = house.ask(&method, &path.replace(['{', '}'], "x"), None).await;
        let is_nowhere =
            answer["error"]["message"].as_str().is_some_and(|message| message.starts_with("nothing is at"));
        assert!(status != 405 && !is_nowhere, "{method} {path}: {status} {answer}");
    }
    let (status, answer) = house.ask("get", "/v1/nowhere", None).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_documented_shapes() {
    let house = House::open().await;
    let ask = async |method: &str, path: &str, route: &str, body: Option<Value>| {
        let (status, answer) = house.ask(method, path, body).await;
        Shapes(document()).check_answer(method, route, status, &answer);
        answer
    };
    ask("get", "/v1", "/v1", None).await;
    for path in ["/v1/agents", "/v1/models", "/v1/commands", "/v1/permissions", "/v1/mcp"] {
        ask("get", path, path, None).await;
    }
    ask("delete", "/v1/permissions/none", "/v1/permissions/{id}", None).await;
    let session = ask("post", "/v1/sessions", "/v1/sessions", Some(json!({ "title": "Shapes" }))).await;
    let at = |rest: &str| format!("/v1/sessions/{}{rest}", session["id"].as_str().unwrap());
    ask("patch", &at(""), "/v1/sessions/{id}", Some(json!({ "mode": "build" }))).await;
    ask("post", &at("/prompt"), "/v1/sessions/{id}/prompt", Some(json!({ "text": "go" }))).await;
    ask("post", &at("/prompt"), "/v1/sessions/{id}/prompt", Some(json!({ "text": "and then" }))).await;
    ask("post", &at("/prompt"), "/v1/sessions/{id}/prompt", Some(json!({}))).await;
    for wrong in
        [json!({ "text": "go", "model": { "provider": "p", "id": "m" } }), json!({ "text": "go", "mode": "fly" })]
    {
        let refused = ask("post", &at("/prompt"), "/v1/sessions/{id}/prompt", Some(wrong)).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("it has: "), "{refused}");
    }
    let request = until_asked(&house, &at("/events")).await;
    ask("get", &at("/view"), "/v1/sessions/{id}/view", None).await;
    ask("get", &at("/mcp"), "/v1/sessions/{id}/mcp", None).await;
    for body in
        [json!({ "name": "mine", "command": ["false"] }), json!({ "name": "mine" }), json!({ "command": ["a"] })]
    {
        ask("post", &at("/mcp"), "/v1/sessions/{id}/mcp", Some(body)).await;
    }
    let servers = ask("get", &at("/mcp"), "/v1/sessions/{id}/mcp", None).await;
    let names: Vec<&Value> = servers["servers"].as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["none", "mine"]);
    for name in ["none", "nobody"] {
        ask("post", &format!("/v1/mcp/{name}/connect"), "/v1/mcp/{name}/connect", None).await;
        ask("post", &format!("/v1/mcp/{name}/disconnect"), "/v1/mcp/{name}/disconnect", None).await;
    }
    let queue = ask("get", &at("/queue"), "/v1/sessions/{id}/queue", None).await;
    assert_eq!(queue["waiting"].as_array().unwrap().len(), 1);
    let answers = at(&format!("/answers/{request}"));
    let route = "/v1/sessions/{id}/answers/{request}";
    ask("post", &answers, route, Some(json!({ "option": "nothing like it" }))).await;
    ask("post", &answers, route, Some(json!({ "option": "once" }))).await;
    ask("post", &answers, route, Some(json!({ "option": "once" }))).await;
    until_asked(&house, &format!("{}?after=120", at("/events"))).await;
    ask("post", &at("/cancel"), "/v1/sessions/{id}/cancel", None).await;
    for at in 0..=40 {
        let path = format!("/v1/sessions/{}/view?at={}", session["id"].as_str().unwrap(), at * 5);
        ask("get", &path, "/v1/sessions/{id}/view", None).await;
    }
    ask("get", &at("/view?at=99999"), "/v1/sessions/{id}/view", None).await;
    ask("get", &at("/events?format=json&limit=1000"), "/v1/sessions/{id}/events", None).await;
    ask("get", &at("/events?after=99999"), "/v1/sessions/{id}/events", None).await;
    ask("get", "/v1/events?format=json", "/v1/events", None).await;
    ask("get", "/v1/sessions", "/v1/sessions", None).await;
    ask("get", &at(""), "/v1/sessions/{id}", None).await;
    ask("delete", &at("/queue/trn_none"), "/v1/sessions/{id}/queue/{turn}", None).await;
    ask("delete", &at("?purge=true"), "/v1/sessions/{id}", None).await;
    ask("get", &at(""), "/v1/sessions/{id}", None).await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_parameter_is_told_what_it_must_be() {
    let house = House::open().await;
    let (_, session) = house.ask("post", "/v1/sessions", Some(json!({}))).await;
    let id = session["id"].as_str().unwrap();
    let end = session["position"].as_str().unwrap();
    let beyond = format!("The session ends at {end}; there is no 999 yet.");
    for (method, path, status, words) in [
        ("get", "/v1/sessions?limit=many".to_owned(), 400, "`limit` is a number from 1 to 1000."),
        ("get", "/v1/sessions?limit=0".to_owned(), 400, "`limit` is a number from 1 to 1000."),
        ("get", "/v1/sessions?limit=1001".to_owned(), 400, "`limit` is a number from 1 to 1000."),
        ("get", "/v1/events?limit=".to_owned(), 400, "`limit` is a number from 1 to 1000."),
        ("get", "/v1/events?wait=long".to_owned(), 400, "`wait` is a number from 0 on."),
        ("get", format!("/v1/sessions/{id}/events?skip=-1"), 400, "`skip` is a number from 0 on."),
        ("get", format!("/v1/sessions/{id}/events?format=json&limit=0"), 400, "`limit` is a number from 1 to 1000."),
        ("get", format!("/v1/sessions/{id}/view?turns=x"), 400, "`turns` is a number from 1 to 1000."),
        ("get", format!("/v1/sessions/{id}/view?turns=0"), 400, "`turns` is a number from 1 to 1000."),
        ("get", format!("/v1/sessions/{id}/view?turns=1000000"), 400, "`turns` is a number from 1 to 1000."),
        ("get", format!("/v1/sessions/{id}/view?at=now"), 400, "`at` is a number from 0 on."),
        ("get", format!("/v1/sessions/{id}/view?before=1.5"), 400, "`before` is a number from 0 on."),
        ("get", format!("/v1/sessions/{id}/view?at=999"), 410, &beyond),
        ("get", format!("/v1/sessions/{id}/view?before=999"), 410, &beyond),
        ("delete", format!("/v1/sessions/{id}?purge=yes"), 400, "`purge` is true or false."),
    ] {
        let (answered, answer) = house.ask(method, &path, None).await;
        assert_eq!((answered, &answer["error"]["message"]), (status, &json!(words)), "{path}");
    }
    for path in ["/v1/sessions?limit=1000", &format!("/v1/sessions/{id}/view?turns=1000&at={end}&before={end}")] {
        assert_eq!(house.ask("get", path, None).await.0, 200, "{path}");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_whether_there_are_more() {
    let house = House::open().await;
    for _ in 0..3 {
        house.ask("post", "/v1/sessions", Some(json!({}))).await;
    }
    let listed = async |query: &str| house.ask("get", &format!("/v1/sessions{query}"), None).await.1;
    let all = listed("").await;
    let ids = |page: &Value| page["sessions"].as_array().unwrap().iter().map(|s| s["id"].clone()).collect::<Vec<_>>();
    let (first, whole) = (listed("?limit=2").await, listed("?limit=3").await);
    assert_eq!((ids(&first).len(), first["next"].is_string()), (2, true));
    assert_eq!((&whole["next"], ids(&whole)), (&Value::Null, ids(&all)));
    let rest = listed(&format!("?limit=1&after={}", first["next"].as_str().unwrap())).await;
    assert_eq!((&rest["next"], [ids(&first), ids(&rest)].concat()), (&Value::Null, ids(&all)));
    house.close().await;
}

/// Reads on until somebody is asked, and says what the request is called.
async fn until_asked(house: &House, events: &str) -> String {
    let mark = if events.contains('?') { '&' } else { '?' };
    let path = format!("{events}{mark}format=json&limit=1000&wait=20");
    loop {
        let (_, page) = house.ask("get", &path, None).await;
        let asked = page["events"].as_array().unwrap().iter().find(|event| event["data"]["type"] == "permission_asked");
        if let Some(asked) = asked {
            return asked["data"]["data"]["request"].as_str().unwrap().to_owned();
        }
    }
}

/// As much of JSON Schema as the document uses. Stricter in one thing: what is not named may not be there.
struct Shapes(Value);

impl Shapes {
    fn check_answer(&self, method: &str, route: &str, status: u16, answer: &Value) {
        let responses = &self.0["paths"][route][method]["responses"];
        let response = self.resolve(&responses[status.to_string()]);
        assert!(!response.is_null(), "{method} {route} answered {status}, which is not documented: {answer}");
        let schema = &response["content"]["application/json"]["schema"];
        if schema.is_null() {
            assert!(answer.is_null(), "{method} {route} {status} has a body: {answer}");
        } else if let Err(why) = self.fits(schema, answer) {
            panic!("{method} {route} {status}: {why}");
        }
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let Some(name) = schema["$ref"].as_str() else { return schema };
        let target = self.0.pointer(name.strip_prefix('#').unwrap());
        self.resolve(target.unwrap_or_else(|| panic!("{name} leads nowhere")))
    }

    fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = &self.merged(schema);
        for choice in ["oneOf", "anyOf"] {
            let Some(schemas) = schema[choice].as_array() else { continue };
            if !schemas.iter().any(|schema| self.fits(schema, value).is_ok()) {
                return Err(format!("fits none of {choice}: {value}"));
            }
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            return Err(format!("{value} is not {wanted}"));
        }
        if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
            return Err(format!("{value} is not one of {}", schema["enum"]));
        }
        let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        if !types.iter().any(|name| name.as_str().is_none_or(|name| is_of_type(name, value))) {
            return Err(format!("{value} is not of type {}", schema["type"]));
        }
        for item in value.as_array().into_iter().flatten() {
            self.fits(&schema["items"], item)?;
        }
        self.fields_fit(schema, value)
    }

    fn fields_fit(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) else { return Ok(()) };
        for required in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(required.as_str().unwrap()) {
                return Err(format!("{required} is missing in {value}"));
            }
        }
        for (name, field) in fields {
            let schema = known.get(name).ok_or_else(|| format!("`{name}` is not documented, in {value}"))?;
            self.fits(schema, field).map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    /// A schema without references and `allOf` at its top.
    fn merged(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema).clone();
        let Some(parts) = schema["allOf"].as_array() else { return schema };
        let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
        for part in parts.iter().map(|part| self.merged(part)) {
            properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
            required.extend(part["required"].as_array().cloned().unwrap_or_default());
        }
        json!({ "type": "object", "properties": properties, "required": required })
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type is called {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_sessions_go_on_whatever_happens_between() {
    let house = House::open().await;
    let mut made = Vec::new();
    for n in 0..5 {
        let (_, session) = house.ask("post", "/v1/sessions", Some(json!({ "title": format!("{n}") }))).await;
        made.insert(0, session["id"].as_str().unwrap().to_owned());
    }
    let page = async |after: &str| {
        let (status, page) = house.ask("get", &format!("/v1/sessions?limit=2{after}"), None).await;
        assert_eq!(status, 200, "{page}");
        let ids = page["sessions"].as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["next"].as_str().map(|next| format!("&after={next}")))
    };
    let (ids, next) = page("").await;
    assert_eq!(ids, made[..2]);
    let (status, _) = house.ask("patch", &format!("/v1/sessions/{}", made[1]), Some(json!({ "title": "new" }))).await;
    assert_eq!(status, 200);
    let (ids, next) = page(&next.unwrap()).await;
    assert_eq!(ids, made[2..4], "what was changed is not told again");
    assert_eq!(page(&format!("&after={}", made[3])).await, (vec![made[4].clone()], None), "a session's id will do");
    assert_eq!(house.ask("delete", &format!("/v1/sessions/{}", made[3]), None).await.0, 204);
    assert_eq!(page(&next.unwrap()).await, (vec![made[4].clone()], None));
    let (status, answer) = house.ask("get", "/v1/sessions?after=ses_none", None).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("not_found")));
    house.close().await;
}
