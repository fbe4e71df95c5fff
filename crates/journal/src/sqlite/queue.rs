//! The way to the writer: bounded, and closed without waiting for anybody.
//!
//! A channel would end only when its last sender is dropped, and a task that waits for room holds one: closing
//! from the thread that should run that task would wait for ever. Here closing turns everybody who waits away.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::JournalError;

/// A group commits at most as many facts, so one full group can wait while another is written; more would
/// only be memory, and a slower answer for whoever stands last.
const ROOM: usize = 256;

#[derive(Debug)]
pub(super) struct Queue<T> {
    /// A `std` mutex: it is held for a push or a take, never over an await.
    line: Mutex<Line<T>>,
    filled: Condvar,
    room: Semaphore,
}

#[derive(Debug)]
struct Line<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let line = Line { waiting: VecDeque::new(), closed: false };
        Queue { line: Mutex::new(line), filled: Condvar::new(), room: Semaphore::new(ROOM) }
    }

    /// Waits for room. Dropping the future before that takes nothing from anybody.
    pub(super) async fn push(&self, item: T) -> Result<(), JournalError> {
        // The permit comes back when the item is taken out.
        self.room.acquire().await.map_err(|_| JournalError::Closed)?.forget();
        let mut line = self.line();
        if line.closed {
            return Err(JournalError::Closed);
        }
        line.waiting.push_back(item);
        self.filled.notify_one();
        Ok(())
    }

    /// What has gathered, up to and with the item that is `enough`. It waits for a first item if asked to, for
    /// a second one never. `None`: closed, and everything has been taken.
    pub(super) fn take(&self, wait: bool, mut enough: impl FnMut(&T) -> bool) -> Option<Vec<T>> {
        let mut line = self.line();
        while wait && line.waiting.is_empty() && !line.closed {
            line = self.filled.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        if line.waiting.is_empty() && line.closed {
            return None;
        }
        let count = line.waiting.iter().position(&mut enough).map_or(line.waiting.len(), |last| last + 1);
        let taken = line.waiting.drain(..count).collect();
        drop(line);
        self.room.add_permits(count);
        Some(taken)
    }

    /// Nobody enters any more; what waits will still be taken.
    pub(super) fn close(&self) {
        self.line().closed = true;
        self.room.close();
        self.filled.notify_one();
    }

    /// For the end of the one who takes: what waits is dropped, and whoever waits for its answer learns it.
    pub(super) fn abandon(&self) {
        self.close();
        self.line().waiting.clear();
    }

    /// No code that runs under this lock can panic half way, so a poisoned one is as good as any.
    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn takes_what_has_gathered_and_turns_away_who_comes_late() {
        let queue = Queue::new();
        for n in 0..5 {
            queue.push(n).await.unwrap();
        }
        assert_eq!(queue.take(true, |n| *n == 3), Some(vec![0, 1, 2, 3]));
        queue.close();
        assert!(matches!(queue.push(9).await, Err(JournalError::Closed)));
        assert_eq!(queue.take(true, |_| false), Some(vec![4]));
        assert_eq!(queue.take(true, |_| false), None);
    }

    #[tokio::test]
    async fn a_full_queue_can_be_closed_while_somebody_waits_for_room() {
        let queue = Queue::new();
        for n in 0..ROOM {
            queue.push(n).await.unwrap();
        }
        let mut late = Box::pin(queue.push(ROOM));
        assert!(futures_poll_once(late.as_mut()).await.is_none());
        queue.close();
        assert!(matches!(late.await, Err(JournalError::Closed)));
        assert_eq!(queue.take(true, |_| false).map(|taken| taken.len()), Some(ROOM));
    }

    async fn futures_poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
