//! What ties the session of a subagent to the call that it works for. The call names the session, in its `_meta` and so in
//! every dialect that shows that; the session names the call, in its [`Parent`](crate::event::Parent).

use serde::Deserialize;

use crate::{Ask, Json, SessionId, Tip, Tool};

/// Where clients of Onyx look for it.
const NAME: &str = "subagentSessionId";

/// What a call's `meta` says of the session that works for it.
pub fn names_subagent(session: &SessionId) -> Json {
    Json::from(serde_json::json!({ NAME: session }))
}

impl Tool {
    /// The session of the subagent that works for this call.
    pub fn subagent(&self) -> Option<SessionId> {
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "subagentSessionId")]
            session: SessionId,
        }
        let meta = self.meta.as_ref()?;
        // Few have it, and to look for the word is cheaper than to parse.
        meta.get().contains(NAME).then(|| meta.read::<Named>()).flatten().map(|named| named.session)
    }
}

impl Tip {
    /// The session in which this was asked, if it is a subagent's: whoever watches its parent sees it there too, and the
    /// answer is the same one.
    pub fn asked_in(&self, ask: &Ask) -> Option<SessionId> {
        let call = match ask {
            Ask::Permission(ask) => ask.call.as_ref(),
            Ask::Question(ask) => ask.call.as_ref(),
        };
        self.tool(call?)?.subagent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_knows_who_works_for_it() {
        let session = SessionId::from("ses_1");
        let tool = |meta: Option<Json>| Tool { meta, ..Tool::default() };
        assert_eq!(tool(Some(names_subagent(&session))).subagent(), Some(session));
        for meta in [None, Some(Json::from(serde_json::json!({ "other": "subagentSessionId" })))] {
            assert_eq!(tool(meta).subagent(), None);
        }
    }
}
