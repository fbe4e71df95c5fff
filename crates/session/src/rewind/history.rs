//! What the journal knows of a workspace's files: the moments of a session, and what other sessions did there.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use tolka_facts::event::{Changes, FileChanged, FileOperation, Moment as Why, Rewound, Unrewound};
use tolka_facts::{BlobRef, Event, Fact, Head, SessionId, Time, TurnId};
use tolka_journal::{Journal, JournalError, Mark, MarkKind, Scope, SessionQuery, SessionRow};
use tolka_workspace::checkpoint::{Content, Wrote};
use tolka_workspace::names::meant;

use super::chain::{Company, Foreign, Kind, Moment};
use crate::grounds::{Folder, are_kin};

/// Sessions of the same folder that are looked at: those that changed last.
pub(crate) const NEIGHBOURS: usize = 50;
const PAGE: usize = 512;

/// A session's own part of the journal.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) session: SessionId,
    pub(crate) folder: Folder,
}

impl History {
    /// For what does not ask about paths.
    pub(crate) fn of(journal: Arc<dyn Journal>, head: &Head) -> Self {
        History { journal, session: head.id.clone(), folder: Folder::default() }
    }

    pub(crate) async fn fact(&self, seq: u64) -> Result<Option<Arc<Fact>>, JournalError> {
        let page = self.journal.read(&Scope::Session(self.session.clone()), seq.saturating_sub(1), 1).await?;
        Ok(page.into_iter().next().map(|entry| entry.fact).filter(|fact| fact.seq == seq))
    }

    pub(crate) async fn mark(&self, mark: Mark<'_>) -> Result<Option<u64>, JournalError> {
        self.journal.mark(&self.session, &mark.to_string()).await
    }

    /// Where marks of a kind stand in `from..before`, the first one first.
    pub(crate) async fn marks(&self, kind: MarkKind, from: u64, before: u64) -> Result<Vec<u64>, JournalError> {
        let (mut all, mut before) = (Vec::new(), before);
        loop {
            let page = self.journal.marks(&self.session, kind, before, PAGE).await?;
            let is_last = page.len() < PAGE || page.last().is_some_and(|seq| *seq < from);
            all.extend(page.iter().copied().filter(|seq| *seq >= from));
            match page.last() {
                Some(seq) if !is_last => before = *seq,
                _ => break,
            }
        }
        all.reverse();
        Ok(all)
    }

    /// The session's moments from a place on.
    pub(crate) async fn moments(&self, from: u64) -> Result<Vec<Moment>, JournalError> {
        let mut seqs = BTreeSet::new();
        for kind in [MarkKind::Point, MarkKind::TurnStart] {
            seqs.extend(self.marks(kind, from, u64::MAX).await?);
        }
        let mut moments = Vec::new();
        for seq in seqs {
            let Some(fact) = self.fact(seq).await? else { continue };
            moments.extend(self.moment(&fact));
        }
        Ok(moments)
    }

    fn moment(&self, fact: &Fact) -> Option<Moment> {
        let kind = match &fact.event {
            Event::TurnStarted(_) => Kind::Started { wrote: HashMap::new() },
            Event::CheckpointSaved(e) if e.moment == Some(Why::AfterTurn) => {
                let company = match (e.late, e.beside.is_empty()) {
                    (true, _) => Company::Anybody,
                    (false, false) => Company::Sessions,
                    (false, true) if e.tells => Company::Seen,
                    (false, true) => Company::Alone,
                };
                let told = e.changes.as_ref().map(|changes| known(changes, company)).unwrap_or_default();
                Kind::Ended { told, company }
            }
            Event::CheckpointSaved(_) | Event::Approved(_) => Kind::Rest,
            Event::SessionForked(_) => Kind::Forked,
            Event::Rewound(Rewound { checkpoint: Some(target), files, changes, .. })
            | Event::Unrewound(Unrewound { checkpoint: Some(target), files, changes, .. }) => {
                restored(target, files, changes.as_ref())
            }
            _ => return None,
        };
        let commit = fact.event.checkpoints().here.map(str::to_owned);
        Some(Moment { seq: fact.seq, time: fact.time, commit, kind })
    }

