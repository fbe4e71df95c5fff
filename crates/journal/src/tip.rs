use tolka_facts::{SessionId, Tip};

use crate::{Journal, JournalError, Scope};

/// The name under which the session's actor keeps its tip. The number changes with what a [`Tip`] holds: a state of
/// another version is not found, and costs time only.
pub const TIP: &str = "tip.3";

const PAGE: u64 = 512;

/// A session as it stood after a fact: the nearest tip that was kept, and the facts since. A session that ends before
/// has the tip of its end.
pub async fn tip_at(journal: &dyn Journal, session: &SessionId, seq: u64) -> Result<Tip, JournalError> {
    let kept = journal.kept(session, TIP, seq, false).await?;
    let mut tip: Tip = kept.and_then(|kept| serde_json::from_slice(&kept.state).ok()).unwrap_or_default();
    let scope = Scope::Session(session.clone());
    while tip.seq < seq {
        let wanted = usize::try_from(PAGE.min(seq - tip.seq)).unwrap_or_default();
        let page = journal.read(&scope, tip.seq, wanted).await?;
        if page.is_empty() {
            break;
        }
        page.iter().for_each(|entry| tip.apply(&entry.fact));
    }
    Ok(tip)
}
