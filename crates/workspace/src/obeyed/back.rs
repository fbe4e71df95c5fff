//! Puts back what git obeys, as an earlier look found it.
//!
//! Only what a later look found is displaced: what somebody has changed since then stays, and so does what nobody looked
//! at. The kernel swaps the old and the new in one, and what came out is compared; if it is not what was expected, it is
//! swapped back.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, mkdirat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::Obeyed;
use super::find::Kind;
use super::see::{Says, see};
use crate::files::{Like, Part, any_part_name, move_new};
use crate::folder::Place;

impl Obeyed {
    /// Makes these places what they were, each of which `now` found different. Gives back those that could not be made so,
    /// or that have changed since `now`. A whole repository is neither made nor removed; but what took the place of one is
    /// taken away. Blocks.
    pub fn put_back(&self, now: &Obeyed, changed: &[PathBuf]) -> Vec<PathBuf> {
        changed.iter().filter(|path| self.put_one_back(now, path).is_err()).cloned().collect()
    }

    /// Whether a whole repository was found there, which nobody removes.
    pub fn is_repository(&self, path: &Path) -> bool {
        self.is_whole(path) && self.found.get(path) == Some(&Says::Folder)
    }

    /// The same of one that is not the workspace's own: whatever takes its place is another one that is new.
    pub fn is_another(&self, path: &Path) -> bool {
        self.is_root(path, Kind::Beside) && self.found.get(path) == Some(&Says::Folder)
    }

    fn is_whole(&self, path: &Path) -> bool {
        self.is_root(path, Kind::Own) || self.is_root(path, Kind::Beside)
    }

    fn put_one_back(&self, now: &Obeyed, path: &Path) -> io::Result<()> {
        let (was, is) = (self.found.get(path), now.found.get(path));
        if was == is {
            return Ok(());
        }
        let place = self.place(path)?;
        if self.is_whole(path) && (was == Some(&Says::Folder) || is == Some(&Says::Folder)) {
            if is != Some(&Says::Folder) {
                displace(&place, is)?;
            }
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if is == Some(&Says::Folder) {
            // What is in it goes first, as far as it was seen: a folder that has more in it stays.
            now.inside(path).try_for_each(|inside| self.put_one_back(now, inside))?;
        }
        match (was, is) {
            (None, Some(Says::Folder)) => Ok(unlinkat(&place.folder, &place.name, AtFlags::REMOVEDIR)?),
            (None, _) => displace(&place, is),
            (Some(Says::Folder), _) => {
                put_folder(&place, is)?;
                self.inside(path).try_for_each(|inside| self.put_one_back(now, inside))
            }
            (Some(Says::Link(target)), None) => Ok(symlinkat(target, &place.folder, &place.name)?),
            (Some(Says::Link(target)), Some(is)) => {
                let aside = Aside::new(&place);
                symlinkat(target, &place.folder, &aside.name)?;
                exchange(&place, &aside.name, is)
            }
            (Some(Says::File(..)), _) => {
                let (content, about) = self.kept.get(path).ok_or(io::ErrorKind::FileTooLarge)?;
                let part = Part::new(&place, content, Like::File(about))?;
                match is {
                    None => Ok(part.put_new(&place)?),
                    Some(is) => exchange(&place, part.name(), is),
                }
            }
            (Some(Says::Other(..)), _) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn inside(&self, path: &Path) -> impl Iterator<Item = &Path> {
        self.found.keys().map(PathBuf::as_path).filter(move |inside| inside.parent() == Some(path))
    }
}

fn put_folder(place: &Place, is: Option<&Says>) -> io::Result<()> {
    let mode = Mode::from_raw_mode(0o777);
    let Some(is) = is else { return Ok(mkdirat(&place.folder, &place.name, mode)?) };
    let aside = Aside::new(place);
    mkdirat(&place.folder, &aside.name, mode)?;
    exchange(place, &aside.name, is)
}

/// A name beside a place, for what is on its way in or out. What is left there goes when this is dropped, but for a
/// folder with something in it.
struct Aside<'a> {
    place: &'a Place,
    name: String,
}

impl<'a> Aside<'a> {
    fn new(place: &'a Place) -> Self {
        Aside { place, name: any_part_name() }
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        take_away(self.place, &self.name);
    }
}

fn take_away(place: &Place, name: &str) {
    if unlinkat(&place.folder, name, AtFlags::empty()).is_err() {
        let _ = unlinkat(&place.folder, name, AtFlags::REMOVEDIR);
    }
}

/// Takes away what is at a place, if it is this.
fn displace(place: &Place, is: Option<&Says>) -> io::Result<()> {
    let Some(is) = is else { return Ok(()) };
    let seen = see(&place.folder, &place.name).filter(|seen| seen.says == *is).ok_or(Errno::AGAIN)?;
    let aside = Aside::new(place);
    renameat(&place.folder, &place.name, &place.folder, &aside.name)?;
    if same(place, &aside.name, is, seen.about.st_ino) {
        return Ok(());
    }
    move_new(&place.folder, aside.name.as_ref(), &place.name)?;
    Err(Errno::AGAIN.into())
}

/// Puts what is called `new` in a place, if this is there.
fn exchange(place: &Place, new: &str, is: &Says) -> io::Result<()> {
    let seen = see(&place.folder, &place.name).filter(|seen| seen.says == *is).ok_or(Errno::AGAIN)?;
    match swap(place, new) {
        Ok(()) if same(place, new, is, seen.about.st_ino) => {
            take_away(place, new);
            Ok(())
        }
        Ok(()) => {
            swap(place, new)?;
            Err(Errno::AGAIN.into())
        }
        // Not every file system knows how.
        Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(&place.folder, new, &place.folder, &place.name)?),
        Err(error) => Err(error.into()),
    }
}

/// Whether what was moved away is what was there. Times are new with every move.
fn same(place: &Place, name: &str, is: &Says, number: u64) -> bool {
    see(&place.folder, name.as_ref())
        .is_some_and(|there| there.about.st_ino == number && (matches!(is, Says::Other(..)) || there.says == *is))
}

#[cfg(target_os = "linux")]
fn swap(place: &Place, other: &str) -> rustix::io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    renameat_with(&place.folder, other, &place.folder, &place.name, RenameFlags::EXCHANGE)
}

#[cfg(not(target_os = "linux"))]
fn swap(_: &Place, _: &str) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}
