//! The kinds of subagents that there are in a folder: two of our own, and those that files describe, ours and those of
//! OpenCode and Claude Code. A file's head says what it is for and which tools and model it has; the rest of it is what such
//! a subagent is told. A file can take tools away and never give leave: permissions are asked as everywhere.

use std::path::Path;

use tolka_workspace::files::Files;
use tolka_workspace::front::{Front, Value};

use crate::GENERAL;

/// Where files are looked for. The first that has a name counts.
const FOLDERS: [&str; 4] = [".tolka/agents", ".opencode/agent", ".opencode/agents", ".claude/agents"];
/// Of one file. Its words are sent with every request of the subagent.
const LONGEST: u64 = 64 * 1024;
/// Their descriptions are sent with every request of those who may call for one.
const MOST: usize = 50;
const DESCRIBED: usize = 600;

pub(super) const EXPLORE: &str = "explore";

/// What only looks.
const LOOKING: [&str; 6] = ["read", "glob", "grep", "list", "webfetch", "websearch"];

/// A kind of subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subagent {
    pub(super) name: String,
    pub(super) description: String,
    /// What it is told about itself.
    pub(super) words: String,
    pub(super) tools: Allowed,
    /// As the file names it; one that is not there is as none.
    pub(super) model: Option<String>,
}

/// The tools that it may use, by the names that models know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allowed {
    AllBut(Vec<String>),
    Only(Vec<String>),
}

impl Default for Allowed {
    fn default() -> Self {
        Allowed::AllBut(Vec::new())
    }
}

impl Allowed {
    pub(super) fn has(&self, tool: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(tool));
        match self {
            Allowed::AllBut(names) => !is_named(names),
            Allowed::Only(names) => is_named(names),
        }
    }
}

impl Subagent {
    /// Whether it can do nothing but look.
    pub(super) fn only_looks(&self) -> bool {
        matches!(&self.tools, Allowed::Only(names) if names.iter().all(|name| LOOKING.contains(&name.as_str())))
    }
}

/// All kinds of a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Subagents {
    pub(super) all: Vec<Subagent>,
    /// What is wrong with files that are left out, a sentence each.
    pub(super) problems: Vec<String>,
}

