use std::collections::{HashMap, VecDeque};

/// Remembers the last so many things by id; the oldest make room.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    known: HashMap<String, T>,
    order: VecDeque<String>,
    limit: usize,
    has_forgotten: bool,
}

impl<T> Recent<T> {
    pub(crate) fn of(limit: usize) -> Self {
        Recent { known: HashMap::new(), order: VecDeque::new(), limit, has_forgotten: false }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.known.get_mut(id)
    }

    /// As [`Recent::get_mut`], and what is asked for is the newest from now on.
    pub(crate) fn touch(&mut self, id: &str) -> Option<&mut T> {
        if self.order.back().is_some_and(|newest| newest != id)
            && let Some(known) = self.take_place(id)
        {
            self.order.push_back(known);
        }
        self.known.get_mut(id)
    }

    /// What has this id, perhaps from now on; it is the newest.
    pub(crate) fn touch_or_insert(&mut self, id: &str, new: impl FnOnce() -> T) -> &mut T {
        if self.get(id).is_none() {
            self.insert(id, new());
        }
        self.touch(id).expect("limits are above zero, so the newest is known")
    }

    pub(crate) fn insert(&mut self, id: &str, value: T) {
        self.admit(id, value);
    }

    /// As [`Recent::insert`], for who has to see off the one that made room.
    pub(crate) fn admit(&mut self, id: &str, value: T) -> Option<(String, T)> {
        if self.known.insert(id.to_owned(), value).is_some() {
            return None;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() <= self.limit {
            return None;
        }
        self.has_forgotten = true;
        self.known.remove_entry(&self.order.pop_front()?)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<T> {
        let value = self.known.remove(id)?;
        self.take_place(id);
        Some(value)
    }

    /// What is spoken of again is seldom old.
    fn take_place(&mut self, id: &str) -> Option<String> {
        let at = self.order.iter().rposition(|known| known == id)?;
        self.order.remove(at)
    }

    /// What is not known may have been forgotten.
    pub(crate) fn is_full(&self) -> bool {
        self.has_forgotten || self.order.len() >= self.limit
    }

    /// The oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.order.iter().filter_map(|id| Some((id.as_str(), self.known.get(id)?)))
    }

    /// Forgets all, the oldest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (String, T)> {
        let mut known = std::mem::take(&mut self.known);
        self.order.drain(..).filter_map(move |id| known.remove_entry(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_spoken_of_longest_ago_makes_room() {
        let mut recent = Recent::of(3);
        for id in ["a", "b", "c"] {
            assert_eq!(recent.admit(id, id.to_uppercase()), None);
        }
        recent.touch("a");
        assert_eq!(recent.admit("d", "D".to_owned()), Some(("b".to_owned(), "B".to_owned())));
        assert_eq!(recent.touch_or_insert("c", String::new), "C");
        assert_eq!(recent.iter().map(|(id, _)| id).collect::<Vec<_>>(), ["a", "d", "c"]);
        assert_eq!(recent.drain().map(|(id, _)| id).collect::<String>(), "adc");
    }

    #[test]
    fn what_is_removed_was_not_forgotten() {
        let mut recent = Recent::of(2);
        for _ in 0..10 {
            recent.insert("a", ());
            assert_eq!((recent.remove("a"), recent.remove("a")), (Some(()), None));
        }
        assert!(!recent.is_full());
        for id in ["a", "b", "c"] {
            recent.insert(id, ());
        }
        recent.remove("c");
        assert!(recent.is_full(), "nobody knows any more what `a` was");
    }
}
