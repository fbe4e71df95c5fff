//! The workspace as it is, for a look: a snapshot that no fact names goes when nobody looks any more.

use tokio::runtime::Handle;

use crate::SessionError;
use crate::rewind::{Study, checkpoint_error};
use crate::saving::Store;

pub(crate) struct Look {
    pub(crate) commit: String,
    /// Where it is to be removed; `None` for one that a fact names.
    store: Option<Store>,
}

impl Study {
    pub(crate) async fn look(&self, words: &str) -> Result<Look, SessionError> {
        let (store, last) = (self.store()?, self.last_commit().await?);
        let commit = store.save(words, last.as_deref()).await.map_err(checkpoint_error)?.commit;
        let store = (last.as_ref() != Some(&commit)).then(|| store.clone());
        Ok(Look { commit, store })
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let (Some(store), Ok(runtime)) = (self.store.take(), Handle::try_current()) else { return };
        let commit = std::mem::take(&mut self.commit);
        runtime.spawn(async move { store.checkpoints.discard(&store.folder.named, &store.session, &commit).await });
    }
}
