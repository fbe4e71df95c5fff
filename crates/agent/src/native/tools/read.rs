//! `read`: lines of a file with their numbers, or a picture.

pub(super) mod kind;

use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tolka_facts::{Block, ToolContent};
use tolka_workspace::files::{FileError, Files};
use tolka_workspace::folder::{Folder, FolderError};
use tolka_workspace::{limits, search};

use super::act::{Act, Done, Stop};
use super::ask::{self, Want};
use super::change::Content;
use super::field::{FILE, Fields, LIMIT, OFFSET};
use super::hidden::Hidden;
use super::{Call, Tools};
use kind::{Kind, PICTURE};

/// What one call gives; together with the numbers it stays below what [`super::outcome`] cuts.
const LINES: usize = 2_000;
const BYTES: usize = 48 * 1024;

/// Letters of one line. Longer ones are not written by people.
const WIDEST: usize = 2_000;

/// Lines that clients show before somebody opens the rest.
const PREVIEW: usize = 20;

/// Where a file is.
enum Place {
    /// From the workspace on.
    Inside(String),
    Outside(PathBuf),
}

/// Whether it lies in the workspace and the rules let everybody read it.
pub(super) fn is_free(tools: &Tools, call: &Call) -> bool {
    let path = Fields::of(&call.input).and_then(|fields| fields.need_words(FILE));
    let Ok(Ok(Place::Inside(path))) = path.map(|path| find(&tools.workspace, &path)) else { return false };
    ask::is_free_to_read(tools, &path, &Hidden::of(tools))
}

pub(super) async fn run(act: &Act<'_>, fields: &Fields) -> Result<Done, Stop> {
    let path = fields.need_words(FILE)?;
    let range = Range::of(fields)?;
    // A look-up, and no wait before the call is told: neighbours are told in their order.
    match find(&act.tools.workspace, &path)? {
        Place::Inside(path) => {
            act.leave(Want::look("read", &path), &[&path]).await?;
            act.running(&path, &[&path]).await?;
            let (workspace, wanted) = (act.workspace(), path.clone());
            let content = act.looking(move |_| inside(&workspace, &wanted).map(Content::new)).await??;
            act.tools.memory.has_seen(&path, &content);
            if content.blob.size <= limits::KEPT {
                act.tools.memory.keep(&path, &content, &act.tools.workspace.join(&path));
            }
            shown(&path, &content.bytes, range)
        }
        Place::Outside(file) => {
            let path = file.to_string_lossy().into_owned();
            act.leave(Want::outside(&file), &[&path]).await?;
            act.running(&path, &[&path]).await?;
            let bytes = act.looking(move |_| outside(&file)).await??;
            shown(&path, &bytes, range)
        }
    }
}

fn find(workspace: &Path, path: &str) -> Result<Place, Stop> {
    let resolved = |path: &Path| {
        let told = path.to_string_lossy().into_owned();
        std::fs::canonicalize(path).map_err(|error| Stop::Failed(format!("{told} cannot be read: {error}")))
    };
    let root = resolved(workspace)?;
    let files = Files::open(workspace)?;
    match files.relative(path) {
        Ok(path) => match std::fs::canonicalize(workspace.join(&path)) {
            // A link that leads out.
            Ok(real) if !real.starts_with(&root) => Ok(Place::Outside(real)),
            // Reading it says what is wrong, if anything is.
            Ok(_) | Err(_) => Ok(Place::Inside(path)),
        },
        Err(FileError::Folder(FolderError::Outside { .. })) => Ok(Place::Outside(resolved(&workspace.join(path))?)),
        Err(error) => Err(error.into()),
    }
}

fn inside(workspace: &Path, path: &str) -> Result<Vec<u8>, Stop> {
    match Files::open(workspace)?.read(path, limits::WHOLE) {
        Ok(content) => Ok(content),
        Err(FileError::Folder(FolderError::NotFound { .. })) => Err(Stop::Failed(not_found(workspace, path))),
        Err(error) => Err(unread(&error)),
    }
}

