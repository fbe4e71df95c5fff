//! How many events a dialog has: counted once, and from the last count on after that.

use tolka_dialect::agentsmithy::{Counts, Tally};
use tolka_facts::{MessageId, SessionId, Tip};
use tolka_journal::{Journal, JournalError, Kept, Mark, tip_at};

use crate::app::App;
use crate::fault::Fault;
use crate::past::Page;
use crate::stream::JournalBlobs;

/// Counts are kept after this many facts, so that the next time reads no more than these and the turn that is open.
const KEEP_EVERY: u64 = 512;

/// Those of a session as it stands at a fact. Kept counts are a function of the facts before them, so that it does not
/// matter who keeps them, or how often.
pub(super) async fn total(app: &App, session: &SessionId, end: u64) -> Result<usize, Fault> {
    let journal = app.journal().as_ref();
    let mut from = end;
    loop {
        let (tip, counts) = start(journal, session, from).await?;
        let since = tip.seq;
        let (tally, tip, idle) = counted(app, Page { session: session.clone(), tip, to: end }, counts).await?;
        let hidden = earliest(journal, session, tally.missing(), since).await?;
        let rewound = tip.hidden_from().filter(|from| *from <= since);
        if let Some(place) = hidden.into_iter().chain(rewound).min() {
            // These counts are not right any more. Those from before it are.
            from = place.saturating_sub(1);
            continue;
        }
        if let Some(kept) = idle.filter(|kept| kept.seq - since >= KEEP_EVERY) {
            keep(journal, session, kept).await;
        }
        return Ok(tally.shown(&tip));
    }
}

/// Where the first of some messages begins, if that is in what was counted before; 0 for one that nobody knows.
async fn earliest(
    journal: &dyn Journal,
    session: &SessionId,
    messages: &[MessageId],
    counted: u64,
) -> Result<Option<u64>, JournalError> {
    let mut earliest = None;
    for message in messages.iter().filter(|_| counted > 0) {
        let place = match journal.mark(session, &Mark::Message(message).to_string()).await? {
            Some(prompt) => prompt,
            None => journal.mark(session, &Mark::Step(message).to_string()).await?.unwrap_or(0),
        };
        if place <= counted {
            earliest = Some(earliest.map_or(place, |earliest: u64| earliest.min(place)));
        }
    }
    Ok(earliest)
}

fn name() -> String {
    format!("agentsmithy.total.{}", Counts::VERSION)
}

/// Where to count from: the last counts that were kept up to a place, or the beginning.
async fn start(journal: &dyn Journal, session: &SessionId, to: u64) -> Result<(Tip, Counts), JournalError> {
    let kept = journal.kept(session, &name(), to, true).await?;
    let kept = kept.and_then(|kept| Some((kept.seq, serde_json::from_slice(&kept.state).ok()?)));
    Ok(match kept {
        Some((seq, counts)) => (tip_at(journal, session, seq).await?, counts),
        None => Default::default(),
    })
}

/// The events of a page after those before it, the tip at its end, and what can be kept: the counts at its last idle moment.
async fn counted(app: &App, page: Page, counts: Counts) -> Result<(Tally, Tip, Option<Kept>), JournalError> {
    let blobs = JournalBlobs::new(app.journal().clone());
    let (mut tip, mut tally, mut idle) = (page.tip.clone(), Tally::since(counts), None);
    page.each(app.journal().as_ref(), |fact| {
        tip.apply(fact);
        tally.apply(fact, &tip, &blobs);
        if tip.is_idle() {
            idle = Some((fact.seq, tally.counts()));
        }
    })
    .await?;
    blobs.check()?;
    let kept = idle.and_then(|(seq, counts)| Some(Kept { seq, idle: true, state: serde_json::to_vec(&counts).ok()? }));
    Ok((tally, tip, kept))
}

/// Counts that cannot be kept, on a full disk say, must not refuse a page.
async fn keep(journal: &dyn Journal, session: &SessionId, kept: Kept) {
    if let Err(error) = journal.keep(session, &name(), kept).await {
        tracing::debug!(%session, %error, "counts were not kept");
    }
}