impl Subagents {
    /// Reads files; call it where blocking is fine.
    pub(super) fn of(workspace: &Path) -> Self {
        let mut found = Subagents::default();
        for folder in FOLDERS {
            found.read(workspace, folder);
        }
        for own in built_in() {
            if found.find(&own.name).is_none() {
                found.all.push(own);
            }
        }
        found.all.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    /// Models do not agree on capitals.
    pub(super) fn find(&self, name: &str) -> Option<&Subagent> {
        self.all.iter().find(|kind| kind.name.eq_ignore_ascii_case(name.trim()))
    }

    pub(super) fn names(&self) -> String {
        self.all.iter().map(|kind| kind.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn read(&mut self, workspace: &Path, folder: &str) {
        let Ok(entries) = std::fs::read_dir(workspace.join(folder)) else { return };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".md") && !name.starts_with('.')).collect();
        names.sort();
        let Ok(files) = Files::open(workspace) else { return };
        for name in names {
            let path = format!("{folder}/{name}");
            if self.all.len() >= MOST {
                self.problems.push(format!("{path} is left out: there are {MOST} kinds of subagents already."));
                return;
            }
            match described(&files, &path, name.trim_end_matches(".md")) {
                Ok(Some(kind)) if self.find(&kind.name).is_none() => self.all.push(kind),
                Ok(_) => {}
                Err(problem) => self.problems.push(format!("{path} is left out: {problem}.")),
            }
        }
    }
}

fn built_in() -> [Subagent; 2] {
    let words = |text: &str| text.to_owned();
    [
        Subagent {
            name: words(GENERAL),
            description: words(
                "Does a piece of work of several steps by itself: searches, changes files, runs commands.",
            ),
            words: String::new(),
            tools: Allowed::default(),
            model: None,
        },
        Subagent {
            name: words(EXPLORE),
            description: words("Finds things out about the code, fast, and changes nothing. Say what is to be found."),
            words: words(
                "You only look: read and search until you can answer, and name files with their lines. Do not guess; say \
                 what you did not find.",
            ),
            tools: Allowed::Only(LOOKING.map(str::to_owned).to_vec()),
            model: None,
        },
    ]
}

/// `None`: it describes no subagent.
fn described(files: &Files, path: &str, file_name: &str) -> Result<Option<Subagent>, String> {
    let bytes = files.read(path, LONGEST).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    let (front, body) = Front::split(&text).map_err(|error| error.to_string())?;
    let is_primary = front.text("mode").is_some_and(|mode| mode == "primary");
    if is_primary || front.text("disable").is_some_and(|off| off == "true") {
        return Ok(None);
    }
    let name = front.text("name").unwrap_or_else(|| file_name.to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        return Err("its name may have letters, digits, `-`, `_` and `.`, 64 of them at most".to_owned());
    }
    let description = front.text("description").map(|text| text.chars().take(DESCRIBED).collect::<String>());
    let description = description.filter(|text| !text.trim().is_empty());
    let Some(description) = description else { return Err("it has no `description`".to_owned()) };
    let model = front.text("model").filter(|model| !matches!(model.as_str(), "" | "inherit"));
    Ok(Some(Subagent { name, description, words: body.trim().to_owned(), tools: allowed(&front)?, model }))
}

/// `tools` is a list of those that it has (`Read, Grep`), or says of some whether it has them (`write: false`). What
/// `permission` denies it does not have.
fn allowed(front: &Front) -> Result<Allowed, String> {
    let mut allowed = match front.get("tools") {
        None => Allowed::default(),
        Some(Value::Text(names)) => Allowed::Only(names.split(',').map(ours).filter(|name| !name.is_empty()).collect()),
        Some(Value::List(names)) => Allowed::Only(names.iter().map(|name| ours(name)).collect()),
        Some(Value::Map(switches)) => {
            let off = switches.iter().filter(|(_, value)| value == "false");
            let off: Vec<String> = off.map(|(name, _)| ours(name)).collect();
            if off.iter().any(|name| name == "*") {
                let on = switches.iter().filter(|(_, value)| value == "true");
                Allowed::Only(on.map(|(name, _)| ours(name)).collect())
            } else {
                Allowed::AllBut(off)
            }
        }
    };
    if let Some(Value::Map(said)) = front.get("permission") {
        let denied = said.iter().filter(|(_, value)| value == "deny").map(|(name, _)| ours(name));
        for name in denied {
            take_away(&mut allowed, &name);
        }
    }
    if matches!(&allowed, Allowed::Only(names) if names.is_empty()) {
        return Err("its `tools` name none; leave the line out for all of them".to_owned());
    }
    Ok(allowed)
}

fn take_away(allowed: &mut Allowed, name: &str) {
    // One permission, and all that changes files.
    let names: &[&str] = if name == "edit" { &["edit", "write", "apply_patch", "delete"] } else { &[name] };
    match allowed {
        Allowed::AllBut(gone) => gone.extend(names.iter().map(|name| (*name).to_owned())),
        Allowed::Only(left) => left.retain(|tool| !names.contains(&tool.as_str())),
    }
}

/// Our name of a tool that others call otherwise.
fn ours(name: &str) -> String {
    let name = name.trim();
    // `Bash(git log:*)`: what stands in brackets is a rule, and rules are ours.
    let name = name.split('(').next().unwrap_or_default().trim().to_ascii_lowercase();
    match name.as_str() {
        "ls" => "list",
        "multiedit" => "edit",
        "patch" => "apply_patch",
        "todo" => "todowrite",
        "agent" => "task",
        other => other,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn kinds_come_from_three_families_and_the_first_of_a_name_counts() {
        let folder = folder(&[
            (".tolka/agents/reviewer.md", "---\ndescription: Reviews.\ntools: read, grep\n---\nBe strict.\n"),
            (".opencode/agent/reviewer.md", "---\ndescription: Another.\nmode: subagent\n---\n"),
            (".opencode/agent/main.md", "---\ndescription: The main one.\nmode: primary\n---\n"),
            (
                ".opencode/agent/docs.md",
                "---\ndescription: Writes docs.\nmodel: a/b\ntools:\n  bash: false\npermission:\n  edit: deny\n---\nDocs.",
            ),
            (
                ".claude/agents/tester.md",
                "---\nname: test-runner\ndescription: Runs tests.\ntools: Read, Bash(make *), LS\nmodel: inherit\n---\nRun.",
            ),
        ]);
        let kinds = Subagents::of(folder.path());
        assert_eq!(
            (kinds.names().as_str(), &kinds.problems),
            ("docs, explore, general, reviewer, test-runner", &vec![])
        );
        let reviewer = kinds.find("Reviewer").unwrap();
        assert_eq!((reviewer.words.as_str(), reviewer.only_looks()), ("Be strict.", true));
        let docs = kinds.find("docs").unwrap();
        assert_eq!(docs.model.as_deref(), Some("a/b"));
        for (tool, has) in [("bash", false), ("write", false), ("apply_patch", false), ("read", true)] {
            assert_eq!(docs.tools.has(tool), has, "{tool}");
        }
        let tester = kinds.find("test-runner").unwrap();
        assert_eq!(tester.tools, Allowed::Only(vec!["read".into(), "bash".into(), "list".into()]));
        assert!(tester.model.is_none() && !tester.only_looks());
    }

    #[test]
    fn a_bad_file_is_left_out_and_named() {
        let folder = folder(&[
            (".tolka/agents/a.md", "No head at all."),
            (".tolka/agents/b.md", "---\nname: b\n---\n"),
            (".tolka/agents/c.md", "---\nname: c d\ndescription: x\n---\n"),
            (".tolka/agents/d.md", "---\ndescription: x\n"),
            (".tolka/agents/e.md", "---\ndescription: fine\n---\n"),
        ]);
        let kinds = Subagents::of(folder.path());
        assert_eq!(kinds.names(), "e, explore, general");
        assert_eq!(kinds.problems.len(), 4, "{:?}", kinds.problems);
        assert!(kinds.problems.iter().all(|problem| problem.contains(".tolka/agents/") && problem.ends_with('.')));
    }
}
