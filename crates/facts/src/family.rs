//! What ties the session of a subagent to the call that it works for. The call names the session
//! ([`Tool::subagent`](crate::Tool)); the session names the call, in its [`Parent`](crate::event::Parent).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{Ask, Blobs, Block, SessionId, Tip};

/// A task for a subagent that a person sent, as part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subtask {
    /// Of subagent.
    pub kind: String,
    pub description: String,
    pub prompt: String,
}

/// The task is the text of a resource, whose name says the rest: to whoever does not know it, it is still the text.
const SCHEME: &str = "subtask:";

impl Subtask {
    pub fn into_block(self) -> Block {
        let uri = format!("{SCHEME}{}/{}", escaped(&self.kind), escaped(&self.description));
        Block::Resource { uri, mime: None, text: Some(self.prompt.into()), blob: None }
    }

    pub fn of(block: &Block, blobs: &dyn Blobs) -> Option<Self> {
        let Block::Resource { uri, text: Some(prompt), .. } = block else { return None };
        let (kind, description) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let (kind, description) = (unescaped(kind)?, unescaped(description)?);
        Some(Subtask { kind, description, prompt: prompt.text(blobs).into_owned() })
    }
}

/// As stored facts have it.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// `None`: nobody escaped that.
fn unescaped(text: &str) -> Option<String> {
    let meant = percent_decode_str(text).decode_utf8().ok()?.into_owned();
    (escaped(&meant) == text).then_some(meant)
}

impl Tip {
    /// The session in which this was asked, if it is a subagent's: whoever watches its parent sees it there too, and the
    /// answer is the same one.
    pub fn asked_in(&self, ask: &Ask) -> Option<&SessionId> {
        let call = match ask {
            Ask::Permission(ask) => ask.call.as_ref(),
            Ask::Question(ask) => ask.call.as_ref(),
        };
        self.tool(call?)?.subagent.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subtask_is_a_block_and_back() {
        let text = |text: &str| text.to_owned();
        for description in ["", "Find it", "50 % / ä\n\"x\""] {
            let task = Subtask { kind: text("a.b-c"), description: text(description), prompt: text("Do it.") };
            assert_eq!(Subtask::of(&task.clone().into_block(), &crate::NoBlobs), Some(task));
        }
        let other = |uri: &str| Block::Resource { uri: uri.into(), mime: None, text: Some("x".into()), blob: None };
        for uri in ["file:///a", "subtask:x", "subtask:%zz/x", "subtask:%ff/x"] {
            assert_eq!(Subtask::of(&other(uri), &crate::NoBlobs), None, "{uri}");
        }
    }
}
