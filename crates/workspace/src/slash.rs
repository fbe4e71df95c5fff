//! Prompts that are kept in files and called by a name: `/review src` is what `review.md` says, with `src` put into it.
//!
//! They are read from the workspace and from the person's home, from our own folders and from those of OpenCode and Claude
//! Code. **Nothing in such a file is run.** A repository brings its own: a line that asks for a command's output becomes a
//! request to the agent, who needs the usual leave to run it, and a file that is mentioned is read by the usual tool.

mod template;

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::folder::Folder;
use crate::front::{Front, FrontError};

pub use template::{Filled, fill, places, words};

/// No prompt is longer.
const LONGEST: u64 = 64 * 1024;
/// More than anybody remembers the names of.
const MOST: usize = 256;
/// Entries of folders that are looked at, whatever they are.
const LOOKED_AT: usize = 4_096;
/// Folders in folders.
const DEEPEST: usize = 4;
/// Of a description, for lists.
const DESCRIBED: usize = 200;

/// In the order in which they win where two have one name.
const IN_WORKSPACE: [&str; 4] = [".tolka/commands", ".opencode/commands", ".opencode/command", ".claude/commands"];
const IN_CONFIGURATION: [&str; 3] = ["tolka/commands", "opencode/commands", "opencode/command"];
const IN_CLAUDES: &str = "commands";

/// A prompt in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slash {
    /// Of the file, from its folder on and without its ending: `git/commit`.
    pub name: String,
    pub description: String,
    /// What is to be written behind the name.
    pub hint: Option<String>,
    /// The way of working that it asks for, by a name.
    pub agent: Option<String>,
    /// `provider/model`, or whatever else somebody calls one.
    pub model: Option<String>,
    /// Whether a subagent does it. `None`: if `agent` is one.
    pub subtask: Option<bool>,
    pub template: String,
}

/// Where they are, beside the workspace.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    /// Where the person's programs have their configuration, `~/.config`.
    pub configuration: Option<PathBuf>,
    /// Claude Code's own folder, `~/.claude`.
    pub claude: Option<PathBuf>,
}

impl Shelf {
    /// All of them, by name. Reads files; what cannot be read is not there.
    pub fn all(&self, workspace: &Path) -> Vec<Slash> {
        let mut all: Vec<Slash> = Vec::new();
        let of_workspace = IN_WORKSPACE.into_iter().map(|folder| (workspace.to_owned(), folder));
        // Here the folder itself may be a link: what is in the home is the person's.
        let of_home = self.configuration.iter().flat_map(|base| IN_CONFIGURATION.map(|folder| base.join(folder)));
        let of_home = of_home.chain(self.claude.iter().map(|base| base.join(IN_CLAUDES))).map(|root| (root, ""));
        for (root, folder) in of_workspace.chain(of_home) {
            let Ok(opened) = Folder::open(&root) else { continue };
            let mut looked_at = 0;
            for path in files(&root, Path::new(folder), 0, &mut looked_at) {
                let name = path.strip_prefix(folder).ok().and_then(name_of);
                let Some(name) = name.filter(|name| all.iter().all(|known| known.name != *name)) else { continue };
                if all.len() == MOST {
                    tracing::warn!("there are more than {MOST} commands; the rest is left out");
                    break;
                }
                let Some(text) = path.to_str().and_then(|path| text(&opened, path)) else { continue };
                match read(name, &text) {
                    Ok(slash) => all.push(slash),
                    Err(error) => tracing::warn!("the command {} is left out: {error}", path.display()),
                }
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

/// The name and what follows it, of a text that begins with a call. `:` parts folders as well as `/` does.
pub fn called(text: &str) -> Option<(String, &str)> {
    let rest = text.trim_start().strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (name, arguments) = rest.split_at(end);
    (!name.is_empty()).then(|| (name.replace(':', "/"), arguments.trim()))
}

/// Markdown files in a folder and in its folders, by name. No link to a folder is gone through.
fn files(root: &Path, folder: &Path, depth: usize, looked_at: &mut usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut entries: Vec<_> = entries.take(LOOKED_AT.saturating_sub(*looked_at)).flatten().collect();
    *looked_at += entries.len();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries {
        let path = folder.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST => found.extend(files(root, &path, depth + 1, looked_at)),
            // Whether a link leads out is seen when it is opened.
            Ok(kind) if !kind.is_dir() && path.extension().is_some_and(|ending| ending == "md") => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
    found
}

/// One that can be typed and shown.
fn name_of(path: &Path) -> Option<String> {
    let name = path.with_extension("").to_str()?.to_owned();
    let is_good = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    (name.len() <= 128 && name.chars().all(is_good)).then_some(name)
}

fn text(folder: &Folder, path: &str) -> Option<String> {
    let (file, size) = match folder.read(path) {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(%error, "a command is left out");
            return None;
        }
    };
    if size > LONGEST {
        tracing::warn!("the command {path} is left out: it is longer than {LONGEST} bytes");
        return None;
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

fn read(name: String, text: &str) -> Result<Slash, FrontError> {
    let (front, body) = match Front::split(text) {
        // Most have none; one that never ends never began.
        Err(FrontError::None | FrontError::Endless) => (Front::default(), text.trim_start_matches('\u{feff}')),
        split => split?,
    };
    let first_line = || body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let described = front.words("description");
    let described = described.unwrap_or_else(|| first_line().trim_start_matches('#').trim().to_owned());
    Ok(Slash {
        name,
        description: described[..described.floor_char_boundary(DESCRIBED)].to_owned(),
        hint: front.words("argument-hint"),
        agent: front.words("agent"),
        model: front.words("model"),
        subtask: front.words("subtask").map(|value| value.eq_ignore_ascii_case("true")),
        template: body.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests;
