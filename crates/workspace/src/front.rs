//! The head of a Markdown file, between two lines of `---`: as much of YAML as such heads have. What is not understood is an
//! error, never a guess.

/// A value of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    List(Vec<String>),
    /// One level of names; what is nested deeper is told as `…`.
    Map(Vec<(String, String)>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Front(Vec<Field>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    value: Value,
    /// What stands on the line of its name.
    written: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrontError {
    #[error("it does not begin with a head between two lines of `---`")]
    None,
    #[error("its head has no end; put a line of `---` behind it")]
    Endless,
    #[error("`{0}` in its head is no `name: value`")]
    NoPair(String),
    #[error("`{0}` in its head is not understood")]
    Unknown(String),
}

impl Front {
    /// The head, and what comes after it.
    pub fn split(text: &str) -> Result<(Front, &str), FrontError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let rest = text.strip_prefix("---").ok_or(FrontError::None)?.trim_start_matches([' ', '\t', '\r']);
        let rest = rest.strip_prefix('\n').ok_or(FrontError::None)?;
        let (mut lines, mut at) = (Vec::new(), 0);
        for line in rest.split_inclusive('\n') {
            at += line.len();
            let line = line.trim_end();
            if line == "---" {
                return Ok((Front::read(&lines)?, &rest[at..]));
            }
            lines.push(line);
        }
        Err(FrontError::Endless)
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.field(name).map(|field| &field.value)
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.0.iter().find(|field| field.name.eq_ignore_ascii_case(name))
    }

    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Text(text) => Some(text.clone()),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// A text, also where its signs are those of a list: `[path]` says what to write.
    pub fn words(&self, name: &str) -> Option<String> {
        let field = self.field(name)?;
        let words = match &field.value {
            Value::Text(text) => text,
            Value::List(_) | Value::Map(_) => &field.written,
        };
        Some(words.clone()).filter(|words| !words.is_empty())
    }

    fn read(lines: &[&str]) -> Result<Self, FrontError> {
        let mut front = Front::default();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            if is_nothing(line) {
                continue;
            }
            let Some((name, value)) = line.split_once(':').filter(|(name, _)| !name.starts_with([' ', '\t', '-']))
            else {
                return Err(FrontError::NoPair(shown(line)));
            };
            let inner = lines[at..].iter().take_while(|line| is_nothing(line) || line.starts_with([' ', '\t', '-']));
            let inner: Vec<&str> = inner.copied().collect();
            at += inner.len();
            let (name, written) = (unquoted(name.trim()), value.trim().to_owned());
            front.0.push(Field { name, value: value_of(&written, &inner)?, written });
        }
        Ok(front)
    }
}

fn value_of(value: &str, inner: &[&str]) -> Result<Value, FrontError> {
    let said: Vec<&str> = inner.iter().copied().filter(|line| !is_nothing(line)).collect();
    if let Some(style) = value.strip_prefix(['|', '>']) {
        if !matches!(style, "" | "-" | "+") {
            return Err(FrontError::Unknown(shown(value)));
        }
        let between = if value.starts_with('|') { "\n" } else { " " };
        return Ok(Value::Text(said.iter().map(|line| line.trim()).collect::<Vec<_>>().join(between)));
    }
    if let Some(items) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items = items.split(',').map(|item| unquoted(item.trim())).filter(|item| !item.is_empty());
        return Ok(Value::List(items.collect()));
    }
    if !value.is_empty() && !value.starts_with('#') {
        // A plain text may go on in the lines below.
        let more = said.iter().map(|line| line.trim());
        return Ok(Value::Text(unquoted(&std::iter::once(value).chain(more).collect::<Vec<_>>().join(" "))));
    }
    if said.is_empty() {
        return Ok(Value::Text(String::new()));
    }
    if said.iter().all(|line| line.trim_start().starts_with("- ")) {
        return Ok(Value::List(said.iter().map(|line| unquoted(line.trim_start()[2..].trim())).collect()));
    }
    map_of(&said).map(Value::Map)
}

fn map_of(lines: &[&str]) -> Result<Vec<(String, String)>, FrontError> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let outer = lines.iter().map(|line| indent(line)).min().unwrap_or_default();
    let mut map = Vec::<(String, String)>::new();
    for line in lines {
        if indent(line) > outer {
            if let Some((_, value)) = map.last_mut() {
                "…".clone_into(value);
            }
            continue;
        }
        let Some((name, value)) = line.trim().rsplit_once(':') else {
            return Err(FrontError::NoPair(shown(line)));
        };
        let value = value.split(" #").next().unwrap_or_default();
        map.push((unquoted(name.trim()), unquoted(value.trim())));
    }
    Ok(map)
}

fn is_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn unquoted(text: &str) -> String {
    let inside = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    match (inside('"'), inside('\'')) {
        (Some(text), _) => text.replace("\\n", "\n").replace("\\\"", "\""),
        (None, Some(text)) => text.replace("''", "'"),
        (None, None) => text.to_owned(),
    }
}

fn shown(line: &str) -> String {
    line.trim().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_people_write_them() {
        let text = "--- \nName: a\nhint: [path] [more]\n# a note\ndescription: \"Says: \\\"hi\\\"\"\nlong: >\n  one\n  two\nlist: [x, 'y']\nitems:\n- p\n- q\n\
                    tools:\n  write: false # no\n  \"*\": true\n  bash:\n    git: ask\nempty:\n---\nBody\n---\n";
        let (front, body) = Front::split(text).unwrap();
        let list = |items: &[&str]| Value::List(items.iter().map(|item| (*item).to_owned()).collect());
        assert_eq!(body, "Body\n---\n");
        assert_eq!(front.text("description").as_deref(), Some("Says: \"hi\""));
        assert_eq!(front.text("long").as_deref(), Some("one two"));
        assert_eq!((front.get("list"), front.get("items")), (Some(&list(&["x", "y"])), Some(&list(&["p", "q"]))));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let tools = Value::Map(vec![pair("write", "false"), pair("*", "true"), pair("bash", "…")]);
        assert_eq!(front.get("tools"), Some(&tools));
        assert_eq!((front.text("empty").as_deref(), front.words("empty")), (Some(""), None));
        let words = ["name", "hint", "description"].map(|name| front.words(name).unwrap());
        assert_eq!(words, ["a", "[path] [more]", "Says: \"hi\""]);
    }

    #[test]
    fn what_is_no_head_is_said() {
        for text in
            ["", "---", "name: a", "---\nname: a\n", "---\nwords\n---\n", "---\na: |7\n---\n", "---\na:\n  b\n---\n"]
        {
            assert!(Front::split(text).is_err(), "{text}");
        }
    }
}
