//! The server: hyper, HTTP/1.1, an event to a chunk.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::script::Cut;
use crate::stage::{Outcome, Reply, Stage};
use crate::wire::{Step, Wire};

/// Of a flood, what is written at once.
const FLOOD: usize = 16 * 1024;

type Body = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) async fn serve(listener: TcpListener, stage: Arc<Stage>) {
    // They end with this set.
    let mut connections = JoinSet::new();
    loop {
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(problem) => {
                eprintln!("scripted: no connection: {problem}");
                continue;
            }
        };
        // Each piece is to be on its way at once, as providers do it.
        let _ = socket.set_nodelay(true);
        let stage = Arc::clone(&stage);
        connections.spawn(async move {
            let service = service_fn(move |request| handle(Arc::clone(&stage), request));
            // Clients that go away in the middle are part of the play.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(socket), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn handle(stage: Arc<Stage>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let headers: BTreeMap<String, String> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let path = parts.uri.path().to_owned();
    let Ok(body) = body.collect().await.map(|body| body.to_bytes()) else {
        return Ok(whole(400, &json!({"error": "the request was cut off"})));
    };
    let wire = match (&parts.method, path.as_str()) {
        (&Method::POST, "/v1/chat/completions") => Wire::OpenAi,
        (&Method::POST, "/v1/messages") => Wire::Anthropic,
        (&Method::GET, "/v1/models") => return Ok(whole(200, &models(&stage, &headers))),
        (&Method::GET, "/requests") => return Ok(whole(200, &json!(stage.received()))),
        (&Method::POST, gate) if gate.starts_with("/gates/") => {
            stage.open(gate.trim_start_matches("/gates/"));
            return Ok(whole(200, &json!({})));
        }
        _ => return Ok(whole(404, &json!({"error": {"message": format!("Invalid URL ({} {path})", parts.method)}}))),
    };
    let (number, reply) = stage.reply(wire, &path, headers, &body);
    Ok(match reply {
        Reply::Refusal { status, headers, body } => {
            stage.outcome(number, Outcome::Told);
            let mut response = whole(status, &body);
            for (name, value) in headers {
                if let (Ok(name), Ok(value)) = (name.parse::<hyper::header::HeaderName>(), value.parse()) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Reply::Stream(steps) => streamed(Telling { stage, number, steps: steps.into(), outcome: Outcome::Left }),
    })
}

fn models(stage: &Stage, headers: &BTreeMap<String, String>) -> Value {
    let is_anthropic = headers.contains_key("anthropic-version");
    let models = stage.models().into_iter().map(|id| match is_anthropic {
        true => json!({"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"}),
        false => json!({"id": id, "object": "model", "created": 1_760_000_000, "owned_by": "scripted"}),
    });
    let data: Vec<Value> = models.collect();
    match is_anthropic {
        true => json!({"data": data, "has_more": false}),
        false => json!({"object": "list", "data": data}),
    }
}

fn whole(status: u16, body: &Value) -> Response<Body> {
    // A refusal may have any body; a text is sent as it is.
    let (kind, text) = match body {
        Value::String(text) => ("text/plain", text.clone()),
        json => ("application/json", json.to_string()),
    };
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    response
}

/// An answer that is being told.
struct Telling {
    stage: Arc<Stage>,
    number: usize,
    steps: VecDeque<Step>,
    outcome: Outcome,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.stage.outcome(self.number, self.outcome);
    }
}

fn streamed(telling: Telling) -> Response<Body> {
    let frames = stream::unfold(telling, async |mut telling| {
        let frame = telling.next().await;
        frame.map(|frame| (frame.map(Frame::data), telling))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let kind = hyper::header::HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert("content-type", kind);
    response.headers_mut().insert("cache-control", hyper::header::HeaderValue::from_static("no-cache"));
    response
}

impl Telling {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.steps.pop_front() {
                Some(Step::Send(bytes)) => return Some(Ok(bytes)),
                Some(Step::Flood { event, times }) if times > 0 => {
                    let now = times.min((FLOOD / event.len().max(1)).max(1) as u64);
                    self.steps.push_front(Step::Flood { event: event.clone(), times: times - now });
                    let mut bytes = BytesMut::new();
                    (0..now).for_each(|_| bytes.extend_from_slice(&event));
                    return Some(Ok(bytes.freeze()));
                }
                Some(Step::Flood { .. }) => {}
                Some(Step::DelayMs(millis)) => tokio::time::sleep(Duration::from_millis(millis)).await,
                Some(Step::Gate(name)) => self.stage.gate(&name).await,
                Some(Step::Hang) => std::future::pending().await,
                Some(Step::Cut(Cut::Closed)) | None => {
                    self.outcome = Outcome::Told;
                    return None;
                }
                Some(Step::Cut(Cut::Reset)) => {
                    // Hyper writes what it has when it must wait.
                    tokio::task::yield_now().await;
                    self.outcome = Outcome::Told;
                    return Some(Err(io::Error::other("cut by the script")));
                }
            }
        }
    }
}