    /// Looks up what turns told they wrote, where their ends do not say all: a snapshot is missing, or others were there.
    pub(crate) async fn look_up(&self, moments: &mut [Moment]) -> Result<(), JournalError> {
        for at in 0..moments.len() {
            let next = moments.get(at + 1);
            let is_saved = moments[at].commit.is_some() && next.is_some_and(|next| next.commit.is_some());
            let is_alone = matches!(next, Some(Moment { kind: Kind::Ended { company: Company::Alone, .. }, .. }));
            let (from, until) = (moments[at].seq, next.map_or(u64::MAX, |next| next.seq));
            if let Kind::Started { wrote } = &mut moments[at].kind
                && !(is_saved && is_alone)
            {
                *wrote = self.wrote(from, until).await?;
            }
        }
        Ok(())
    }

    /// What facts in `from..until` tell was made of files.
    pub(crate) async fn wrote(&self, from: u64, until: u64) -> Result<HashMap<PathBuf, Wrote>, JournalError> {
        let (scope, mut after) = (Scope::Session(self.session.clone()), from);
        let mut wrote: HashMap<PathBuf, Wrote> = HashMap::new();
        loop {
            let page = self.journal.read(&scope, after, PAGE).await?;
            for entry in page.iter().filter(|entry| entry.place < until) {
                let Event::FileChanged(change) = &entry.fact.event else { continue };
                let Some(path) = self.folder.told_inside(&change.path) else { continue };
                match wrote.entry(path) {
                    Entry::Occupied(mut known) => known.get_mut().then(told(change)),
                    Entry::Vacant(new) => {
                        new.insert(told(change));
                    }
                }
            }
            match page.last() {
                Some(entry) if entry.place < until => after = entry.place,
                _ => return Ok(wrote),
            }
        }
    }

    /// What this session did since then, as another one sees it.
    async fn work_since(&self, since: Time) -> Result<Vec<Foreign>, JournalError> {
        let mut moments = self.moments(self.place_at(since).await?).await?;
        // What comes before is a copy of what another one did.
        if let Some(at) = moments.iter().rposition(|moment| moment.kind == Kind::Forked) {
            moments.drain(..at);
        }
        self.look_up(&mut moments).await?;
        let next = |at: usize| moments.get(at + 1);
        let work = moments.iter().enumerate().filter_map(|(at, moment)| match (&moment.kind, next(at)) {
            (Kind::Started { wrote }, Some(Moment { time, kind: Kind::Ended { told, .. }, .. })) => {
                Some((moment.time, Some(*time), wrote.keys().chain(told).cloned().collect()))
            }
            (Kind::Started { wrote }, next) => {
                Some((moment.time, next.map(|next| next.time), wrote.keys().cloned().collect()))
            }
            (_, Some(Moment { time, kind: Kind::Restored { files, .. }, .. })) => {
                Some((moment.time, Some(*time), files.clone().unwrap_or_default()))
            }
            _ => None,
        });
        let foreign = work.map(|(from, to, paths)| Foreign { from, to, paths });
        Ok(foreign.filter(|work| work.to.is_none_or(|to| to >= since)).collect())
    }

    /// Where the turn that ran at a time had started, or any place before.
    async fn place_at(&self, time: Time) -> Result<u64, JournalError> {
        let mut before = u64::MAX;
        loop {
            let page = self.journal.marks(&self.session, MarkKind::TurnStart, before, 16).await?;
            let Some(first) = page.last().copied() else { return Ok(0) };
            if self.fact(first).await?.is_none_or(|fact| fact.time <= time) {
                return Ok(first);
            }
            before = first;
        }
    }

    /// Whether there is such a fact since then.
    pub(crate) async fn has_since(&self, since: Time, is_it: impl Fn(&Fact) -> bool) -> Result<bool, JournalError> {
        let (scope, mut after) = (Scope::Session(self.session.clone()), self.place_at(since).await?.saturating_sub(1));
        loop {
            let page = self.journal.read(&scope, after, PAGE).await?;
            if page.iter().any(|entry| is_it(&entry.fact)) {
                return Ok(true);
            }
            match page.last() {
                Some(entry) => after = entry.place,
                None => return Ok(false),
            }
        }
    }

