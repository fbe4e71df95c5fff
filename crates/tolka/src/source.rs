//! Where a stream comes from: a file, a pipe or a server's answer; read as it comes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tolka_dialect::{Dialect, Guess};

const CHUNK: usize = 64 * 1024;
/// Whoever has said nothing that is known after so much will not.
const OPENING: usize = 256 * 1024;

pub(crate) struct Source {
    /// Read already, to find out the dialect.
    held: VecDeque<Bytes>,
    origin: Origin,
}

enum Origin {
    Pipe(mpsc::Receiver<io::Result<Bytes>>),
    Answer(Incoming),
}

impl Source {
    /// `-` is stdin.
    pub(crate) fn open(path: &str) -> Result<Self> {
        let input: Box<dyn Read + Send> = match path {
            "-" => Box::new(io::stdin()),
            path => Box::new(File::open(Path::new(path)).with_context(|| format!("cannot read {path}"))?),
        };
        // One chunk is read while another is told; a pipe that is read too far ahead would hide who is slow.
        let (sender, chunks) = mpsc::channel(1);
        // Nobody waits for it: a read of a terminal may never return, and the process must be able to end.
        std::thread::spawn(move || read(input, &sender));
        Ok(Source { held: VecDeque::new(), origin: Origin::Pipe(chunks) })
    }

    pub(crate) fn answer(body: Incoming) -> Self {
        Source { held: VecDeque::new(), origin: Origin::Answer(body) }
    }

    /// `None` when the stream is over.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>> {
        match self.held.pop_front() {
            Some(held) => Ok(Some(held)),
            None => self.read().await,
        }
    }

    /// The dialect by the first packets, which stay to be read. `None` if they do not say.
    pub(crate) async fn guess(&mut self) -> Result<Option<Dialect>> {
        let (mut guess, mut heard) = (Guess::default(), 0);
        while heard < OPENING {
            let Some(chunk) = self.read().await? else { break };
            heard += chunk.len();
            let known = guess.feed(&chunk);
            self.held.push_back(chunk);
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    async fn read(&mut self) -> Result<Option<Bytes>> {
        match &mut self.origin {
            Origin::Pipe(chunks) => Ok(chunks.recv().await.transpose()?),
            Origin::Answer(body) => loop {
                let Some(frame) = body.frame().await else { return Ok(None) };
                if let Ok(data) = frame?.into_data() {
                    return Ok(Some(data));
                }
            },
        }
    }
}

/// Until the end, an error, or nobody listens any more.
fn read(mut input: Box<dyn Read + Send>, chunks: &mpsc::Sender<io::Result<Bytes>>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_over = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || is_over {
            return;
        }
    }
}
