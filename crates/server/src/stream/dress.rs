use std::io::Write;

use tolka_dialect::opencode;
use tolka_facts::Head;

/// What the door puts around a frame. `id:` lines stand only where every known client survives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Dress {
    /// Nothing but the frame: the client that document 003 shows parses all that stands between two blank lines.
    Bare,
    /// `id:` with the position in the session.
    Positions,
    /// The same, with `event: message` before it: Onyx's documents show it on every packet.
    Messages,
    /// `id:` with a cursor of the feed.
    Feed,
    /// The same, with each frame inside `{"directory","project","payload"}`.
    GlobalFeed,
}

impl Dress {
    pub(super) fn write(self, out: &mut Vec<u8>, epoch: &str, place: u64, n: u32, head: &Head, payload: &[u8]) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Dress::Bare => write!(out, "data: "),
            Dress::Positions => write!(out, "id: {place}.{n}\ndata: "),
            Dress::Messages => write!(out, "event: message\nid: {place}.{n}\ndata: "),
            Dress::Feed | Dress::GlobalFeed => write!(out, "id: {epoch}.{place}.{n}\ndata: "),
        };
        if self == Dress::GlobalFeed && !head.workspace.is_empty() {
            let directory = serde_json::to_string(&head.workspace).unwrap_or_default();
            let project = opencode::project_id(&head.workspace);
            let _ = write!(out, "{{\"directory\":{directory},\"project\":\"{project}\",\"payload\":");
        } else if self == Dress::GlobalFeed {
            out.extend_from_slice(b"{\"payload\":");
        }
        out.extend_from_slice(payload);
        out.extend_from_slice(if self == Dress::GlobalFeed { b"}\n\n" } else { b"\n\n" });
    }
}