    /// What other sessions did in this folder since then, as paths of this one.
    pub(crate) async fn foreign(&self, since: Time) -> Result<Vec<Foreign>, JournalError> {
        let mut all = Vec::new();
        let neighbours = self.neighbours(since, true).await?;
        // What a subagent changed for its parent is told in both, and is nobody else's.
        let family = self.family(neighbours.iter().map(|(row, _)| &row.head)).await?;
        for (row, folder) in neighbours.into_iter().filter(|(row, _)| !family.contains(&row.head.id)) {
            let other = History { journal: self.journal.clone(), session: row.head.id, folder };
            for mut work in other.work_since(since).await? {
                let here = |path: &PathBuf| self.folder.inside(&other.folder.canonical.join(path));
                work.paths = work.paths.iter().filter_map(here).collect();
                all.push(work);
            }
        }
        Ok(all)
    }

    /// Sessions of the same folder, or of one inside the other, the latest changed first.
    pub(crate) async fn neighbours(
        &self,
        since: Time,
        deleted: bool,
    ) -> Result<Vec<(SessionRow, Folder)>, JournalError> {
        let mut rows = Vec::new();
        let mut folders = HashMap::new();
        for workspace in self.journal.workspaces().await? {
            let folder = Folder::find(&workspace.path).await;
            if !are_kin(&folder.canonical, &self.folder.canonical) {
                continue;
            }
            let query = SessionQuery {
                workspace: Some(workspace.path.clone()),
                limit: NEIGHBOURS + 1,
                since,
                deleted,
                ..SessionQuery::default()
            };
            rows.extend(self.journal.sessions(query).await?);
            folders.insert(workspace.path, folder);
        }
        rows.retain(|row| row.head.id != self.session && !row.head.id.is_server());
        rows.sort_by_key(|row| std::cmp::Reverse(row.head.updated));
        rows.truncate(NEIGHBOURS);
        let with_folder = |row: SessionRow| folders.get(&row.head.workspace).cloned().map(|folder| (row, folder));
        Ok(rows.into_iter().filter_map(with_folder).collect())
    }

    /// The turn that a prompt belongs to, where it started.
    pub(crate) async fn turn_start(&self, turn: &TurnId) -> Result<Option<u64>, JournalError> {
        if let Some(seq) = self.mark(Mark::TurnStart(turn)).await? {
            return Ok(Some(seq));
        }
        let Some(seq) = self.mark(Mark::Steered(turn)).await? else { return Ok(None) };
        match self.fact(seq).await?.as_deref().map(|fact| &fact.event) {
            Some(Event::PromptSteered(steered)) => self.mark(Mark::TurnStart(&steered.into)).await,
            _ => Ok(None),
        }
    }
}

/// The files that are known to be the turn's: those that it told, and all if nobody was beside it.
fn known(changes: &Changes, company: Company) -> HashSet<PathBuf> {
    let is_alone = company == Company::Alone;
    changes.files.iter().filter(|file| is_alone || file.told).map(|file| meant(&file.path)).collect()
}

fn told(change: &FileChanged) -> Wrote {
    let content = |blob: &Option<BlobRef>, is_there: bool| match blob {
        Some(blob) => Content::Holds(blob.clone()),
        None if is_there => Content::Unknown,
        None => Content::Nothing,
    };
    Wrote {
        was: content(&change.before, change.operation != FileOperation::Create),
        is: content(&change.after, change.operation != FileOperation::Delete),
    }
}

fn restored(target: &str, files: &[String], changes: Option<&Changes>) -> Kind {
    let is_whole = changes.is_some_and(|changes| changes.count == files.len() as u64);
    let files = is_whole.then(|| files.iter().map(|path| meant(path)).collect());
    Kind::Restored { target: Some(target.to_owned()), files }
}
