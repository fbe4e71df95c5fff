//! What a tool of a server is called for a model: its server's name, `_` and its own; letters, digits, `_` and `-`, at most
//! 64 of them, for that is what providers take.

const LONGEST: usize = 64;
/// Of a number that stands for what was cut.
const MARK: usize = 8;

/// The name, unlike all that are `taken`: the same for the same tool, whatever else there is, as long as nothing else
/// would have it as well.
pub fn tool_name(server: &str, tool: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let whole = format!("{server}_{tool}");
    let plain: String = whole.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if plain.len() <= LONGEST && !is_taken(&plain) {
        return plain;
    }
    let head = &plain[..plain.len().min(LONGEST - MARK - 1)];
    let mut number = number(&whole);
    loop {
        let name = format!("{head}_{:08x}", number as u32);
        if !is_taken(&name) {
            return name;
        }
        number = number.wrapping_add(1);
    }
}

/// Fowler, Noll and Vo's: nothing hangs on it but that the same text gives the same number, in every version.
fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_providers_take() {
        assert_eq!(tool_name("files", "read_file", |_| false), "files_read_file");
        assert_eq!(tool_name("files", "läs fil/1", |_| false), "files_l_s_fil_1");
        let long = tool_name("files", &"x".repeat(100), |_| false);
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, tool_name("files", &"x".repeat(101), |_| false), "what was cut is told by its number");
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a_b".to_owned(), tool_name("a", "b", |name| name == "a_b")];
        let third = tool_name("a", "b", |name| taken.iter().any(|taken| taken == name));
        assert!(third.starts_with("a_b_") && !taken.contains(&third), "{third}");
    }
}
