//! One workspace's git folder.
//!
//! A killed Tolka may leave a git behind that still runs. Objects and refs it may go on writing: they
//! are named by their content. The index is another matter, so each run has one by a name of its own,
//! which begins as the last run's: whatever is left of an earlier run can neither hold it locked nor
//! replace it.
//!
//! A save waits for the disk once, at its end: every git of it writes in order ([`IN_ORDER`]), and the ref that comes
//! last is synced, and with it all that was written before. A power cut before that leaves no ref, and no object that
//! has its name without its content.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tokio::time::Instant;
use tolka_facts::{Hash, SessionId, Time};

use super::batch::{Present, batches};
use super::files::{self, Identity, blocking};
use super::git::{Git, Halt, IN_ORDER, Output};
use super::left_out::{self, About};
use super::listing::{Listing, Scope, removals, shown};
use super::modes::Looked;
use super::place::Place;
use super::seed;
use super::space::{self, Thrift};
use super::{Caps, CheckpointError, LeftOut, Saved};

/// So many files are stored in one pack and not each in a file of its own, which takes a fraction of the time and room.
/// Fewer are not: every pack makes all that is read a little slower.
const MANY: usize = 100;
const TOGETHER: &[(&str, &str)] =
    &[("GIT_CONFIG_COUNT", "2"), ("GIT_CONFIG_KEY_1", "core.bigFileThreshold"), ("GIT_CONFIG_VALUE_1", "1")];

/// Where the refs of a session are.
#[derive(Debug)]
pub(super) struct Keep(String);

impl Keep {
    pub(super) fn new(session: &SessionId) -> Self {
        let name = session.as_str();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        // Every id that Tolka makes is plain; for others there are rules in git about what a ref may be called.
        match !name.is_empty() && name.len() <= 100 && name.bytes().all(is_plain) {
            true => Keep(format!("refs/tolka/{name}")),
            false => Keep(format!("refs/tolka/{}", Hash::of(name.as_bytes()).as_str())),
        }
    }

    pub(super) fn of(&self, commit: &str) -> String {
        format!("{}/{commit}", self.0)
    }
}

/// What a store holds when a session is forgotten.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Snapshots of other sessions.
    Others,
    /// It is gone: whatever an index kept of the workspace was for nobody.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Store {
    git: Git,
    scope: Scope,
    /// By whoever made it, until the first tree.
    seen: Option<Looked>,
    /// Good for everybody who had asked before it was begun, and so waited for it: many prompts at once cost little
    /// more than one.
    last: Option<Tree>,
    /// A restore wrote files since the last save: what they hold is stored already, and git finds it by its name.
    is_back: bool,
}

#[derive(Debug)]
struct Tree {
    began: Instant,
    name: String,
    files: u64,
    left_out: Vec<LeftOut>,
    looked: Looked,
    /// The index that it was made from.
    index: Option<Identity>,
}

/// What an index had to learn, and what it leaves out.
#[derive(Debug)]
struct News {
    learnt: HashSet<Vec<u8>>,
    left_out: Vec<LeftOut>,
}

/// What a save is asked for.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) words: String,
    pub(super) same_as: Option<String>,
}

/// A snapshot, and whether its ref is new.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) saved: Saved,
    pub(super) is_new: bool,
}

impl Store {
    pub(super) async fn open(place: Place, caps: Caps, run: &str, halt: &Halt) -> Result<Self, CheckpointError> {
        let Place { workspace, store, own_data } = place;
        let index = store.join(format!("index.{run}"));
        let git = Git { dir: store, index, workspace };
        let dir = git.dir.clone();
        let is_there = blocking(move || Ok(dir.exists())).await?;
        let seen = if is_there { None } else { create(&git, caps, run, halt).await? };
        let (dir, index) = (git.dir.clone(), git.index.clone());
        let held = blocking(move || {
            files::note_caps(&dir, &caps)?;
            files::adopt_index(&dir, &index).map_err(CheckpointError::storage(&dir))?;
            Ok(seed::held(&dir))
        })
        .await?;
        Ok(Store { git, scope: Scope { own_data, caps, held: held.into() }, seen, last: None, is_back: false })
    }

    /// Somebody wrote into the workspace: what was seen before is good for nobody.
    pub(super) fn moved(&mut self) {
        (self.last, self.seen) = (None, None);
        self.is_back = true;
    }

    /// What a restore made stays in sight, whatever rules there are: else nobody could take it back. Blocks.
    pub(super) fn holds(&mut self) {
        self.scope.held = seed::held(&self.git.dir).into();
    }

