//! What a person sent, as the model is told it: the blocks of a prompt and what the editor knew beside it. A pure
//! function of the facts, so that it is the same when the conversation is made again.

use std::fmt::Write as _;

use serde_json::Value;
use tolka_facts::{Blobs, Block, Json, Subtask};

use super::model::Input;

/// Of one file that an editor sends along; the model can read the rest.
const FILE: usize = 32 * 1024;
/// Of what we do not know by name.
const OTHER: usize = 8 * 1024;

/// The prompt comes last, where it is heeded most.
pub(super) fn inputs<'a>(
    content: impl IntoIterator<Item = &'a Block>,
    context: Option<&Json>,
    blobs: &dyn Blobs,
) -> Vec<Input> {
    let context = context.and_then(|json| surroundings(&json.whole(blobs).value())).map(Input::Text);
    context.into_iter().chain(content.into_iter().map(|block| input(block, blobs))).collect()
}

fn input(block: &Block, blobs: &dyn Blobs) -> Input {
    match block {
        Block::Text { text, .. } => Input::Text(text.text(blobs).into_owned()),
        Block::Image { data, mime, .. } => Input::Image { mime: mime.clone(), data: data.text(blobs).into_owned() },
        Block::Audio { mime, .. } => Input::Text(format!("[A recording ({mime}) came with it; you cannot hear it.]")),
        Block::Link { uri, name, description, .. } => {
            let about = description.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
            Input::Text(format!("[Linked: {name} <{uri}>{about}]"))
        }
        // What comes of it is told behind it.
        Block::Resource { text: Some(text), .. } if Subtask::of(block, blobs).is_some() => {
            Input::Text(text.text(blobs).into_owned())
        }
        Block::Resource { uri, text: Some(text), .. } => {
            Input::Text(format!("<file uri=\"{uri}\">\n{}\n</file>", text.text(blobs)))
        }
        Block::Resource { uri, mime, text: None, blob: Some(blob) } => {
            let (mime, data) = (mime.as_deref().unwrap_or("application/octet-stream"), blob.text(blobs).into_owned());
            if mime.starts_with("image/") {
                Input::Image { mime: mime.to_owned(), data }
            } else {
                let name = uri.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file");
                Input::File { name: name.to_owned(), mime: mime.to_owned(), data }
            }
        }
        Block::Resource { uri, .. } => Input::Text(format!("[Linked: <{uri}>]")),
    }
}

/// What the editor showed when the prompt was sent. `None` if that says nothing.
fn surroundings(context: &Value) -> Option<String> {
    let fields = context.as_object()?;
    let mut said = String::new();
    for (name, value) in fields {
        match name.as_str() {
            "current_file" => said.extend(file(value, "current_file")),
            "open_files" => said.extend(value.as_array().into_iter().flatten().filter_map(|v| file(v, "open_file"))),
            // Each is a link among the prompt's blocks.
            "attachments" => {}
            _ if value.is_null() => {}
            _ => {
                let json = value.to_string();
                let _ = writeln!(said, "<{name}>{}</{name}>", head(&json, OTHER));
            }
        }
    }
    (!said.is_empty()).then(|| format!("<editor_context>\n{said}</editor_context>"))
}

fn file(value: &Value, tag: &str) -> Option<String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = value.as_str().or_else(|| text("path"));
    let (selection, content) = (text("selection"), text("content"));
    if path.is_none() && selection.is_none() && content.is_none() {
        return None;
    }
    let mut said = format!("<{tag} path=\"{}\"", path.unwrap_or("untitled"));
    if let Some(language) = text("language") {
        let _ = write!(said, " language=\"{language}\"");
    }
    said.push_str(">\n");
    if let Some(content) = content {
        let _ = writeln!(said, "<content>\n{}\n</content>", head(content, FILE));
    }
    if let Some(selection) = selection {
        let _ = writeln!(said, "<selection>\n{}\n</selection>", head(selection, FILE));
    } else if let Some(selection) = value.get("selection").filter(|selection| selection.is_object()) {
        let _ = writeln!(said, "<selection>{selection}</selection>");
    }
    let _ = writeln!(said, "</{tag}>");
    Some(said)
}

fn head(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most)];
    format!("{kept}\n[cut here: {} bytes more]", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tolka_facts::NoBlobs;

    use super::*;

    #[test]
    fn the_editors_context_stands_before_the_prompt() {
        let context = Json::from(json!({
            "current_file": { "path": "src/a.py", "language": "python", "selection": "def f(): pass" },
            "open_files": ["b.py", { "path": "c.py" }, {}],
            "attachments": [{ "name": "x" }],
            "cursor": null,
            "branch": "main",
        }));
        let told = inputs(&[Block::text("fix it")], Some(&context), &NoBlobs);
        let expected = "<editor_context>\n\
            <current_file path=\"src/a.py\" language=\"python\">\n<selection>\ndef f(): pass\n</selection>\n</current_file>\n\
            <open_file path=\"b.py\">\n</open_file>\n<open_file path=\"c.py\">\n</open_file>\n\
            <branch>\"main\"</branch>\n</editor_context>";
        assert_eq!(told, [Input::Text(expected.to_owned()), Input::Text("fix it".to_owned())]);
    }

    #[test]
    fn a_context_that_says_nothing_is_not_told() {
        for context in [json!({}), json!({ "current_file": null }), json!({ "open_files": [] }), json!([1])] {
            assert_eq!(inputs(&[], Some(&Json::from(context)), &NoBlobs), []);
        }
    }

    #[test]
    fn a_long_file_is_cut() {
        let context = json!({ "current_file": { "path": "a", "content": "ä".repeat(FILE) } });
        let [Input::Text(said)] = &inputs(&[], Some(&Json::from(context)), &NoBlobs)[..] else { panic!() };
        assert!(said.len() < FILE + 200 && said.contains("[cut here: 32768 bytes more]"), "{}", said.len());
    }
}
