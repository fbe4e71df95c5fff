//! What holds of every edit and every patch, whatever the texts.

use proptest::prelude::*;
use tolka_workspace::diff::unified;
use tolka_workspace::edit::{EditError, Places, replace};
use tolka_workspace::patch::{FilePatch, Patch, apply};

/// Texts of few signs, so that what is looked for is there often, and twice often.
fn text() -> impl Strategy<Value = String> {
    let piece =
        proptest::sample::select(&["a", "b", "ä", " ", "  ", "\t", "\n", "\n", "\r\n", "\"", "\u{201c}", "x y"][..]);
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn squeezed(text: &str) -> String {
    let plain = text.replace(['\u{201c}', '\u{201d}'], "\"");
    plain.split_whitespace().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_never_guesses_and_leaves_the_rest(text in text(), old in text(), new in text()) {
        match replace(&text, &old, &new, Places::One) {
            Ok(edited) => {
                prop_assert_eq!(edited.places, 1);
                prop_assert!(text.matches(&old).count() <= 1, "it was there twice");
                prop_assert!(squeezed(&edited.text).contains(&squeezed(&new)), "the new text is there");
                if edited.is_tolerant {
                    prop_assert!(!text.contains(&old));
                    prop_assert!(squeezed(&text).contains(&squeezed(&old)));
                }
                let length = |text: &str| squeezed(text).len() as i64;
                prop_assert_eq!(length(&edited.text) - length(&text), length(&new) - length(&old));
            }
            Err(EditError::Empty) => prop_assert!(old.is_empty()),
            Err(EditError::Same) => {}
            Err(EditError::NotFound { .. }) => prop_assert!(!text.contains(&old)),
            Err(EditError::Ambiguous { count, lines }) => {
                prop_assert!(count >= 2 && lines.len() >= 2);
                prop_assert!(lines.iter().all(|line| *line >= 1 && *line <= text.matches('\n').count() + 1));
            }
        }
    }

    #[test]
    fn an_exact_edit_of_plain_text_is_what_replacing_is(head in "[a-c\n ]{0,20}", old in "[d-f\n]{1,9}d", tail in "[a-c\n ]{0,20}", new in "[a-z\n]{0,9}") {
        let text = format!("{head}{old}{tail}");
        prop_assume!(old != new && text.matches(&old).count() == 1);
        let edited = replace(&text, &old, &new, Places::One).unwrap();
        prop_assert_eq!(edited.text, format!("{head}{new}{tail}"));
        prop_assert!(!edited.is_tolerant);
    }

    #[test]
    fn a_diff_read_as_a_patch_gives_the_new_text(before in text(), after in text()) {
        let (before, after) = (before.replace('\r', ""), after.replace('\r', ""));
        prop_assume!(before != after);
        let diff = unified("a", Some(&before), Some(&after));
        let patch = Patch::parse(&diff.text).unwrap();
        let FilePatch::Update { hunks, .. } = &patch.files[0] else { panic!("{patch:?}") };
        prop_assert_eq!(apply(&before, hunks).unwrap(), after, "{}", diff.text);
    }

    #[test]
    fn no_text_is_too_odd_to_be_refused_as_a_patch(lines in proptest::collection::vec(
        prop_oneof!["[*] Begin Patch", "[*]{3} (Begin Patch|End Patch|Add File: a|Update File: a|Delete File: a|Move to: b|End of File)",
            "@@.{0,9}", "(---|[+]{3}) (a/|b/)?.{0,5}", "diff --git a/x b/x", "[-+ ].{0,5}", "```", "cat <<EOF", "EOF", ""], 0..12)) {
        let _ = Patch::parse(&lines.join("\n"));
    }
}
