//! Who is there to answer: the door says which clients look on, and a session that waits for a person knows whether one
//! could see it.
//!
//! Places are counted, clients are not known. Whoever waits hears a bell when somebody comes or goes; nobody polls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tolka_facts::SessionId;

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Session(SessionId),
    /// All sessions that work in a folder.
    Folder(String),
    Everywhere,
}

/// A client that is there and could answer, for as long as this is held.
#[derive(Debug)]
pub struct Attendance {
    room: Arc<Room>,
    place: Place,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.room.leave(&self.place);
    }
}

#[derive(Debug)]
pub(crate) struct Room {
    /// A std mutex: it is held for a look-up, never over an await.
    places: Mutex<HashMap<Place, usize>>,
    /// Rings when somebody comes or goes.
    bell: watch::Sender<u64>,
}

impl Room {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Room { places: Mutex::default(), bell: watch::Sender::new(0) })
    }

    pub(crate) fn attend(self: &Arc<Self>, place: Place) -> Attendance {
        *self.places().entry(place.clone()).or_default() += 1;
        self.ring();
        Attendance { room: self.clone(), place }
    }

    pub(crate) fn has(&self, place: &Place) -> bool {
        self.places().contains_key(place)
    }

    fn leave(&self, place: &Place) {
        let mut places = self.places();
        if let Some(count) = places.get_mut(place) {
            *count -= 1;
            if *count == 0 {
                places.remove(place);
            }
        }
        drop(places);
        self.ring();
    }

    fn ring(&self) {
        self.bell.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<Place, usize>> {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session's ear in the room.
#[derive(Debug)]
pub(crate) struct Ear {
    room: Arc<Room>,
    session: SessionId,
    rung: watch::Receiver<u64>,
}

impl Ear {
    pub(crate) fn new(room: Arc<Room>, session: SessionId) -> Self {
        let rung = room.bell.subscribe();
        Ear { room, session, rung }
    }

    /// Whether somebody is there who sees the session, which works in this folder. What comes after is heard.
    pub(crate) fn is_attended(&mut self, folder: &str) -> bool {
        self.rung.mark_unchanged();
        let places = self.room.places();
        [Place::Everywhere, Place::Session(self.session.clone()), Place::Folder(folder.to_owned())]
            .iter()
            .any(|place| places.contains_key(place))
    }

    /// Somebody came or went since [`Ear::is_attended`] was asked.
    pub(crate) async fn rings(&mut self) {
        // The room has the bell and is held here, so that it cannot be gone.
        let _ = self.rung.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_attended_by_those_who_see_it() {
        let room = Room::new();
        let mut ear = Ear::new(room.clone(), SessionId::from("ses_1"));
        assert!(!ear.is_attended("/w"));
        for (place, sees) in [
            (Place::Everywhere, true),
            (Place::Session(SessionId::from("ses_1")), true),
            (Place::Session(SessionId::from("ses_2")), false),
            (Place::Folder("/w".to_owned()), true),
            (Place::Folder("/other".to_owned()), false),
        ] {
            let one = room.attend(place.clone());
            let two = room.attend(place.clone());
            assert_eq!(ear.is_attended("/w"), sees, "{place:?}");
            drop(one);
            assert_eq!(ear.is_attended("/w"), sees, "one of two left {place:?}");
            drop(two);
            assert!(!ear.is_attended("/w"), "{place:?}");
        }
        assert!(room.places().is_empty());
    }

    #[tokio::test]
    async fn comings_and_goings_are_heard() {
        let room = Room::new();
        let mut ear = Ear::new(room.clone(), SessionId::from("ses_1"));
        ear.is_attended("/w");
        let here = room.attend(Place::Everywhere);
        ear.rings().await;
        assert!(ear.is_attended("/w"));
        drop(here);
        ear.rings().await;
        assert!(!ear.is_attended("/w"));
    }
}
