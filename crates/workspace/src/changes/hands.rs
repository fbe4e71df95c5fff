//! What our own hands make of files while somebody looks for what a command does.
//!
//! A look finds every change of a folder, also what the tools and restores of other sessions write meanwhile. Those know
//! what they did and tell of it themselves: it is not the command's.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Mark;

/// What comes beyond that is taken for the command's as well, and is kept as a conflict then.
const MOST: usize = 10_000;

/// One for the process: whoever looks at a folder must learn of all that write there. A std mutex: held for a look-up.
static NOTED: Mutex<Noted> = Mutex::new(Noted { watches: 0, deeds: Vec::new() });

struct Noted {
    watches: usize,
    /// In the order in which they were done; none while nobody watches.
    deeds: Vec<Deed>,
}

struct Deed {
    path: PathBuf,
    was: Option<Mark>,
    is: Option<Mark>,
}

/// As long as it is held, what our hands do is noted.
#[derive(Debug)]
pub struct Watch(());

impl Watch {
    /// To be begun before the first look.
    pub fn begin() -> Self {
        noted(|noted| noted.watches += 1);
        Watch(())
    }

    /// Whether a file became what it is by our hands and nobody else's. `path` is whole, without links.
    pub fn explains(&self, path: &Path, was: Option<Mark>, is: Option<Mark>) -> bool {
        noted(|noted| {
            let mut now = was;
            for deed in noted.deeds.iter().filter(|deed| deed.path == path) {
                if deed.was == now {
                    now = deed.is;
                }
            }
            now == is && was != is
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        noted(|noted| {
            noted.watches -= 1;
            if noted.watches == 0 {
                noted.deeds = Vec::new();
            }
        });
    }
}

/// Does something to files, and notes what became of them if somebody watches. The paths are whole. Blocks.
pub(crate) fn noting<T>(paths: &[PathBuf], work: impl FnOnce() -> T) -> T {
    if noted(|noted| noted.watches == 0) {
        return work();
    }
    let before: Vec<Option<Mark>> = paths.iter().map(|path| Mark::at(path)).collect();
    let done = work();
    let deed = |(path, was): (&PathBuf, Option<Mark>)| Deed { path: path.clone(), was, is: Mark::at(path) };
    let deeds: Vec<Deed> = paths.iter().zip(before).map(deed).filter(|deed| deed.was != deed.is).collect();
    noted(|noted| {
        let room = if noted.watches > 0 { MOST.saturating_sub(noted.deeds.len()) } else { 0 };
        noted.deeds.extend(deeds.into_iter().take(room));
    });
    done
}

fn noted<T>(look: impl FnOnce(&mut Noted) -> T) -> T {
    // Nothing panics while holding it; a poisoned lock would still guard sound data.
    look(&mut NOTED.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_our_hands_alone_did_is_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
        let ours = |name: &str, text: &str| noting(&[path(name)], || write(name, text));
        for name in ["ours", "theirs", "before", "between", "after", "gone"] {
            write(name, "0");
        }
        let watch = Watch::begin();
        let was = |name: &str| Mark::at(&path(name));
        let names = ["ours", "new", "theirs", "before", "between", "after", "gone", "same"];
        let before = names.map(was);
        ours("ours", "1");
        ours("ours", "ours, again");
        ours("new", "new");
        write("theirs", "theirs");
        write("before", "theirs");
        ours("before", "ours, later");
        ours("between", "1 of ours");
        write("between", "theirs, between");
        ours("between", "ours, at the end of all");
        ours("after", "1 of ours");
        write("after", "theirs, at last");
        noting(&[path("gone")], || std::fs::remove_file(path("gone")).unwrap());
        let explained =
            names.iter().zip(before).filter(|(name, before)| watch.explains(&path(name), *before, was(name)));
        assert_eq!(explained.map(|(name, _)| *name).collect::<Vec<_>>(), ["ours", "new", "gone"]);
    }
}
