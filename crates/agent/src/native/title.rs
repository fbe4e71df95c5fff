//! Titles: a session that nobody named is called by the first words of its first prompt, or by what the model makes of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tolka_facts::{Block, NoBlobs};

use super::model::{Input, Message, Model, Piece, Request};
use super::spent::Used;

/// As wide as lists show.
const WIDTH: usize = 60;
/// Of the prompt, for the model: its beginning says what it is about.
const SENT: usize = 4 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);
const TASK: &str = "Give the conversation that begins with the message below a title: at most six words, in the message's \
    language, without quotes or a full stop. Say only the title. Do not answer the message.";

/// The first words of the first line that has some.
pub(super) fn from_prompt(content: &[Block]) -> Option<String> {
    let text = |block: &Block| match block {
        Block::Text { text, .. } => short(&text.text(&NoBlobs)),
        Block::Image { .. } | Block::Audio { .. } | Block::Link { .. } | Block::Resource { .. } => None,
    };
    content.iter().find_map(text)
}

fn short(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= WIDTH {
        return Some(line);
    }
    let cut: String = line.chars().take(WIDTH).collect();
    let whole_words = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    Some(format!("{}…", whole_words.trim_end_matches([' ', ',', '.', ':', ';'])))
}

/// A title that a model was asked for. It is told when a turn has time for it; dropping it ends the asking.
#[derive(Debug)]
pub(super) struct Naming {
    task: JoinHandle<Named>,
    /// What the session is called meanwhile: if it is called otherwise later, a person named it.
    pub(super) meanwhile: String,
}

impl Naming {
    pub(super) fn begin(model: Arc<dyn Model>, content: &[Block], meanwhile: String) -> Self {
        let texts = content.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.text(&NoBlobs).into_owned()),
            Block::Image { .. } | Block::Audio { .. } | Block::Link { .. } | Block::Resource { .. } => None,
        });
        let mut prompt = texts.collect::<Vec<_>>().join("\n");
        prompt.truncate(prompt.floor_char_boundary(SENT));
        let messages = vec![Arc::new(Message::User(vec![Input::Text(prompt)]))];
        let request = Request { system: TASK.into(), messages, tools: Arc::default() };
        let task = tokio::spawn(async move {
            let mut named = Named::default();
            // What was said by then is no title, but what it used is known if it was told.
            let _ = timeout(PATIENCE, ask(&*model, request, &mut named)).await;
            named
        });
        Naming { task, meanwhile }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.task.is_finished()
    }

    pub(super) async fn named(mut self) -> Named {
        (&mut self.task).await.unwrap_or_default()
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// `None`: the session keeps the name it has.
    pub(super) title: Option<String>,
    pub(super) used: Used,
}

impl Drop for Naming {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(model: &dyn Model, request: Request, named: &mut Named) {
    let mut pieces = model.ask(request);
    let mut said = String::new();
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else { return };
        match piece {
            Piece::Text(text) => said.push_str(&text),
            Piece::Ended { usage, .. } => {
                named.used = Used::by(model.about(), usage);
                break;
            }
            Piece::Thought(_) | Piece::ThoughtEnded { .. } | Piece::CallBegan { .. } | Piece::CallInput { .. } => {}
        }
        if said.len() > SENT {
            break;
        }
    }
    let said = said.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '*' | '#' | '`'));
    named.title = short(said);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_words() {
        let title = |text: &str| from_prompt(&[Block::text(text)]);
        assert_eq!(title("\n  Fix the tests \nplease"), Some("Fix the tests".to_owned()));
        assert_eq!(title(" \n"), None);
        let long =
            title("Please look through the whole repository, and find every place where a path is joined").unwrap();
        assert_eq!(long, "Please look through the whole repository, and find every…");
        assert_eq!(title(&"x".repeat(100)).unwrap().chars().count(), WIDTH + 1);
    }
}
