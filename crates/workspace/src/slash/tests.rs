use std::os::unix::fs::symlink;

use super::*;

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn names(all: &[Slash]) -> Vec<(&str, &str)> {
    all.iter().map(|slash| (slash.name.as_str(), slash.template.as_str())).collect()
}

#[test]
fn the_nearest_one_of_a_name_wins() {
    let (work, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (workspace, shelf) = (
        work.path(),
        Shelf { configuration: Some(home.path().join(".config")), claude: Some(home.path().join(".claude")) },
    );
    assert_eq!(shelf.all(workspace), []);
    for (root, path) in [
        (workspace, ".claude/commands/a.md"),
        (workspace, ".opencode/command/a.md"),
        (workspace, ".tolka/commands/a.md"),
        (workspace, ".claude/commands/git/commit.md"),
        (workspace, ".opencode/commands/b.md"),
        (workspace, ".opencode/command/b.md"),
        (home.path(), ".config/tolka/commands/b.md"),
        (home.path(), ".config/tolka/commands/c.md"),
        (home.path(), ".config/opencode/command/c.md"),
        (home.path(), ".claude/commands/c.md"),
        (home.path(), ".claude/commands/d.md"),
        (workspace, ".tolka/commands/not.txt"),
        (workspace, ".tolka/commands/bad name.md"),
    ] {
        put(root, path, path);
    }
    assert_eq!(
        names(&shelf.all(workspace)),
        [
            ("a", ".tolka/commands/a.md"),
            ("b", ".opencode/commands/b.md"),
            ("c", ".config/tolka/commands/c.md"),
            ("d", ".claude/commands/d.md"),
            ("git/commit", ".claude/commands/git/commit.md"),
        ]
    );
}

#[test]
fn what_leads_out_or_is_too_much_is_left_out() {
    let (work, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let workspace = work.path();
    put(outside.path(), "secret.md", "secret");
    put(workspace, "inside.md", "inside");
    put(workspace, ".tolka/commands/good.md", "good");
    put(workspace, ".tolka/commands/long.md", &"x".repeat(70_000));
    std::fs::write(workspace.join(".tolka/commands/broken.md"), b"\xff").unwrap();
    symlink(outside.path().join("secret.md"), workspace.join(".tolka/commands/leak.md")).unwrap();
    symlink("../../inside.md", workspace.join(".tolka/commands/linked.md")).unwrap();
    symlink(outside.path(), workspace.join(".tolka/commands/folder")).unwrap();
    symlink(".", workspace.join(".tolka/commands/round")).unwrap();
    symlink(outside.path(), workspace.join(".claude")).unwrap();
    put(outside.path(), "commands/secret.md", "secret");
    let deep = (0..9).map(|_| "d").collect::<Vec<_>>().join("/");
    put(workspace, &format!(".tolka/commands/{deep}/deep.md"), "deep");
    assert_eq!(names(&Shelf::default().all(workspace)), [("good", "good"), ("linked", "inside")]);
    for n in 0..300 {
        put(workspace, &format!(".tolka/commands/many/{n:03}.md"), "x");
    }
    assert_eq!(Shelf::default().all(workspace).len(), MOST);
}

#[test]
fn what_stands_above_is_about_it() {
    let whole = "---\ndescription: \"Review: all of it\"\nagent: plan\nmodel: openai/gpt-5\nsubtask: true\nargument-hint: [path]\n\
        allowed-tools:\n  - Bash\n# no\n---\n\n# Look\nat $1\n";
    let slash = read("review".to_owned(), whole).unwrap();
    assert_eq!(
        slash,
        Slash {
            name: "review".to_owned(),
            description: "Review: all of it".to_owned(),
            hint: Some("[path]".to_owned()),
            agent: Some("plan".to_owned()),
            model: Some("openai/gpt-5".to_owned()),
            subtask: Some(true),
            template: "# Look\nat $1".to_owned(),
        }
    );
    let read = |text: &str| super::read("x".to_owned(), text).unwrap();
    let bare = read("# Look\nat it");
    assert_eq!((bare.description.as_str(), bare.template.as_str()), ("Look", "# Look\nat it"));
    assert_eq!(read("---\nnever: ended\n").template, "---\nnever: ended");
    assert_eq!(read("---\r\ndescription: d\r\n---\r\nbody").description, "d");
    assert_eq!(read("").template, "");
}

#[test]
fn a_call_is_a_name_and_what_follows() {
    let called = |text| called(text).map(|(name, rest)| (name, rest.to_owned()));
    let some = |name: &str, rest: &str| Some((name.to_owned(), rest.to_owned()));
    assert_eq!(called("/review src  now \n"), some("review", "src  now"));
    assert_eq!(called(" /git:commit"), some("git/commit", ""));
    assert_eq!(called("/a\nb"), some("a", "b"));
    assert_eq!((called("/ a"), called("a /b"), called("")), (None, None, None));
}

#[test]
fn what_was_written_is_put_in_once() {
    let work = tempfile::tempdir().unwrap();
    put(work.path(), "src/a.rs", "");
    let filled = |template: &str, arguments: &str| fill(template, arguments, work.path()).text;
    for (template, arguments, expected) in [
        ("all: $ARGUMENTS.", "a 'b c'", "all: a 'b c'."),
        ("$1 and $2", "a 'b c' d", "a and b c d"),
        ("$2, $1", "a b", "b, a"),
        ("$1 and $2", "a", "a and "),
        ("$x, a$, $0, $99999999999999999999", "", "$x, a$, $0, $99999999999999999999"),
        ("$10 and $1", "a b c d e f g h i j k", "j k and a"),
        ("$12", "a b", ""),
        ("$10", "a", ""),
        ("no place", "for this", "no place\n\nfor this"),
        ("no place", "", "no place"),
        ("$1", "$ARGUMENTS !`rm` $2", "$ARGUMENTS !`rm` $2"),
        ("now: !`git status` !", "", "now: [run the command `git status` and take what it prints for this place] !"),
        ("!`` !`a\nb`", "", "!`` !`a\nb`"),
        ("ü$1ö", "é", "üéö"),
    ] {
        assert_eq!(filled(template, arguments), expected, "{template}");
    }
    let filled = fill(
        "look at @src/a.rs, (@./src/a.rs) me@src/a.rs @none.rs @/etc/passwd @../x and $1",
        "@src/a.rs",
        work.path(),
    );
    assert_eq!(filled.files, ["src/a.rs"]);
}

#[test]
fn a_template_says_what_it_has_places_for() {
    assert_eq!(places("$2 $10, $ARGUMENTS $2 and $x $0"), ["$2", "$10", "$ARGUMENTS"]);
    assert_eq!(places("none"), [""; 0]);
}

#[test]
fn words_in_quotes_are_one() {
    assert_eq!(words(r#"a "b c" d='e f' """#), ["a", "b c", "d=e f", ""]);
    assert_eq!(words("  "), [""; 0]);
}

#[test]
fn one_whose_head_is_not_understood_is_left_out() {
    let work = tempfile::tempdir().unwrap();
    put(work.path(), ".tolka/commands/good.md", "---\nagent: plan\n---\ngood");
    put(work.path(), ".tolka/commands/odd.md", "---\nagent plan\n---\nodd");
    assert_eq!(names(&Shelf::default().all(work.path())), [("good", "good")], "it is not run in another way");
}

#[test]
fn a_template_that_grows_is_cut() {
    let filled = fill(&"$ARGUMENTS".repeat(6000), &"x".repeat(60_000), Path::new("/nonexistent"));
    assert!(filled.text.len() <= 512 * 1024, "{}", filled.text.len());
}
