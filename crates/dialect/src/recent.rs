use std::collections::{BTreeMap, HashMap};

/// Remembers the last so many things by id; the oldest make room.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    known: HashMap<String, (u64, T)>,
    /// By age, the oldest first.
    order: BTreeMap<u64, String>,
    newest: u64,
    limit: usize,
    has_forgotten: bool,
}

impl<T> Recent<T> {
    pub(crate) fn of(limit: usize) -> Self {
        Recent { known: HashMap::new(), order: BTreeMap::new(), newest: 0, limit, has_forgotten: false }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.known.get_mut(id).map(|(_, value)| value)
    }

    /// As [`Recent::get_mut`], and what is asked for is the newest from now on.
    pub(crate) fn touch(&mut self, id: &str) -> Option<&mut T> {
        let (age, value) = self.known.get_mut(id)?;
        if *age != self.newest
            && let Some(id) = self.order.remove(age)
        {
            self.newest += 1;
            *age = self.newest;
            self.order.insert(self.newest, id);
        }
        Some(value)
    }

    /// What has this id, perhaps from now on; it is the newest.
    pub(crate) fn touch_or_insert(&mut self, id: &str, new: impl FnOnce() -> T) -> &mut T {
        if self.get(id).is_none() {
            self.insert(id, new());
        }
        self.touch(id).expect("limits are above zero, so the newest is known")
    }

    /// What was known by this id before keeps its age.
    pub(crate) fn insert(&mut self, id: &str, value: T) {
        self.admit(id, value);
    }

    /// As [`Recent::insert`], for who has to see off the one that made room.
    pub(crate) fn admit(&mut self, id: &str, value: T) -> Option<(String, T)> {
        if let Some(known) = self.get_mut(id) {
            *known = value;
            return None;
        }
        self.newest += 1;
        self.known.insert(id.to_owned(), (self.newest, value));
        self.order.insert(self.newest, id.to_owned());
        if self.order.len() <= self.limit {
            return None;
        }
        self.has_forgotten = true;
        let (_, oldest) = self.order.pop_first()?;
        let (_, value) = self.known.remove(&oldest)?;
        Some((oldest, value))
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<T> {
        let (age, value) = self.known.remove(id)?;
        self.order.remove(&age);
        Some(value)
    }

    /// What is not known may have been forgotten.
    pub(crate) fn is_full(&self) -> bool {
        self.has_forgotten || self.order.len() >= self.limit
    }

    /// The oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.order.values().filter_map(|id| Some((id.as_str(), self.get(id)?)))
    }

    /// Forgets all, the oldest first.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (String, T)> {
        let (order, mut known) = (std::mem::take(&mut self.order), std::mem::take(&mut self.known));
        order.into_values().filter_map(move |id| known.remove(&id).map(|(_, value)| (id, value)))
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
