//! What agents' tools give back is for a model to read: lines of text, or fields that each agent names in its own way.

use serde_json::{Map, Value};
use tolka_facts::{Blobs, Tool};

use super::{Hit, WebHit};
use crate::path::absolute;

/// The fields of an output and, beside them, of its `metadata`, where OpenCode has them.
#[derive(Debug)]
pub(super) struct Output(Value);

impl Output {
    pub(super) fn of(tool: &Tool, blobs: &dyn Blobs) -> Self {
        Output(tool.output.as_ref().map(|output| output.whole(blobs).value()).unwrap_or_default())
    }

    fn find<'a, T>(&'a self, names: &[&str], read: impl Fn(&'a Value) -> Option<T>) -> Option<T> {
        let places = [&self.0, &self.0["metadata"]];
        places.into_iter().find_map(|fields| names.iter().find_map(|name| fields.get(*name).and_then(&read)))
    }

    pub(super) fn text(&self, names: &[&str]) -> Option<String> {
        self.find(names, |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn number(&self, names: &[&str]) -> Option<i64> {
        self.find(names, Value::as_i64)
    }

    pub(super) fn is_true(&self, names: &[&str]) -> bool {
        self.find(names, Value::as_bool) == Some(true)
    }

    pub(super) fn web_hits(&self) -> Vec<WebHit> {
        let list = self.0.as_array().or_else(|| self.find(&["results"], Value::as_array));
        list.into_iter().flatten().filter_map(|hit| web_hit(hit.as_object()?)).collect()
    }
}

fn web_hit(hit: &Map<String, Value>) -> Option<WebHit> {
    let text = |names: &[&str]| names.iter().find_map(|name| hit.get(*name)?.as_str()).map(str::to_owned);
    let url = text(&["url", "link", "href"])?;
    let snippet = text(&["snippet", "description", "text", "body"]).unwrap_or_default();
    Some(WebHit { title: text(&["title"]).unwrap_or_else(|| url.clone()), url, snippet })
}

/// Hits as ripgrep prints them (`file:line:text`), or under the name of their file, as OpenCode does (`  Line 3: text`).
pub(super) fn hits(text: &str, workspace: &str) -> Vec<Hit> {
    let (mut hits, mut file) = (Vec::new(), None);
    let hit =
        |file: &str, line, context: &str| Hit { file: absolute(file, workspace), line, context: context.to_owned() };
    for line in text.lines() {
        if let Some((number, context)) = line.trim_start().strip_prefix("Line ").and_then(|rest| rest.split_once(": "))
            && let (Ok(number), Some(file)) = (number.parse(), file)
        {
            hits.push(hit(file, number, context));
        } else if let Some(name) = line.strip_suffix(':') {
            file = Some(name);
        } else if let Some((name, number, context)) = located(line) {
            hits.push(hit(name, number, context));
        }
    }
    hits
}

fn located(line: &str) -> Option<(&str, u64, &str)> {
    let (file, rest) = line.split_once(':')?;
    let (number, context) = rest.split_once(':')?;
    Some((file, number.parse().ok()?, context)).filter(|_| !file.is_empty())
}

/// The files of a listing, by their absolute paths: a name per line, or a tree with two spaces for each folder.
pub(super) fn items(text: &str, root: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_tree = lines.iter().any(|line| line.starts_with("  "));
    let (mut items, mut folders) = (Vec::new(), Vec::<&str>::new());
    for line in lines {
        let name = line.trim();
        let depth = (line.len() - line.trim_start().len()) / 2;
        if is_tree && depth == 0 && name.ends_with('/') {
            // The root of the tree, which is no item of its own.
            folders.clear();
            continue;
        }
        folders.truncate(depth.saturating_sub(1));
        let path = folders.iter().copied().chain([name.trim_end_matches('/')]).collect::<Vec<_>>().join("/");
        items.push(absolute(&path, root));
        if name.ends_with('/') {
            folders.push(name.trim_end_matches('/'));
        }
    }
    items.sort();
    items
}

pub(super) fn tells_of_timeout(error: &str) -> bool {
    let error = error.to_lowercase();
    ["timed out", "timeout", "time limit"].iter().any(|words| error.contains(words))
}
