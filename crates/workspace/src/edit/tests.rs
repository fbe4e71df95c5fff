use super::*;

fn one(text: &str, old: &str, new: &str) -> String {
    replace(text, old, new, Places::One).unwrap().text
}

#[test]
fn a_text_is_replaced_where_it_stands() {
    let edited = replace("a\nb\nc\n", "b", "x", Places::One).unwrap();
    assert_eq!(edited, Edited { text: "a\nx\nc\n".to_owned(), places: 1, is_tolerant: false });
}

#[test]
fn two_places_are_never_chosen_between() {
    let error = replace("a\nx\nb\nx\n", "x", "y", Places::One).unwrap_err();
    assert_eq!(error, EditError::Ambiguous { count: 2, lines: vec![2, 4] });
    assert_eq!(
        error.to_string(),
        "the old text is in the file 2 times (at lines 2, 4); add lines around it until it is in one place, or replace all"
    );
    assert_eq!(replace("aaa", "aa", "b", Places::One), Err(EditError::Ambiguous { count: 2, lines: vec![1, 1] }));
    let loose = replace("if a {\n\tgo();\n}\n  go();  \n", "go();\t", "stop();", Places::One);
    assert_eq!(loose, Err(EditError::Ambiguous { count: 2, lines: vec![2, 4] }));
}

#[test]
fn all_places_are_replaced_when_asked() {
    let edited = replace("x\nx\n", "x", "y", Places::All).unwrap();
    assert_eq!((edited.text.as_str(), edited.places), ("y\ny\n", 2));
    assert!(matches!(replace(" x\n", "x ", "y", Places::All), Err(EditError::NotFound { .. })));
}

#[test]
fn line_ends_stay_as_they_are() {
    assert_eq!(one("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n"), "x\r\ny\r\nc\r\n");
    assert_eq!(one("a\r\nb\r\nc\r\n", "b", "x\ny"), "a\r\nx\r\ny\r\nc\r\n");
    assert_eq!(one("a\r\nb\r\nc", "\nb", "\nx\ny"), "a\r\nx\r\ny\r\nc");
    assert_eq!(one("a\nb\n", "a\r\nb", "x\r\ny"), "x\ny\n");
    assert_eq!(one("a\r\nb\n", "a\nb\n", "x\ny\n"), "x\ny\n", "a tie is LF");
    assert_eq!(one("a\r\nb\r\n", "a\r\n", "a\n"), "a\nb\r\n", "line ends alone were to change");
    assert_eq!(one("a  \r\nb\r\n", "a\nb", "x\ny"), "x\r\ny\r\n");
}

#[test]
fn a_byte_order_mark_and_a_missing_last_line_end_stay() {
    assert_eq!(one("\u{feff}a\nb", "a\n", "x\n"), "\u{feff}x\nb");
    assert_eq!(one("\u{feff}a\nb", "\u{feff}a\n", "\u{feff}x\n"), "\u{feff}x\nb");
    assert_eq!(one("a\nb", "b\n", "c\n"), "a\nc");
    assert_eq!(one("\u{feff}  a\nb", "a \nb\n", "x\nb\n"), "\u{feff}  x\nb");
}

#[test]
fn white_space_is_forgiven() {
    let edited =
        replace("fn a() {  \n    b();\n}\n", "fn a() {\n    b();\n", "fn a() {\n    c();\n", Places::One).unwrap();
    assert_eq!(edited, Edited { text: "fn a() {  \n    c();\n}\n".to_owned(), places: 1, is_tolerant: true });
    assert_eq!(one("a  =  1;\nb\n", "a = 1;", "a = 2;"), "a = 2;\nb\n");
    assert_eq!(one("x(a,   b); // so\n", "(a, b);", "(b);"), "x(b); // so\n");
}

#[test]
fn a_block_is_put_in_with_the_indentation_of_its_place() {
    let text = "class A:\n    def f(self):\n        go()\n        end()\n";
    let edited = one(text, "def f(self):\n    go()\n", "def f(self):\n    if x:\n        go()\n");
    assert_eq!(edited, "class A:\n    def f(self):\n        if x:\n            go()\n        end()\n");
    let less = one("if x:\n  go()\nend()\n", "        go()\n    end()\n", "        stay()\n    end()\n");
    assert_eq!(less, "if x:\n  stay()\nend()\n");
    let tabs =
        one("f {\n\tif a {\n\t\tb\n\t}\n}\n", "    if a {\n        b\n", "    if a {\n        if c {\n            b\n");
    assert_eq!(tabs, "f {\n\tif a {\n\t\tif c {\n\t\t\tb\n\t}\n}\n");
}

#[test]
fn typographic_signs_are_forgiven() {
    assert_eq!(one("say(\u{201c}it\u{2019}s\u{201d});\n", "say(\"it's\");", "say(\"so\");"), "say(\"so\");\n");
    assert_eq!(one("# a \u{2014} b, c\n", "a - b", "a, b"), "# a, b, c\n");
}

#[test]
fn what_is_not_there_is_said_with_the_most_similar_place() {
    let error = replace("one\ntwo words\nthree\n", "two words\nfour\n", "x", Places::One).unwrap_err();
    assert_eq!(error, EditError::NotFound { near: Some(2) });
    assert!(error.to_string().contains("around line 2"));
    assert_eq!(replace("a\n", "xyz", "y", Places::One), Err(EditError::NotFound { near: None }));
    assert_eq!(replace("a b\n\n\n", " \n \n", "x", Places::One), Err(EditError::NotFound { near: None }));
    assert_eq!(replace("a", "", "y", Places::One), Err(EditError::Empty));
    assert_eq!(replace("a", "a", "a", Places::One), Err(EditError::Same));
    assert_eq!(replace("a", "a  ", "a", Places::One), Err(EditError::Same));
}
