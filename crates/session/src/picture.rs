//! Pictures in prompts. What is taken is sent to the provider with every request of the session, and no provider takes one
//! that is broken: so it is refused at the door, for every family, while the person can still send another.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tolka_facts::{Block, NoBlobs};

use crate::SessionError;

/// Bytes of a picture, before base64. No provider takes more.
const MOST: usize = 20 << 20;

/// Base64 that is long is read where it keeps nobody waiting.
const LONG: usize = 64 << 10;

/// The content, if every picture in it is one that can be sent.
pub(crate) async fn checked(content: Vec<Block>) -> Result<Vec<Block>, SessionError> {
    let size = |block: &Block| match block {
        Block::Image { data, .. } => data.text(&NoBlobs).len(),
        Block::Text { .. } | Block::Audio { .. } | Block::Link { .. } | Block::Resource { .. } => 0,
    };
    if content.iter().map(size).sum::<usize>() < LONG {
        return check(content);
    }
    // It fails only if the runtime is going down.
    tokio::task::spawn_blocking(|| check(content)).await.unwrap_or(Err(SessionError::ShuttingDown))
}

fn check(content: Vec<Block>) -> Result<Vec<Block>, SessionError> {
    for (at, block) in content.iter().enumerate() {
        let Block::Image { data, mime, .. } = block else { continue };
        if let Some(problem) = problem(&data.text(&NoBlobs), mime) {
            return Err(SessionError::BadPicture { block: at + 1, problem });
        }
    }
    Ok(content)
}

fn problem(data: &str, mime: &str) -> Option<String> {
    if !mime.get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/")) || mime.len() == 6 {
        return Some(format!("`{mime}` is no type of pictures; give one like image/png"));
    }
    if data.is_empty() {
        return Some("it is empty".to_owned());
    }
    if data.len() > MOST.div_ceil(3) * 4 {
        return Some(format!("it has more than {} MB; send a smaller one", MOST >> 20));
    }
    let decoded = STANDARD.decode(data);
    decoded.err().map(|error| format!("its data is not base64 ({error}); send the bytes of the file in base64"))
}
