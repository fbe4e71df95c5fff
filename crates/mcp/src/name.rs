//! What a tool of a server is called for a model: its server's name, `_` and its own; letters, digits, `_` and `-`, at most
//! 64 of them, for that is what providers take.
//!
//! Two tools never have one name, whichever servers there are, so what a name stands for hangs on nothing else. A server that
//! has a `_` in its name is followed by two of them: the first `__`, or else the first `_`, is where the tool begins. What
//! cannot be written so ends in a number that is made from both names.

use sha2::{Digest, Sha256};

const LONGEST: usize = 64;
/// Digits of a number that stands for what cannot be written.
const MARK: usize = 12;

/// The name of a tool, which is none of those that are `reserved` for others.
pub fn tool_name(server: &str, tool: &str, is_reserved: impl Fn(&str) -> bool) -> String {
    let joint = if server.contains('_') { "__" } else { "_" };
    let whole = format!("{server}{joint}{tool}");
    let is_plain = whole.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    let is_clear = !server.contains("__") && !server.ends_with('_') && !tool.contains("__") && !tool.starts_with('_');
    if is_plain && is_clear && whole.len() <= LONGEST && !is_marked(&whole) && !is_reserved(&whole) {
        return whole;
    }
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let head: String = whole.chars().map(fit).take(LONGEST - MARK - 1).collect();
    // No name of a server has a NUL in it.
    let digest = Sha256::digest(format!("{server}\0{tool}"));
    let number: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{head}_{}", &number[..MARK])
}

/// Whether a name looks as if it ended in such a number.
fn is_marked(name: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    name.rsplit_once('_').is_some_and(|(_, end)| end.len() == MARK && end.bytes().all(is_digit))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn named(server: &str, tool: &str) -> String {
        tool_name(server, tool, |name| name == "apply_patch")
    }

    #[test]
    fn names_are_what_providers_take() {
        assert_eq!(named("files", "read_file"), "files_read_file");
        assert_eq!(named("my_files", "read_file"), "my_files__read_file");
        assert!(named("files", "läs fil/1").starts_with("files_l_s_fil_1_"));
        assert!(named("apply", "patch").starts_with("apply_patch_"), "that is a tool of ours");
        let long = named("files", &"x".repeat(100));
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, named("files", &"x".repeat(101)), "what was cut is told by its number");
    }

    #[test]
    fn no_two_tools_have_one_name() {
        let parts =
            ["a", "b", "_", "-", "ö", "a_b", "b_c", "__", "_a", "b_", "c", &named("a", "b_"), &named("a_b", "ö")];
        let mut all: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        all.extend(parts.iter().flat_map(|one| parts.iter().map(move |two| format!("{one}{two}"))));
        let is_server = |name: &&String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        let mut known = HashMap::new();
        for server in all.iter().filter(is_server) {
            for tool in &all {
                let name = named(server, tool);
                assert!(name.len() <= LONGEST && name.is_ascii(), "{name}");
                if let Some(other) = known.insert(name.clone(), (server, tool)) {
                    assert_eq!(other, (server, tool), "{name}");
                }
            }
        }
        // A tool that is called like the number of another.
        let (one, other) = (named("a", "ö"), named("a", named("a", "ö").strip_prefix("a_").unwrap()));
        assert_ne!(one, other);
    }
}