    /// From now on these are saved though they are ignored.
    pub(super) async fn hold_on(&mut self, paths: Vec<Vec<u8>>) -> Result<(), CheckpointError> {
        let dir = self.git.dir.clone();
        let held = blocking(move || seed::hold(&dir, paths).map(|_| seed::held(&dir)));
        self.scope.held = held.await?.into();
        Ok(())
    }

    pub(super) async fn save(&mut self, keep: &Keep, wish: &Wish, halt: &Halt) -> Result<Made, CheckpointError> {
        let tree = match self.last.take() {
            Some(tree) if tree.began >= halt.asked => tree,
            before => self.tree(before, halt).await?,
        };
        self.is_back = false;
        let commit = match &wish.same_as {
            Some(same) if is_same(&self.git, &tree, same, halt).await? => same.clone(),
            _ => commit(&self.git, &tree, &wish.words, halt).await?,
        };
        let (files, left_out) = (tree.files, tree.left_out.clone());
        self.last = Some(tree);
        let (dir, name, target) = (self.git.dir.clone(), keep.of(&commit), commit.clone());
        let is_new = match blocking(move || files::keep(&dir, &name, &target)).await {
            Ok(is_new) => is_new,
            Err(error) => {
                // Half of it may be there.
                self.discard(keep, &commit).await;
                return Err(error);
            }
        };
        Ok(Made { saved: Saved { commit, files, left_out }, is_new })
    }

    /// Removes a ref that has just been made, or half made: it is a file of its own until somebody packs it.
    pub(super) async fn discard(&self, keep: &Keep, commit: &str) {
        let path = self.git.dir.join(keep.of(commit));
        let removed = blocking(move || {
            files::remove_file(&path)?;
            files::remove_file(&path.with_added_extension("lock"))
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "a checkpoint that nobody wants stays until its session is purged");
        }
    }

    pub(super) async fn forget(&mut self, keep: &Keep, halt: &Halt) -> Result<Left, CheckpointError> {
        let git = self.alone();
        let folder = git.dir.join(&keep.0);
        // Before anything that can fail: without its refs the next session that is forgotten takes the rest along.
        blocking(move || files::remove_folder(&folder)).await?;
        // Somebody's `git gc` may have packed refs.
        let packed = git.run(&["for-each-ref", "--format=%(refname)", &keep.0], b"", halt).await?.line();
        let packed: Vec<String> = packed.lines().map(str::to_owned).collect();
        space::remove(&git, &packed, Thrift::Whole, halt).await
    }

    /// Git on the store alone, to clear it: the workspace may be gone.
    pub(super) fn alone(&mut self) -> Git {
        // Its objects may go.
        self.last = None;
        Git { dir: self.git.dir.clone(), index: self.git.index.clone(), workspace: self.git.dir.clone() }
    }

    /// The index of an unchanged workspace is the one that the tree before was made from, and so is the tree.
    async fn tree(&mut self, before: Option<Tree>, halt: &Halt) -> Result<Tree, CheckpointError> {
        let began = Instant::now();
        let (dir, index) = (self.git.dir.clone(), self.git.index.clone());
        blocking(move || files::sweep(&dir, &index)).await?;
        let mut looked = before.as_ref().map(|tree| tree.looked.clone()).or(self.seen.take());
        let news = match self.catch_up(halt).await {
            // A file may go between the listing and the reading of it. Once is chance.
            Err(CheckpointError::Git { .. } | CheckpointError::Unreadable { .. }) => {
                // It may have learnt some already.
                looked = None;
                self.catch_up(halt).await?
            }
            result => result?,
        };
        let News { learnt, mut left_out } = news;
        let look = self.look(looked, learnt);
        if let (Some(tree), Some(index)) = (before, self.identity().await?)
            && tree.index.as_ref() == Some(&index)
        {
            return Ok(Tree { began, left_out, looked: look.await?, ..tree });
        }
        let (looked, name) = tokio::join!(look, write(&self.git, &[], &["write-tree"], b"", halt));
        let looked = looked?;
        let name = match name {
            // Only here does git find out that an object in the index is not there: it was never written, on a full disk
            // for one, or went from the repository while it was linked. The index would go on saying that it is: it is
            // made anew.
            Err(CheckpointError::Git { command, words }) => {
                tracing::warn!(%command, %words, "the index of a checkpoint store names what is not there");
                self.drop_index().await?;
                left_out = self.catch_up(halt).await?.left_out;
                let again = write(&self.git, &[], &["write-tree"], b"", halt).await;
                if again.is_err() {
                    self.drop_index().await?;
                }
                again?.line()
            }
            tree => tree?.line(),
        };
        let (files, index) = (self.entries().await?, self.identity().await?);
        Ok(Tree { began, name, files, left_out, looked, index })
    }

