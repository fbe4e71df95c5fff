//! The script: what comes next, by what came before.

use serde_json::{Value, json};

use super::seen::{Called, Seen};
use super::words;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) thought: String,
    pub(super) text: String,
    pub(super) calls: Vec<ToCall>,
}

#[derive(Debug, PartialEq)]
pub(super) struct ToCall {
    pub(super) name: &'static str,
    pub(super) input: Value,
}

fn call(name: &'static str, input: Value) -> ToCall {
    ToCall { name, input }
}

/// Places that are tried before the script gives up: somebody else may be writing there.
const TRIES: usize = 3;

impl Seen<'_> {
    pub(super) fn summary(&self) -> Step {
        Step { text: words::SUMMARY.to_owned(), ..Step::default() }
    }

    pub(super) fn next_step(&self) -> Step {
        if self.call("todowrite").is_none() {
            return self.opening();
        }
        let Some(found) = self.call("glob") else { return search() };
        if !self.is_offered("write") {
            return Step { text: words::PLAN_ONLY.to_owned(), ..Step::default() };
        }
        let listed = found.words();
        let is_there = |nth: usize| listed.lines().any(|line| is_path(line, &words::place(nth)));
        if is_there(1) && self.call("read").is_none() {
            let input = json!({ "filePath": words::place(1) });
            return Step { text: words::LOOK.to_owned(), calls: vec![call("read", input)], ..Step::default() };
        }
        let seen = self.call("read").filter(|read| is_there(1) && read.is_done());
        let own = seen.map(Called::words).filter(|text| text.contains(words::MARK));
        let path = match &own {
            Some(text) => {
                if self.call("edit").is_none() {
                    return recolour(text);
                }
                words::place(1)
            }
            None => match self.made(&is_there) {
                Ok(path) => path,
                Err(step) => return step,
            },
        };
        self.finishing(&path, own.is_some())
    }

    fn opening(&self) -> Step {
        let text = if self.is_interrupted { words::AGAIN } else { words::HELLO };
        let calls = vec![plan(0)];
        Step { thought: words::GUESS.to_owned(), text: text.to_owned(), calls }
    }

    /// Where the app is once it is written, read again and mended; until then what to do for that.
    fn made(&self, is_there: &dyn Fn(usize) -> bool) -> Result<String, Step> {
        let free: Vec<String> = (1..).filter(|nth| !is_there(*nth)).take(TRIES).map(words::place).collect();
        let failed = self.calls_of("write").filter(|write| !write.is_done()).count();
        let Some(path) = free.get(failed) else {
            let why = self.calls_of("write").last().map(Called::words).unwrap_or_default();
            let text = format!(
                "I could not write the file, so this is where the script ends. What I was told: {}",
                line(&why)
            );
            return Err(Step { text, ..Step::default() });
        };
        let is_refused = self.calls_of("write").last().is_some_and(|write| !write.is_done() && write.is_refused());
        if is_refused {
            let text = "You would rather not have the file, so there is nothing more to do. Nothing was changed.";
            return Err(Step { text: text.to_owned(), ..Step::default() });
        }
        if self.calls_of("write").count() == failed {
            let text = match failed {
                0 => words::WRITE.to_owned(),
                _ => format!("That did not go well, so I take another place, {path}.\n\n"),
            };
            let input = json!({ "filePath": path, "content": words::draft() });
            return Err(Step { text, calls: vec![call("write", input)], ..Step::default() });
        }
        if !self.calls_of("read").any(|read| read.input("filePath") == *path) {
            let calls = vec![call("read", json!({ "filePath": path })), plan(2)];
            return Err(Step { text: words::CHECK.to_owned(), calls, ..Step::default() });
        }
        if self.call("edit").is_none() {
            let input = json!({ "filePath": path, "oldString": words::WRONG, "newString": words::RIGHT });
            let (thought, text) = (words::FLAW.to_owned(), words::FIX.to_owned());
            return Err(Step { thought, text, calls: vec![call("edit", input)] });
        }
        Ok(path.clone())
    }

    /// The commands, the artifact, and the last words.
    fn finishing(&self, path: &str, is_old: bool) -> Step {
        let folder = path.trim_end_matches("/index.html");
        let commands: Vec<&Called<'_>> = self.calls_of("bash").collect();
        let edited = self.call("edit").is_some_and(Called::is_done);
        match commands[..] {
            [] => {
                let problem = self.call("edit").filter(|edit| !edit.is_done()).map(Called::words);
                let problem = problem.map(|why| {
                    format!("The edit did not go through: {} I leave the file as it is.\n\n", sentence(&why))
                });
                let text = format!("{}{}", problem.unwrap_or_default(), words::TRY);
                let input = json!({ "command": words::missing(folder), "description": "Look for tests" });
                Step { text, calls: vec![plan(3), call("bash", input)], ..Step::default() }
            }
            [_] => {
                let input = json!({ "command": format!("wc -c {path}"), "description": "Measure the finished file" });
                Step { text: words::MEASURE.to_owned(), calls: vec![call("bash", input)], ..Step::default() }
            }
            [_, measured, ..] if self.call("artifact").is_none() => {
                let text = match (measured.is_done(), measured.is_refused()) {
                    (true, _) => "Measured.\n\n".to_owned(),
                    (false, true) => format!("All right, not that command. {}\n\n", sentence(&measured.words())),
                    (false, false) => format!("That command did not work here: {}\n\n", sentence(&measured.words())),
                };
                let input = json!({ "path": folder, "name": "Things to do" });
                Step { text, calls: vec![call("artifact", input), plan(4)], ..Step::default() }
            }
            [..] => {
                let what = match (is_old, edited) {
                    (false, true) => "A to-do app in one file",
                    (false, false) => "A to-do app in one file, with a line that still needs mending",
                    (true, true) => "The app that was there, in another colour",
                    (true, false) => "The app that was there, as it was",
                };
                let text = format!(
                    "Done: {what}, `{path}`. Open it in a browser: add, tick, delete; it is still there when you come back.\n\n\
                     For an agent that listens, give Tolka a model: `tolka models` says how."
                );
                Step { text, ..Step::default() }
            }
        }
    }
}

