use std::task::Waker;

/// Who waits for the next chunk of a channel. Rounds: all are woken at once, and then there is nobody.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    round: u64,
    wakers: Vec<Waker>,
    /// Those who left before the round was over.
    free: Vec<usize>,
}

/// A place among the waiters, good for one round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    round: u64,
    index: usize,
}

impl Waiters {
    /// Waits with this waker: in the place that the ticket stands for, if it is of this round.
    pub(super) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) {
        if let Some(Ticket { round, index }) = *ticket
            && round == self.round
        {
            self.wakers[index].clone_from(waker);
            return;
        }
        let index = if let Some(index) = self.free.pop() {
            self.wakers[index].clone_from(waker);
            index
        } else {
            self.wakers.push(waker.clone());
            self.wakers.len() - 1
        };
        *ticket = Some(Ticket { round: self.round, index });
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        if ticket.round == self.round {
            // A waker keeps its task in memory.
            self.wakers[ticket.index].clone_from(Waker::noop());
            self.free.push(ticket.index);
        }
    }

    /// All who wait, to be woken when no lock is held.
    #[must_use]
    pub(super) fn all(&mut self) -> Vec<Waker> {
        self.round += 1;
        self.free.clear();
        let as_many = Vec::with_capacity(self.wakers.len());
        std::mem::replace(&mut self.wakers, as_many)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_who_waits_is_woken_once_a_round_and_who_left_is_not() {
        let (stays, goes) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (staying, going) = (Waker::from(stays.clone()), Waker::from(goes.clone()));
        let (mut waiters, mut first, mut second) = (Waiters::default(), None, None);
        waiters.wait(&mut first, &staying);
        waiters.wait(&mut first, &staying);
        waiters.wait(&mut second, &going);
        waiters.leave(second.unwrap());
        drop(going);
        assert_eq!(Arc::strong_count(&goes), 1, "who left is held no longer");
        let woken = waiters.all();
        assert_eq!(woken.len(), 2);
        woken.into_iter().for_each(Waker::wake);
        assert_eq!((stays.0.load(Ordering::Relaxed), goes.0.load(Ordering::Relaxed)), (1, 0));
        // A ticket of a round that is over takes nobody's place.
        waiters.leave(second.unwrap());
        waiters.wait(&mut second, &staying);
        waiters.wait(&mut first, &staying);
        assert_eq!(waiters.all().len(), 2);
    }

    #[test]
    fn places_of_those_who_left_are_taken_again() {
        let mut waiters = Waiters::default();
        for _ in 0..1000 {
            let mut ticket = None;
            waiters.wait(&mut ticket, Waker::noop());
            waiters.leave(ticket.unwrap());
        }
        assert_eq!(waiters.all().len(), 1);
    }
}
