//! What MCP servers give, as a call's result: words for the model and for people, pictures beside them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};
use tolka_facts::{Block, ToolContent};
use tolka_mcp::{Content, Contents, Given, Returned, Said};

use crate::native::tools::act::{Done, Stop};
use crate::native::tools::read::fields as map;
use crate::native::tools::read::kind::{Kind, PICTURE};

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

/// A picture that models can look at, or why it is none. A provider refuses a whole conversation for one that is none, and
/// would do so for ever after; what it is its bytes tell, for servers are wrong about that now and then.
fn picture(data: &str) -> Result<Block, String> {
    let data = data.trim();
    if data.len() > PICTURE / 3 * 4 {
        return Err(format!("of {} bytes, more than models take", data.len() / 4 * 3));
    }
    let bytes = STANDARD.decode(data).map_err(|_| "that is no base64".to_owned())?;
    match Kind::of(&bytes) {
        Kind::Picture(mime) => Ok(Block::Image { data: data.into(), mime: mime.to_owned(), uri: None }),
        Kind::Text | Kind::BrokenText | Kind::Binary(_) => Err("that is no PNG, JPEG, GIF or WebP".to_owned()),
    }
}

impl Sum {
    fn add(&mut self, content: Content) {
        match content {
            Content::Text(text) | Content::Words(text) => self.words.push(text),
            Content::Image { data, mime } => match picture(&data) {
                Ok(picture) => self.add_picture(picture),
                Err(why) => self.words.push(format!("[a picture ({}) {why}]", &mime[..mime.floor_char_boundary(60)])),
            },
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
                match picture(&blob) {
                    Ok(picture) => {
                        self.words.push(format!("[the resource <{uri}>, a picture]"));
                        self.add_picture(picture);
                    }
                    Err(_) => {
                        self.words.push(format!("[the resource <{uri}> ({mime}), which is neither text nor picture]"));
                    }
                }
            }
        }
    }

    fn add_picture(&mut self, picture: Block) {
        if self.pictures == PICTURES {
            return self.words.push("[one more picture is left out]".to_owned());
        }
        self.pictures += 1;
        self.blocks.push(picture);
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