    async fn look(&self, before: Option<Looked>, learnt: HashSet<Vec<u8>>) -> Result<Looked, CheckpointError> {
        let (workspace, index) = (self.git.workspace.clone(), self.git.index.clone());
        blocking(move || Ok(Looked::take(&workspace, &index, before.as_ref(), &learnt))).await
    }

    async fn identity(&self) -> Result<Option<Identity>, CheckpointError> {
        let index = self.git.index.clone();
        blocking(move || Ok(Identity::of(&index))).await
    }

    /// Makes the index say what the workspace holds.
    async fn catch_up(&mut self, halt: &Halt) -> Result<News, CheckpointError> {
        let mut listing = self.list(halt).await?;
        if !listing.is_empty() {
            self.bound(&listing).await?;
            self.learn(&mut listing, halt).await?;
        }
        let learnt = listing.present.into_iter().map(|present| present.path).collect();
        Ok(News { learnt, left_out: left_out::sorted(listing.left_out)? })
    }

    /// Before anything is read.
    async fn bound(&self, listing: &Listing) -> Result<(), CheckpointError> {
        let (most, known) = (self.scope.caps.most_files, self.entries().await?);
        let files = (known + listing.new).saturating_sub(listing.absent.len() as u64);
        if files > most { Err(CheckpointError::TooMany { files, most }) } else { Ok(()) }
    }

    async fn entries(&self) -> Result<u64, CheckpointError> {
        let index = self.git.index.clone();
        blocking(move || files::entries(&index).map_err(CheckpointError::storage(index))).await
    }

    /// It is made anew: it is only a cache.
    async fn drop_index(&self) -> Result<(), CheckpointError> {
        let index = self.git.index.clone();
        blocking(move || files::remove_file(&index)).await
    }

    /// The differences, with all nested repositories opened up.
    async fn list(&mut self, halt: &Halt) -> Result<Listing, CheckpointError> {
        let listing = self.list_as_it_is(halt).await?;
        if self.hold(&listing.ignored).await? { self.list_as_it_is(halt).await } else { Ok(listing) }
    }

    /// What the person's repository tracks is saved on when a rule comes to ignore it, as git itself goes on with it.
    /// Whether there is any that was not known.
    async fn hold(&mut self, ignored: &[Vec<u8>]) -> Result<bool, CheckpointError> {
        if ignored.is_empty() {
            return Ok(false);
        }
        let (dir, workspace, mut ignored) = (self.git.dir.clone(), self.git.workspace.clone(), ignored.to_vec());
        let is_news = blocking(move || {
            let tracked = seed::tracked(&workspace).unwrap_or_default();
            ignored.retain(|path| tracked.contains(path));
            seed::hold(&dir, ignored)
        });
        if !is_news.await? {
            return Ok(false);
        }
        let dir = self.git.dir.clone();
        self.scope.held = blocking(move || Ok(seed::held(&dir))).await?.into();
        Ok(true)
    }

    async fn list_as_it_is(&self, halt: &Halt) -> Result<Listing, CheckpointError> {
        let mut listing = match Listing::take(&self.git, &self.scope, halt).await {
            // Listing reads little but the index, which may be damaged. Without one it fails in the same way again.
            Err(CheckpointError::Git { command, words }) => {
                tracing::warn!(%command, %words, "the index of a checkpoint store is made anew");
                self.drop_index().await?;
                Listing::take(&self.git, &self.scope, halt).await?
            }
            result => result?,
        };
        let mut seeded = Vec::new();
        while let Some(first) = listing.nested.first() {
            if listing.nested == seeded {
                return Err(CheckpointError::Nested { path: shown(first) });
            }
            write(&self.git, &[], &["update-index", "--replace", "-z", "--index-info"], &listing.seeds(), halt).await?;
            seeded = listing.nested;
            listing = Listing::take(&self.git, &self.scope, halt).await?;
        }
        Ok(listing)
    }

    async fn learn(&self, listing: &mut Listing, halt: &Halt) -> Result<(), CheckpointError> {
        self.remove(&listing.absent, halt).await?;
        for batch in batches(&listing.present) {
            let Err(error) = self.take_in(batch, halt).await else { continue };
            let refused = self.refused(error, batch).await?;
            let is_refused = |present: &&Present| {
                let path = OsStr::from_bytes(&present.path);
                refused.iter().any(|left| left.path.as_os_str() == path)
            };
            let (out, rest): (Vec<&Present>, Vec<&Present>) = batch.iter().partition(is_refused);
            // What the index says of them is not what they hold now.
            self.remove(&out.into_iter().map(|present| present.path.clone()).collect::<Vec<_>>(), halt).await?;
            self.take_in(&rest.into_iter().cloned().collect::<Vec<_>>(), halt).await?;
            listing.left_out.extend(refused);
        }
        self.refuse_references(&listing.present, halt).await
    }

