//! What MCP servers give, as a call's result: words for the model and for people, pictures beside them.

use serde_json::{Map, json};
use tolka_facts::{Block, ToolContent};
use tolka_mcp::{Content, Contents, Given, Returned, Said};

use crate::native::tools::act::{Done, Stop};
use crate::native::tools::read::fields as map;

/// Words of one result that are kept at all; a model is sent a part of it.
const WORDS: usize = 1 << 20;
/// Pictures of one result.
const PICTURES: usize = 8;

#[derive(Default)]
struct Sum {
    words: Vec<String>,
    blocks: Vec<Block>,
    pictures: usize,
}

pub(super) fn done(title: String, returned: Returned) -> Result<Done, Stop> {
    let mut sum = Sum::default();
    returned.content.into_iter().for_each(|content| sum.add(content));
    if sum.words.is_empty()
        && let Some(structured) = &returned.structured
    {
        sum.words.push(structured.to_string());
    }
    if returned.is_error {
        let said = sum.text();
        return Err(Stop::Failed(if said.trim().is_empty() {
            "the tool failed and said nothing".to_owned()
        } else {
            said
        }));
    }
    Ok(sum.done(title, "[the tool gave nothing back]"))
}

pub(super) fn of_resource(title: String, contents: Vec<Contents>) -> Result<Done, Stop> {
    let mut sum = Sum::default();
    contents.into_iter().for_each(|contents| sum.add(Content::Resource(contents)));
    Ok(sum.done(title, "[the resource is empty]"))
}

pub(super) fn of_prompt(title: String, said: Vec<Said>) -> Result<Done, Stop> {
    let mut sum = Sum::default();
    for said in said {
        if !said.is_user {
            sum.words.push("[as an answer:]".to_owned());
        }
        sum.add(said.content);
    }
    Ok(sum.done(title, "[the prompt is empty]"))
}

impl Sum {
    fn add(&mut self, content: Content) {
        match content {
            Content::Text(text) | Content::Words(text) => self.words.push(text),
            Content::Image { data, mime } if self.pictures < PICTURES => {
                self.pictures += 1;
                self.blocks.push(Block::Image { data: data.into(), mime: mime.to_owned(), uri: None });
            }
            Content::Image { mime, .. } => self.words.push(format!("[one more picture ({mime}) is left out]")),
            Content::Audio { mime, .. } => {
                self.words.push(format!("[a recording ({mime}), which cannot be heard here]"));
            }
            Content::Link { uri, name, description, mime } => {
                let about = description.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
                self.words.push(format!("[{name} <{uri}>{about}]"));
                self.blocks.push(Block::Link { uri, name, title: None, description, mime, size: None });
            }
            Content::Resource(contents) => self.add_resource(contents),
        }
    }

    fn add_resource(&mut self, Contents { uri, mime, given }: Contents) {
        match given {
            Given::Text(text) => self.words.push(format!("<resource uri=\"{uri}\">\n{text}\n</resource>")),
            Given::Blob(blob) => {
                let mime = mime.unwrap_or_else(|| "application/octet-stream".to_owned());
                match Content::image(&blob, &mime) {
                    picture @ Content::Image { .. } => {
                        self.words.push(format!("[the resource <{uri}>, a picture]"));
                        self.add(picture);
                    }
                    _ => self.words.push(format!("[the resource <{uri}> ({mime}), which is neither text nor picture]")),
                }
            }
        }
    }

    fn text(&self) -> String {
        let text = self.words.join("\n");
        if text.len() <= WORDS {
            return text;
        }
        let kept = &text[..text.floor_char_boundary(WORDS)];
        format!("{kept}\n[cut here: {} bytes more]", text.len() - kept.len())
    }

    fn done(self, title: String, nothing: &str) -> Done {
        let output = self.text();
        let is_silent = output.trim().is_empty() && self.blocks.is_empty();
        let metadata = if is_silent { map(json!({ "note": nothing })) } else { Map::new() };
        let content = self.blocks.into_iter().map(|block| ToolContent::Content { block }).collect();
        Done { title, output, metadata, content, ..Done::default() }
    }
}
