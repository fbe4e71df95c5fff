use std::collections::{HashMap, VecDeque};

/// Remembers the last so many things by id; the oldest make room.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    known: HashMap<String, T>,
    order: VecDeque<String>,
    limit: usize,
}

impl<T> Recent<T> {
    pub(crate) fn of(limit: usize) -> Self {
        Recent { known: HashMap::new(), order: VecDeque::new(), limit }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.known.get_mut(id)
    }

    pub(crate) fn insert(&mut self, id: &str, value: T) {
        if self.known.insert(id.to_owned(), value).is_some() {
            return;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What is not known may have been forgotten.
    pub(crate) fn is_full(&self) -> bool {
        self.order.len() >= self.limit
    }

    /// The oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.order.iter().filter_map(|id| Some((id.as_str(), self.known.get(id)?)))
    }
}