    async fn remove(&self, paths: &[Vec<u8>], halt: &Halt) -> Result<(), CheckpointError> {
        if paths.is_empty() {
            return Ok(());
        }
        write(&self.git, &[], &["update-index", "-z", "--index-info"], &removals(paths), halt).await.map(drop)
    }

    async fn take_in(&self, batch: &[Present], halt: &Halt) -> Result<(), CheckpointError> {
        let paths = batch.iter().map(|present| present.path.as_slice()).collect::<Vec<_>>().join(&0);
        let args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        let surroundings = if batch.len() < MANY || self.is_back { &[] } else { TOGETHER };
        write(&self.git, surroundings, &args, &paths, halt).await.map(drop)
    }

    /// Those of a batch that git could not take in because they cannot be read. If there are none, it failed for
    /// another reason.
    async fn refused(&self, error: CheckpointError, batch: &[Present]) -> Result<Vec<LeftOut>, CheckpointError> {
        if !matches!(error, CheckpointError::Git { .. }) {
            return Err(error);
        }
        let (workspace, batch) = (self.git.workspace.clone(), batch.to_vec());
        let refused = blocking(move || Ok(files::refused(&workspace, &batch))).await?;
        if refused.is_empty() { Err(error) } else { Ok(refused) }
    }

    /// A folder that has just become a repository would be a mere reference: a snapshot without its files.
    async fn refuse_references(&self, learnt: &[Present], halt: &Halt) -> Result<(), CheckpointError> {
        let (workspace, learnt) = (self.git.workspace.clone(), learnt.to_vec());
        if !blocking(move || Ok(files::has_folder(&workspace, &learnt))).await? {
            return Ok(());
        }
        let staged = self.git.run(&["ls-files", "-z", "--stage"], b"", halt).await?;
        let Some(link) = staged.items().find(|item| item.starts_with(b"160000 ")) else { return Ok(()) };
        let path = link.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default().to_owned();
        let error = CheckpointError::Nested { path: shown(&path) };
        self.remove(&[path], halt).await?;
        Err(error)
    }
}

/// Whether a commit says just what a new one would.
async fn is_same(git: &Git, tree: &Tree, commit: &str, halt: &Halt) -> Result<bool, CheckpointError> {
    match About::read(git, commit, halt).await {
        Ok(about) => Ok(about.tree == tree.name && about.left_out == tree.left_out && about.modes == tree.looked.modes),
        // It has been pruned, or is of another store.
        Err(CheckpointError::Git { .. } | CheckpointError::Unknown { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn commit(git: &Git, tree: &Tree, words: &str, halt: &Halt) -> Result<String, CheckpointError> {
    let (words, trailers) = (one_line(words), tree.looked.modes.trailers() + &left_out::trailers(&tree.left_out));
    // The time makes each commit one of its own, also if nothing has changed.
    let message = format!("{words}\n\nTaken-At: {}\n{trailers}", Time::now().micros());
    Ok(write(git, &[], &["commit-tree", &tree.name], message.as_bytes(), halt).await?.line())
}

/// A step of a save, which ends with a ref on the disk.
async fn write(
    git: &Git,
    surroundings: &[(&str, &str)],
    args: &[&str],
    input: &[u8],
    halt: &Halt,
) -> Result<Output, CheckpointError> {
    let surroundings = surroundings.iter().chain([&IN_ORDER]);
    let surroundings: Vec<_> = surroundings.map(|(name, value)| (*name, OsStr::new(value))).collect();
    git.run_among(&surroundings, args, input, halt).await
}

/// Made under another name first: a store that is there is complete.
async fn create(
    Git { dir, workspace, .. }: &Git,
    caps: Caps,
    run: &str,
    halt: &Halt,
) -> Result<Option<Looked>, CheckpointError> {
    let new = dir.with_added_extension(format!("new-{run}"));
    // One that was stopped halfway may have left locks.
    let (left, store) = (new.clone(), dir.clone());
    blocking(move || {
        files::clear_unmade(&store)?;
        files::remove_folder(&left)
    })
    .await?;
    let git = Git { dir: new.clone(), index: new.join("index"), workspace: workspace.clone() };
    git.run(&["init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=none"], b"", halt).await?;
    let (furnished, path) = (new.clone(), workspace.clone());
    blocking(move || files::furnish(&furnished, &path)).await?;
    let seen = seed::sow(&git, caps.largest_file, halt).await?;
    let store = dir.clone();
    let is_ours = blocking(move || files::put_in_place(&new, &store)).await?;
    Ok(seen.filter(|_| is_ours))
}

fn one_line(words: &str) -> String {
    let visible = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}
