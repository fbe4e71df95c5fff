//! Permissions, for clients of today and for those of the old SDK.

use serde_json::{Value, json};
use tolka_facts::event::{OptionKind, PermissionAsked};
use tolka_facts::{Ask, RequestId};

use super::super::{Profile, wire};
use super::Telling;

impl Telling<'_> {
    /// The event that clients of the old SDK wait for.
    pub(super) fn old_permission(&self, ask: &PermissionAsked) -> Value {
        let message = self.tip.turn.as_ref().map(|turn| turn.current_message());
        json!({
            "id": ask.request,
            "type": ask.permission,
            "pattern": ask.patterns,
            "sessionID": self.session(),
            "messageID": message,
            "callID": ask.call,
            "title": ask.title,
            "metadata": wire::metadata(ask, self.tip, self.blobs),
            "time": { "created": self.fact.time.millis() },
        })
    }

    pub(super) fn permission_answered(&mut self, request: &RequestId, option: Option<&str>) {
        let kind = match &self.tip.answered {
            Some(Ask::Permission(ask)) => {
                ask.options.iter().find(|known| Some(known.id.as_str()) == option).map(|known| known.kind)
            }
            Some(Ask::Question(_)) | None => None,
        };
        let reply = match kind {
            Some(OptionKind::AllowOnce) => "once",
            Some(OptionKind::AllowAlways) => "always",
            Some(OptionKind::RejectOnce | OptionKind::RejectAlways) | None => "reject",
        };
        let mut properties = json!({ "sessionID": self.session(), "requestID": request, "reply": reply });
        if self.profile != Profile::Current {
            properties["permissionID"] = json!(request);
            properties["response"] = json!(reply);
        }
        self.event("permission.replied", properties);
    }
}
