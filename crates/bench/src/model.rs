//! A model on loopback that has its answers ready: OpenAI's chat completions, streamed.
//!
//! It reads nothing of what it is asked and makes nothing while it is asked, so what a step takes is the server's. A
//! request for which no answer is ready waits for one: so a row can look at the server between two steps.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What is not asked by then is not asked at all: the bench must end.
const PATIENCE: Duration = Duration::from_secs(60);
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// What every answer ends with, and no piece of one.
pub(crate) const END: &[u8] = b"\r\n0\r\n\r\n";

/// An answer as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Each is written at once.
    pieces: Vec<Vec<u8>>,
    /// Between two pieces.
    every: Duration,
}

impl Answer {
    /// Numbered pieces of text, a chunk for each as providers send them; all at once, or one after the other.
    pub(crate) fn tokens(count: usize, every: Duration) -> Self {
        let told = (0..count).map(|n| (json!({ "content": format!("{n}@0 words ") }), None));
        let told = told.chain([(json!({}), Some("stop"))]);
        Answer::of(told, every)
    }

    pub(crate) fn text(text: &str) -> Self {
        Answer::of([(json!({ "content": text }), None), (json!({}), Some("stop"))], Duration::ZERO)
    }

    pub(crate) fn call(number: usize, name: &str, input: &Value) -> Self {
        let function = json!({ "name": name, "arguments": input.to_string() });
        let call = json!({ "index": 0, "id": format!("call_{number}"), "type": "function", "function": function });
        Answer::of([(json!({ "tool_calls": [call] }), None), (json!({}), Some("tool_calls"))], Duration::ZERO)
    }

    fn of(told: impl IntoIterator<Item = (Value, Option<&'static str>)>, every: Duration) -> Self {
        let mut pieces = vec![HEAD.as_bytes().to_owned()];
        for (delta, finish) in told {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            let chunk = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
            pieces.push(chunked(&format!("data: {chunk}\n\n")));
        }
        let usage = json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 });
        let usage = json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage });
        let mut last = chunked(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
        last.extend_from_slice(&END[2..]);
        pieces.push(last);
        if every.is_zero() {
            pieces = vec![pieces.concat()];
        }
        Answer { pieces, every }
    }
}

fn chunked(event: &str) -> Vec<u8> {
    let mut chunk = String::with_capacity(event.len() + 8);
    // Writing to a String cannot fail.
    let _ = write!(chunk, "{:x}\r\n{event}\r\n", event.len());
    chunk.into_bytes()
}

/// Dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) address: String,
    desk: Arc<Desk>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Desk {
    inside: Mutex<Inside>,
    /// A request or an answer has come.
    news: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    answers: VecDeque<Answer>,
    /// Requests as they came, head and body: for the reference that asks the same.
    asked: Vec<Vec<u8>>,
    /// Requests that wait for an answer.
    waiting: usize,
    /// Answers that are being written.
    writing: usize,
}

impl Inside {
    fn take(&mut self) -> Option<Answer> {
        let answer = self.answers.pop_front()?;
        self.waiting -= 1;
        self.writing += 1;
        Some(answer)
    }
}

impl Desk {
    fn inside<T>(&self, look: impl FnOnce(&mut Inside) -> T) -> T {
        look(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there is something to be had.
    async fn until<T>(&self, mut look: impl FnMut(&mut Inside) -> Option<T>) -> T {
        loop {
            let news = self.news.notified();
            let mut news = std::pin::pin!(news);
            news.as_mut().enable();
            if let Some(found) = self.inside(&mut look) {
                return found;
            }
            news.await;
        }
    }
}

impl Model {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let desk = Arc::<Desk>::default();
        let serving = tokio::spawn(serve(listener, desk.clone()));
        Ok(Model { address, desk, serving })
    }

    /// The server's configuration in a folder, with this as its only model; gives where it is.
    pub(crate) fn configure(&self, folder: &Path) -> Result<String> {
        let config = format!(
            "model = \"bench/m\"\ntitles = \"prompt\"\n[limits]\nsteps = 1000\n[permissions]\n\"*\" = \"allow\"\n\
             [providers.bench]\nwire = \"openai\"\nbase_url = \"http://{}/v1\"\n\
             [[providers.bench.models]]\nid = \"m\"\ncontext = 1000000\n",
            self.address
        );
        let path = folder.join("tolka.toml");
        std::fs::write(&path, config)?;
        Ok(path.display().to_string())
    }

    pub(crate) fn ready(&self, answers: impl IntoIterator<Item = Answer>) {
        self.desk.inside(|inside| inside.answers.extend(answers));
        self.desk.news.notify_waiters();
    }

    /// Waits for a request for which nothing is ready.
    pub(crate) async fn asked(&self) -> Result<()> {
        let waiting = self.desk.until(|inside| (inside.waiting > 0 && inside.answers.is_empty()).then_some(()));
        timeout(PATIENCE, waiting).await.context("the model is not asked")
    }

    /// Waits until all answers have been written.
    pub(crate) async fn answered(&self) -> Result<()> {
        let written = self.desk.until(|inside| (inside.answers.is_empty() && inside.writing == 0).then_some(()));
        timeout(PATIENCE, written).await.context("the model's answer is not read")
    }

    /// All requests since the last look.
    pub(crate) fn requests(&self) -> Vec<Vec<u8>> {
        self.desk.inside(|inside| std::mem::take(&mut inside.asked))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, desk: Arc<Desk>) {
    let mut talking = tokio::task::JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        // A client that hangs up is no fault of the model.
        talking.spawn(talk(socket, desk.clone()));
    }
}

async fn talk(socket: TcpStream, desk: Arc<Desk>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    loop {
        let request = request(&mut socket).await?;
        desk.inside(|inside| {
            inside.asked.push(request);
            inside.waiting += 1;
        });
        desk.news.notify_waiters();
        let answer = desk.until(Inside::take).await;
        let mut ticks = (!answer.every.is_zero()).then(|| tokio::time::interval(answer.every));
        for piece in &answer.pieces {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            socket.write_all(piece).await?;
            socket.flush().await?;
        }
        desk.inside(|inside| inside.writing -= 1);
        desk.news.notify_waiters();
    }
}

async fn request(socket: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let (mut request, mut length) = (Vec::new(), 0);
    loop {
        let start = request.len();
        let read = socket.read_until(b'\n', &mut request).await?;
        anyhow::ensure!(read > 0, "the client went away");
        let line = String::from_utf8_lossy(&request[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let start = request.len();
    request.resize(start + length, 0);
    socket.read_exact(&mut request[start..]).await?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;

    #[tokio::test]
    async fn what_is_ready_is_answered_and_the_rest_waits() -> Result<()> {
        let model = Model::start().await?;
        model.ready([Answer::text("one")]);
        let mut socket = TcpStream::connect(&model.address).await?;
        for word in ["one", "two"] {
            socket.write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").await?;
            if word == "two" {
                model.asked().await?;
                model.ready([Answer::text("two")]);
            }
            let (mut answer, mut text) = (Vec::new(), Vec::new());
            while !answer.ends_with(END) {
                anyhow::ensure!(socket.read_buf(&mut answer).await? > 0, "cut off");
            }
            Body::default().feed(&answer, &mut text)?;
            let text = String::from_utf8(text)?;
            assert!(text.contains(&format!("\"content\":\"{word}\"")) && text.ends_with("data: [DONE]\n\n"), "{text}");
        }
        assert_eq!(model.requests(), vec![b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}".to_vec(); 2]);
        Ok(())
    }
}
