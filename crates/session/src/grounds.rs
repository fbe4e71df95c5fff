//! Who works in which folder now: turns and restores, by the folder that they change.
//!
//! What changes in a folder while one session works there is that session's. While two do, in the same folder or one inside
//! the other, it may be either's: each learns that the other was there.

use std::collections::{BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tolka_facts::SessionId;
use tolka_workspace::names::{meant, told};

/// A disk that is there answers in no time.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Grounds {
    /// A std mutex: it is held for a look-up, never over an await.
    stays: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    session: SessionId,
    /// Whom it works for; what a subagent does in its parent's turn is that turn's.
    parent: Option<SessionId>,
    folder: PathBuf,
    beside: BTreeSet<SessionId>,
}

/// Work in a folder, for as long as this is held.
#[derive(Debug)]
pub(crate) struct Stay {
    grounds: Arc<Grounds>,
    number: u64,
}

impl Grounds {
    /// `folder` is canonical.
    pub(crate) fn enter(self: &Arc<Self>, session: &SessionId, parent: Option<&SessionId>, folder: PathBuf) -> Stay {
        let mut stays = self.stays();
        let above = above(&stays, parent);
        let below: Vec<SessionId> =
            stays.iter().filter(|other| works_for(&stays, other, session)).map(|other| other.session.clone()).collect();
        let is_family = |other: &SessionId| other == session || above.contains(other) || below.contains(other);
        let number = stays.last().map_or(0, |last| last.number + 1);
        let mut beside = BTreeSet::new();
        for other in stays.iter_mut().filter(|other| !is_family(&other.session) && are_kin(&other.folder, &folder)) {
            other.beside.insert(session.clone());
            beside.insert(other.session.clone());
        }
        stays.push(Entry { number, session: session.clone(), parent: parent.cloned(), folder, beside });
        drop(stays);
        Stay { grounds: self.clone(), number }
    }

    /// Everybody who works somewhere.
    pub(crate) fn sessions(&self) -> HashSet<SessionId> {
        self.stays().iter().map(|entry| entry.session.clone()).collect()
    }

    fn stays(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        // Nothing panics while holding it; a poisoned lock would still guard sound data.
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay {
    /// The sessions that have worked there since this began, also those that have left.
    pub(crate) fn beside(&self) -> Vec<SessionId> {
        let stays = self.grounds.stays();
        let mine = stays.iter().find(|entry| entry.number == self.number);
        mine.map(|entry| entry.beside.iter().cloned().collect()).unwrap_or_default()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.grounds.stays().retain(|entry| entry.number != self.number);
    }
}

/// Those that somebody works for: each of them is at work itself, since it waits.
fn above(stays: &[Entry], parent: Option<&SessionId>) -> Vec<SessionId> {
    let mut line: Vec<SessionId> = Vec::new();
    let mut next = parent.cloned();
    while let Some(session) = next.take().filter(|session| !line.contains(session)) {
        next = stays.iter().find(|entry| entry.session == session).and_then(|entry| entry.parent.clone());
        line.push(session);
    }
    line
}

fn works_for(stays: &[Entry], entry: &Entry, session: &SessionId) -> bool {
    above(stays, entry.parent.as_ref()).contains(session)
}

/// Whether what changes in one folder can change the other.
pub(crate) fn are_kin(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// A workspace by its two names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Folder {
    pub(crate) named: PathBuf,
    pub(crate) canonical: PathBuf,
}

impl Folder {
    /// One that is not there, or on a disk that does not answer, has only the name that it goes by.
    pub(crate) async fn find(workspace: &str) -> Self {
        let named = PathBuf::from(workspace);
        let found = timeout(PATIENCE, tokio::fs::canonicalize(workspace)).await;
        let canonical = found.ok().and_then(Result::ok).unwrap_or_else(|| named.clone());
        Folder { named, canonical }
    }

    /// A path as somebody told it, from the workspace on; `None` if it is not inside.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        if path.is_relative() {
            return plain(path);
        }
        let path = plain(path)?;
        [&self.canonical, &self.named].into_iter().find_map(|root| path.strip_prefix(root).ok().map(Path::to_owned))
    }
}

impl Folder {
    /// The same of a path as facts have it.
    pub(crate) fn told_inside(&self, path: &str) -> Option<PathBuf> {
        let inside = self.inside(Path::new(path))?;
        Some(inside.to_str().map(meant).unwrap_or(inside))
    }

    /// A path inside, for facts that name whole ones.
    pub(crate) fn telling(&self, path: &Path) -> String {
        self.named.join(told(path)).to_string_lossy().into_owned()
    }
}

/// Without `.` and `..`, as the words have it: what is there may be gone. `None`: it leads out.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(stay: &Stay) -> Vec<String> {
        stay.beside().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn those_who_work_in_one_folder_learn_of_each_other() {
        let grounds = Arc::new(Grounds::default());
        let enter = |session: &str, folder: &str| grounds.enter(&SessionId::from(session), None, folder.into());
        let one = enter("ses_1", "/w");
        let inside = enter("ses_2", "/w/sub");
        let outside = enter("ses_3", "/w2");
        let above = enter("ses_4", "/");
        drop(inside);
        let late = enter("ses_5", "/w");
        assert_eq!(names(&one), ["ses_2", "ses_4", "ses_5"], "also who has left");
        assert_eq!(names(&outside), ["ses_4"]);
        assert_eq!(names(&above), ["ses_1", "ses_2", "ses_3", "ses_5"]);
        assert_eq!(names(&late), ["ses_1", "ses_4"], "not who had left before");
        drop((one, outside, above, late));
        assert!(grounds.stays().is_empty());
    }

    #[test]
    fn one_session_is_not_beside_itself() {
        let grounds = Arc::new(Grounds::default());
        let session = SessionId::from("ses_1");
        let (one, two) = (grounds.enter(&session, None, "/w".into()), grounds.enter(&session, None, "/w".into()));
        assert!(one.beside().is_empty() && two.beside().is_empty());
    }

    #[test]
    fn a_subagent_is_not_beside_those_it_works_for_but_beside_its_siblings() {
        let grounds = Arc::new(Grounds::default());
        let id = |name: &str| SessionId::from(name);
        let enter =
            |session: &str, parent: Option<&str>| grounds.enter(&id(session), parent.map(id).as_ref(), "/w".into());
        let parent = enter("ses_parent", None);
        let (one, two) = (enter("ses_one", Some("ses_parent")), enter("ses_two", Some("ses_parent")));
        let grandchild = enter("ses_grandchild", Some("ses_one"));
        assert!(parent.beside().is_empty());
        assert_eq!(names(&one), ["ses_two"]);
        assert_eq!(names(&two), ["ses_grandchild", "ses_one"]);
        assert_eq!(names(&grandchild), ["ses_two"]);
    }

    #[test]
    fn paths_are_known_however_they_are_told() {
        let folder = Folder { named: "/link".into(), canonical: "/real/w".into() };
        let inside = |path: &str| folder.inside(Path::new(path)).map(|path| path.to_string_lossy().into_owned());
        for path in ["a/b", "./a/b", "a/./x/../b", "/link/a/b", "/real/w/a/b", "/real/w/x/../a/b"] {
            assert_eq!(inside(path).as_deref(), Some("a/b"), "{path}");
        }
        for path in ["../a", "/real/other/a", "/link2/a", "a/../../b"] {
            assert_eq!(inside(path), None, "{path}");
        }
    }
}
