//! A server that is a program: a line each way is a message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::McpError;
use crate::lines::{Line, Lines};
use crate::pace::Pace;
use crate::peer::{Heard, Peer};
use crate::ways::Piped;

/// What is kept of its stderr: its last words.
const TAIL: usize = 4 << 10;
/// For the last words of a program whose output has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// As many strikes as a message has that is far too long: a dozen of them are no accident.
const TOO_LONG: u32 = 80;

/// The end of what a program writes for people.
#[derive(Debug, Default)]
pub(crate) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }

    pub(crate) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// Runs the talk with a program in tasks of `tasks`, until it ends; `ended` is told why.
pub(crate) fn talk(
    program: Piped,
    peer: Arc<Peer>,
    tail: Arc<Tail>,
    out: (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>),
    ended: watch::Sender<Option<McpError>>,
    tasks: &mut JoinSet<()>,
) {
    let Piped { stdin, stdout, stderr, leash } = program;
    let (to_it, from_us) = out;
    let (silent, mut is_silent) = watch::channel(false);
    tasks.spawn(async move {
        follow(stderr, &tail).await;
        silent.send_replace(true);
    });
    tasks.spawn(write(stdin, from_us));
    tasks.spawn(async move {
        let why = read(stdout, &peer, &to_it).await;
        // It dies and says why at once, but in two pipes.
        let _ = timeout(LAST_WORDS, is_silent.wait_for(|silent| *silent)).await;
        drop(leash);
        peer.give_up(&why);
        ended.send_replace(Some(why));
    });
}

async fn read(stdout: impl AsyncRead + Unpin, peer: &Peer, out: &mpsc::Sender<Vec<u8>>) -> McpError {
    let mut lines = Lines::new(stdout);
    let mut pace = Pace::new();
    loop {
        let (heard, size) = match lines.next().await {
            Ok(Some(Line::Whole(line))) if line.trim_ascii().is_empty() => continue,
            Ok(Some(Line::Whole(line))) => (peer.hear(line), line.len()),
            Ok(Some(Line::TooLong(size))) => {
                // Nobody can tell whose answer it was.
                let most = crate::lines::LONGEST >> 20;
                let why = format!("a message of {size} bytes, and {} are the most", most << 20);
                peer.give_up(&McpError::Unreadable(why));
                if (1..TOO_LONG).any(|_| pace.is_over(&Heard::Nonsense)) {
                    return McpError::flooded();
                }
                (Heard::Nonsense, 0)
            }
            Ok(None) => return McpError::Gone("it ended".to_owned()),
            Err(error) => return McpError::Gone(error.to_string()),
        };
        if pace.is_over(&heard) {
            return McpError::flooded();
        }
        if let Heard::Reply(reply) = heard {
            // A server that does not read has no use for answers.
            drop(out.try_send(reply));
        }
        pace.keep(size).await;
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, mut out: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut message) = out.recv().await {
        message.push(b'\n');
        // That it reads no more is noticed by those who wait for an answer, and by its end.
        if stdin.write_all(&message).await.is_err() || stdin.flush().await.is_err() {
            break;
        }
    }
}

async fn follow(mut stderr: impl AsyncRead + Unpin, tail: &Tail) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        tail.add(&piece[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_words_are_kept() {
        let tail = Tail::default();
        for n in 0..10_000 {
            tail.add(format!("line {n}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= TAIL && text.ends_with("line 9999"), "{text}");
    }

    #[tokio::test]
    async fn nonsense_without_end_is_the_end() {
        let (peer, (out, _kept)) = (Peer::new("/w".as_ref()), mpsc::channel(1));
        let flood = "nonsense\n".repeat(5_000);
        assert_eq!(read(flood.as_bytes(), &peer, &out).await, McpError::flooded());
    }
}
