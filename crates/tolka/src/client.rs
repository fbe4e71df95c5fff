//! The little HTTP that commands need: JSON calls and a stream of events, over loopback.

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tolka_dialect::{SseEvent, SseReader};

#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: String,
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(url: &str, token: Option<String>) -> Result<Self> {
        let address = url.trim().strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let address =
            address.filter(|address| !address.is_empty()).with_context(|| format!("`{url}` is no address"))?;
        Ok(Client { address: address.to_owned(), token })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value> {
        self.call(Method::DELETE, path, None).await
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let response = self.send(method, path, body, "application/json").await?;
        let bytes = response.into_body().collect().await?.to_bytes();
        if bytes.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_slice(&bytes)?) }
    }

    pub(crate) async fn events(&self, path: &str) -> Result<Events> {
        let response = self.send(Method::GET, path, None, "text/event-stream").await?;
        Ok(Events { body: response.into_body(), reader: SseReader::default(), ready: Vec::new().into() })
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>, accept: &str) -> Result<Response<Incoming>> {
        let socket =
            TcpStream::connect(&self.address).await.with_context(|| format!("cannot reach {}", self.address))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(socket)).await?;
        // It lives as long as the response's body is read, and its errors come out there.
        tokio::spawn(connection);
        let mut request =
            Request::builder().method(method).uri(path).header("host", &self.address).header("accept", accept);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let bytes = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let response = sender.send_request(request.body(Full::new(Bytes::from(bytes)))?).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        let message = serde_json::from_slice::<Value>(&bytes).ok();
        let message = message.as_ref().and_then(|body| body["error"]["message"].as_str());
        if status == StatusCode::UNAUTHORIZED {
            bail!("the running server wants a token; pass it with --token or TOLKA_TOKEN");
        }
        Err(anyhow!("{}", message.unwrap_or(status.as_str())))
    }
}

pub(crate) struct Events {
    body: Incoming,
    reader: SseReader,
    ready: std::collections::VecDeque<SseEvent>,
}

impl Events {
    /// `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Result<Option<SseEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame?.into_data() {
                let mut events = Vec::new();
                self.reader.feed(&data, &mut events)?;
                self.ready.extend(events);
            }
        }
    }
}
