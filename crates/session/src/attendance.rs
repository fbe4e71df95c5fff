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
    /// Subagents at work, and whom they work for: what they ask is told there too. A std mutex, as above.
    led: Mutex<HashMap<SessionId, SessionId>>,
    /// Rings when somebody comes or goes.
    bell: watch::Sender<u64>,
}

impl Room {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Room { places: Mutex::default(), led: Mutex::default(), bell: watch::Sender::new(0) })
    }

    pub(crate) fn attend(self: &Arc<Self>, place: Place) -> Attendance {
        *self.places().entry(place.clone()).or_default() += 1;
        self.ring();
        Attendance { room: self.clone(), place }
    }

    /// Who sees the one session sees what the other asks, for as long as what is given is held.
    pub(crate) fn lead(self: &Arc<Self>, child: SessionId, parent: SessionId) -> Led {
        self.led().insert(child.clone(), parent);
        self.ring();
        Led { room: self.clone(), child }
    }

    /// The session and those that it works for.
    fn line(&self, session: &SessionId) -> Vec<SessionId> {
        let led = self.led();
        let mut line = vec![session.clone()];
        while let Some(parent) = line.last().and_then(|last| led.get(last)).filter(|parent| !line.contains(parent)) {
            line.push(parent.clone());
        }
        line
    }

    fn led(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, SessionId>> {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        self.led.lock().unwrap_or_else(PoisonError::into_inner)
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

/// A subagent at work for another session.
#[derive(Debug)]
pub(crate) struct Led {
    room: Arc<Room>,
    child: SessionId,
}

impl Drop for Led {
    fn drop(&mut self) {
        self.room.led().remove(&self.child);
        self.room.ring();
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
        let line = self.room.line(&self.session).into_iter().map(Place::Session);
        let seen: Vec<Place> = [Place::Everywhere, Place::Folder(folder.to_owned())].into_iter().chain(line).collect();
        let places = self.room.places();
        seen.iter().any(|place| places.contains_key(place))
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

    #[test]
    fn who_sees_a_parent_sees_what_its_subagents_ask() {
        let room = Room::new();
        let mut ear = Ear::new(room.clone(), SessionId::from("ses_grandchild"));
        let _there = room.attend(Place::Session(SessionId::from("ses_parent")));
        let lead = |child: &str, parent: &str| room.lead(SessionId::from(child), SessionId::from(parent));
        let _child = lead("ses_child", "ses_parent");
        assert!(!ear.is_attended("/w"));
        let led = lead("ses_grandchild", "ses_child");
        assert!(ear.is_attended("/w"));
        drop(led);
        assert!(!ear.is_attended("/w"));
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