impl Called<'_> {
    /// Whether a person, or a rule, said no.
    fn is_refused(&self) -> bool {
        let words = self.words().to_lowercase();
        ["rejected", "refused", "not allow", "permission"].iter().any(|word| words.contains(word))
    }
}

fn search() -> Step {
    let calls = vec![
        call("glob", json!({ "pattern": "todo*/index.html" })),
        call("grep", json!({ "pattern": "localStorage", "include": "*.html" })),
    ];
    Step { text: words::LOOK_AROUND.to_owned(), calls, ..Step::default() }
}

/// What is there already gets the next colour.
fn recolour(text: &str) -> Step {
    let now = words::COLOURS.iter().position(|(_, colour)| text.contains(colour));
    let Some(now) = now else {
        // Somebody chose a colour of their own, which stays. The edit finds something only if the draft was never mended.
        let input = json!({ "filePath": words::place(1), "oldString": words::WRONG, "newString": words::RIGHT });
        let text = "It is mine, and you have made it yours. I only make sure that it is safe.\n\n";
        return Step { text: text.to_owned(), calls: vec![call("edit", input)], ..Step::default() };
    };
    let (name, next) = words::COLOURS[(now + 1) % words::COLOURS.len()];
    let input = json!({
        "filePath": words::place(1),
        "oldString": format!("--accent: {};", words::COLOURS[now].1),
        "newString": format!("--accent: {next};"),
    });
    Step {
        thought: "It is the one that I made before, and it works. A second one would only be in the way; a small change shows as \
            much."
            .to_owned(),
        text: format!("It is mine, from before, and complete. So I only give it another colour, {name}.\n\n"),
        calls: vec![call("edit", input)],
    }
}

/// The plan with so many of its tasks done.
fn plan(done: usize) -> ToCall {
    let status = |at: usize| match at.cmp(&done) {
        std::cmp::Ordering::Less => "completed",
        std::cmp::Ordering::Equal => "in_progress",
        std::cmp::Ordering::Greater => "pending",
    };
    let task = |(at, content): (usize, &&str)| json!({ "id": (at + 1).to_string(), "content": content, "status": status(at), "priority": "medium" });
    call("todowrite", json!({ "todos": words::TASKS.iter().enumerate().map(task).collect::<Vec<_>>() }))
}

fn is_path(line: &str, path: &str) -> bool {
    let line = line.trim();
    line == path || line.strip_suffix(path).is_some_and(|before| before.ends_with('/'))
}

fn line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing.")
}

fn sentence(text: &str) -> String {
    let line = line(text);
    if line.ends_with(['.', '!', '?']) { line.to_owned() } else { format!("{line}.") }
}