fn outside(file: &Path) -> Result<Vec<u8>, Stop> {
    let told = file.to_string_lossy().into_owned();
    let name = file.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (file.parent(), name) else {
        return Err(Stop::Failed(format!("{told} is not a file")));
    };
    let opened = Folder::open(parent).and_then(|folder| folder.read_itself(name));
    let (opened, size) = opened.map_err(|error| unread(&error.into()))?;
    let too_large = |size| unread(&FileError::TooLarge { path: told.clone(), size, most: limits::WHOLE });
    if size > limits::WHOLE {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    let read = opened.take(limits::WHOLE + 1).read_to_end(&mut bytes);
    read.map_err(|error| Stop::Failed(format!("{told} cannot be read: {error}")))?;
    match bytes.len() as u64 {
        size if size > limits::WHOLE => Err(too_large(size)),
        _ => Ok(bytes),
    }
}

fn unread(error: &FileError) -> Stop {
    let what_to_do = match error {
        FileError::Folder(FolderError::IsFolder { .. }) => "; use list to see what is in it",
        FileError::TooLarge { .. } => "; look for what you need with grep, or print a part of it with a command",
        _ => "",
    };
    Stop::Failed(format!("{error}{what_to_do}"))
}

/// Says what is there instead.
fn not_found(workspace: &Path, path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let wanted = name.to_lowercase();
    let there = search::list(workspace, folder, false, 5_000).map(|found| found.items).unwrap_or_default();
    let mut near: Vec<(usize, String)> = Vec::new();
    for item in there {
        let last = item.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
        let is_part = last.contains(&wanted) || wanted.contains(&last);
        let distance = distance(&wanted, &last);
        if is_part || distance * 3 <= wanted.chars().count() {
            near.push((distance, item));
        }
    }
    near.sort();
    let whole = |item: String| if folder == "." { item } else { format!("{folder}/{item}") };
    let names: Vec<String> = near.into_iter().take(3).map(|(_, item)| whole(item)).collect();
    match names.is_empty() {
        true => format!("there is no file {path} in the workspace; find it with glob or list"),
        false => format!("there is no file {path} in the workspace; did you mean {}?", names.join(", ")),
    }
}

/// Letters that must be added, removed or replaced to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

/// Which lines are wanted.
#[derive(Debug, Clone, Copy)]
struct Range {
    /// The first one is 1.
    first: usize,
    count: usize,
}

impl Range {
    fn of(fields: &Fields) -> Result<Self, Stop> {
        let number = |names| Ok::<_, Stop>(fields.number(names)?.map(|n| usize::try_from(n).unwrap_or(usize::MAX)));
        let first = number(OFFSET)?.unwrap_or(1).max(1);
        let count = number(LIMIT)?.filter(|limit| *limit > 0).unwrap_or(LINES).min(LINES);
        Ok(Range { first, count })
    }
}

fn shown(path: &str, bytes: &[u8], range: Range) -> Result<Done, Stop> {
    match Kind::of(bytes) {
        Kind::Text => numbered(path, std::str::from_utf8(bytes).unwrap_or_default(), range),
        Kind::BrokenText => {
            let mut done = numbered(path, &String::from_utf8_lossy(bytes), range)?;
            let note = "[the file is not UTF-8; what could not be read is shown as \u{fffd}, and it cannot be edited]";
            done.metadata.insert("note".to_owned(), note.into());
            Ok(done)
        }
        Kind::Picture(mime) if bytes.len() <= PICTURE => Ok(picture(path, bytes, mime)),
        Kind::Picture(mime) => Err(Stop::Failed(format!(
            "{path} is a picture ({mime}) of {} bytes; at most {PICTURE} can be looked at, so make it smaller first",
            bytes.len()
        ))),
        Kind::Binary(what) => Err(Stop::Failed(format!(
            "{path} is binary ({what}, {} bytes) and cannot be read as text; use a command that understands it",
            bytes.len()
        ))),
    }
}

fn picture(path: &str, bytes: &[u8], mime: &'static str) -> Done {
    let words = "Image read successfully";
    let data = STANDARD.encode(bytes);
    let metadata = json!({ "preview": words, "truncated": false, "mime": mime, "size": bytes.len() });
    Done {
        title: path.to_owned(),
        output: words.to_owned(),
        metadata: fields(metadata),
        content: vec![ToolContent::Content {
            block: Block::Image { data: data.into(), mime: mime.to_owned(), uri: None },
        }],
        ..Done::default()
    }
}

fn numbered(path: &str, text: &str, range: Range) -> Result<Done, Stop> {
    let total = text.lines().count();
    let preview: Vec<&str> = text.lines().take(PREVIEW).map(narrow).collect();
    if range.first > total.max(1) {
        return Err(Stop::Failed(format!("{path} has {total} lines; line {} is behind its end", range.first)));
    }
    let (mut output, mut last) = (String::from("<file>\n"), range.first - 1);
    for line in text.lines().skip(range.first - 1).take(range.count) {
        let shown = narrow(line);
        if output.len() + shown.len() + 12 > BYTES {
            break;
        }
        last += 1;
        output.push_str(&format!("{last:05}| {shown}"));
        if shown.len() < line.len() {
            output.push_str("...");
        }
        output.push('\n');
    }
    let is_cut = last < total;
    output.push_str(&match (total, is_cut) {
        (0, _) => "\n(The file is empty)\n</file>".to_owned(),
        (_, true) => {
            format!("\n(The file has more lines. Use offset {} to read on; {total} in all)\n</file>", last + 1)
        }
        (_, false) => format!("\n(End of file - total {total} lines)\n</file>"),
    });
    let metadata = json!({ "preview": preview.join("\n"), "truncated": is_cut });
    Ok(Done { title: path.to_owned(), output, metadata: fields(metadata), ..Done::default() })
}

/// A line that is too long, cut.
fn narrow(line: &str) -> &str {
    match line.char_indices().nth(WIDEST) {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

/// The fields of an object that was written as one.
pub(super) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
