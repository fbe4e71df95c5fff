//! Who may do what: rules, people, and what they allowed always.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tolka_agent::native::permission::{GrantError, Grants, Ground, Leave, Rules};
use tolka_facts::event::OptionKind;
use tolka_facts::{Event, SessionId, ToolStatus};

use crate::hall::{Hall, Person, rule};

fn command(rules: &Rules, line: &str) -> Leave {
    rules.leave_command(line, Ground::of(Path::new("/no/such/place")))
}

#[test]
fn the_usual_rules() {
    let rules = Rules::default();
    for (permission, subject, leave) in [
        ("read", "src/a.rs", Leave::Allow),
        ("read", ".env", Leave::Ask),
        ("read", "deep/.env", Leave::Ask),
        ("read", ".env.production", Leave::Ask),
        ("read", ".env.example", Leave::Allow),
        ("read", "environment.rs", Leave::Allow),
        ("edit", "src/a.rs", Leave::Allow),
        ("glob", "**", Leave::Allow),
        ("grep", "x", Leave::Allow),
        ("list", ".", Leave::Allow),
        ("todowrite", "*", Leave::Allow),
        ("question", "*", Leave::Allow),
        ("artifact", "a", Leave::Allow),
        ("outside", "/etc/passwd", Leave::Ask),
        ("whatever", "x", Leave::Ask),
    ] {
        assert_eq!(rules.leave(permission, subject), leave, "{permission} {subject}");
    }
}

#[test]
fn commands_that_only_look_are_free() {
    let rules = Rules::default();
    for line in [
        "ls",
        "ls -la src",
        "pwd",
        "git status",
        "git diff HEAD~1 -- src",
        "git log --oneline",
        "ls && git status",
        "ls | ls",
        "git show HEAD:src/a.rs",
        "echo 'done; really'",
        "ls /no/such/place/src 2>/dev/null",
        "ls\npwd",
        "\\ls 's'rc",
    ] {
        assert_eq!(command(&rules, line), Leave::Allow, "{line}");
    }
    for line in [
        "",
        "make",
        "rm -rf x",
        "ls; rm x",
        "ls && make",
        "ls | sh",
        "ls\nmake",
        "ls > x",
        "ls >> .bashrc",
        "ls $(rm x)",
        "ls `rm x`",
        "echo $HOME",
        "ls /",
        "ls ~/.ssh",
        "ls ..",
        "git diff --output=x",
        "git log --outp=x",
        "git branch -D x",
        "git -C / status",
        "FOO=1 ls",
        "ls &",
        "sudo ls",
        "git diff --ext-diff",
        "git show HEAD:../x",
        "lsof",
        "cat a",
        "ls <(rm x)",
        "echo \"$(rm x)\"",
        "(ls)",
        "! ls",
        "time ls",
        "ls 'unclosed",
        "ls \\",
        "date -s x",
        "eval ls",
        "git status\u{0}",
    ] {
        assert_eq!(command(&rules, line), Leave::Ask, "{line}");
    }
}

#[test]
fn the_last_rule_that_matches_counts() {
    let rules = Rules::with([
        rule("bash", "git *", Leave::Allow),
        rule("bash", "git push *", Leave::Deny),
        rule("bash", "make", Leave::Allow),
        rule("read", "secret/*", Leave::Deny),
    ]);
    for (line, leave) in [
        ("git commit -m x", Leave::Allow),
        ("git push", Leave::Deny),
        ("git push --force", Leave::Deny),
        ("make && git commit", Leave::Allow),
        ("make && git push", Leave::Deny),
        ("make && rm x", Leave::Ask),
        ("make install", Leave::Ask),
        // A deny is found wherever it hides.
        ("echo $(git push)", Leave::Deny),
        ("echo \"`git push`\"", Leave::Deny),
        ("(cd x; git push)", Leave::Deny),
        ("FOO=1 git push", Leave::Deny),
        ("if true; then git push; fi", Leave::Deny),
        ("git status $(x)", Leave::Ask),
        // Who wrote the rule knows why; of our own rules it would be asked.
        ("git -C / log", Leave::Allow),
    ] {
        assert_eq!(command(&rules, line), leave, "{line}");
    }
    assert_eq!(rules.leave("read", "secret/key"), Leave::Deny);
    let all = Rules::with([rule("bash", "*", Leave::Allow), rule("bash", "rm *", Leave::Deny)]);
    assert_eq!(command(&all, "for x in $(ls); do echo $x > y; done"), Leave::Allow);
    assert_eq!(command(&all, "ls; rm x"), Leave::Deny);
    assert_eq!(command(&all, "echo $(rm x)"), Leave::Deny);
    let none = Rules::with([rule("*", "*", Leave::Deny)]);
    assert_eq!((command(&none, "ls"), none.leave("read", "a")), (Leave::Deny, Leave::Deny));
}

#[test]
fn quotes_and_folders_are_no_way_around_a_rule() {
    let rules = Rules::with([rule("bash", "*", Leave::Allow), rule("bash", "rm *", Leave::Deny)]);
    for line in ["r\"\"m x", "\\rm x", "'rm' x", "/bin/rm x", "true; /usr/bin/'rm'", "sudo rm x", "env A=1 rm x"] {
        assert_eq!(command(&rules, line), Leave::Deny, "{line}");
    }
    assert_eq!(command(&rules, "'rm x'"), Leave::Allow, "a program of that name");
    let usual = Rules::default();
    for line in [
        "git diff --o\"\"utput=src/main.rs",
        "git diff '--output=a b'",
        "git diff --{output=x,stat}",
        "git diff --no-index /dev/null .env",
        "git diff --no-i a b",
        "git show HEAD:.env",
        "git log -p -- config/.env.local",
        "ls *",
        "ls [a]",
        "echo ~",
        "ls -RL",
        "'ls a'",
        "./ls",
        "cd .. && ls",
        "cd $x; ls",
        "cd; ls",
    ] {
        assert_eq!(command(&usual, line), Leave::Ask, "{line}");
    }
    let going = Rules::with([rule("bash", "cd *", Leave::Allow)]);
    for (line, leave) in [
        ("cd src && ls", Leave::Allow),
        ("cd src; ls a", Leave::Allow),
        ("cd /etc && ls", Leave::Ask),
        ("cd - && ls", Leave::Ask),
        ("ls; cd /", Leave::Allow),
    ] {
        assert_eq!(command(&going, line), leave, "{line}");
    }
}

/// A `*` says that a line may be more than its words, and no more: each command is still weighed.
#[test]
fn who_allows_everything_but_something_means_it() {
    let rules = Rules::with([rule("bash", "*", Leave::Allow), rule("bash", "rm *", Leave::Ask)]);
    for (line, leave) in [
        ("true; rm x", Leave::Ask),
        ("echo $(rm x)", Leave::Ask),
        ("for x in *; do rm $x; done", Leave::Ask),
        ("for x in *; do cat $x > y; done", Leave::Allow),
        ("# nothing", Leave::Allow),
    ] {
        assert_eq!(command(&rules, line), leave, "{line}");
    }
}

#[tokio::test]
async fn links_and_secrets_are_not_shown_by_commands_that_look() {
    let mut hall = Hall::open();
    hall.put(".env", "KEY=1\n");
    hall.put("sub/.env", "KEY=1\n");
    std::fs::create_dir(&hall.data).unwrap();
    std::os::unix::fs::symlink(&hall.data, hall.workspace.join("out")).unwrap();
    std::os::unix::fs::symlink(".env", hall.workspace.join("harmless")).unwrap();
    hall.person = Person::Chooses("reject", None);
    let lines = [
        "git diff --no-index /dev/null .env",
        "git diff /dev/null harmless",
        "ls out",
        "ls out/deeper",
        "git log -- harmless",
    ];
    for (at, line) in lines.iter().enumerate() {
        hall.call("bash", json!({ "command": line })).await.failed("rejected");
        assert_eq!(hall.asked().len(), at + 1, "{line}");
    }
    hall.call("bash", json!({ "command": "git diff /dev/null .env", "workdir": "sub" })).await.failed("rejected");
    hall.call("bash", json!({ "command": "ls sub" })).await.went_well();
    hall.call("bash", json!({ "command": "ls .", "workdir": "sub" })).await.went_well();
    assert_eq!(hall.asked().len(), lines.len() + 1);
}

#[tokio::test]
async fn plan_mode_runs_what_looks_and_is_not_denied() {
    let rules = [rule("bash", "git log *", Leave::Deny), rule("bash", "git status *", Leave::Ask)];
    let mut hall = Hall::with(Rules::with(rules.into_iter().chain([rule("bash", "make *", Leave::Allow)])));
    hall.mode = "plan".to_owned();
    hall.call("bash", json!({ "command": "ls" })).await.went_well();
    hall.call("bash", json!({ "command": "git log" })).await.failed("do not allow `bash` for `git log`");
    hall.call("bash", json!({ "command": "make" })).await.failed("this is plan mode");
    assert_eq!(hall.asked(), []);
    hall.call("bash", json!({ "command": "git status" })).await.went_well();
    assert_eq!(hall.asked().len(), 1);
}

#[tokio::test]
async fn what_runs_other_programs_is_granted_as_it_stands() {
    let mut hall = Hall::open();
    hall.put("a.o", "x");
    hall.person = Person::Chooses("always", None);
    hall.call("bash", json!({ "command": "find . -name 'a*'" })).await.went_well();
    hall.call("bash", json!({ "command": "true; env; true" })).await.went_well();
    hall.person = Person::Chooses("reject", None);
    hall.call("bash", json!({ "command": "find . -name 'a*' && ls" })).await.went_well();
    for line in ["find . -name a*", "find . -name 'ab'", "find . -delete", "find . -name 'a*' -delete", "env rm a.o"] {
        hall.call("bash", json!({ "command": line })).await.failed("rejected");
    }
    let patterns: Vec<_> = Grants::new(&hall.data).list().into_iter().map(|grant| grant.pattern).collect();
    assert_eq!(patterns, [r"find . -name 'a\*'", "true; env; true"]);
    assert_eq!(hall.get("a.o"), "x");
}

#[tokio::test]
async fn always_for_a_file_outside_is_for_that_file() {
    let mut hall = Hall::open();
    let (one, other) = (hall.data.with_file_name("one.txt"), hall.data.with_file_name("other.txt"));
    for file in [&one, &other] {
        std::fs::write(file, "text\n").unwrap();
    }
    hall.person = Person::Chooses("always", None);
    hall.call("read", json!({ "filePath": one })).await.went_well();
    hall.person = Person::Chooses("reject", None);
    hall.call("read", json!({ "filePath": one })).await.went_well();
    hall.call("read", json!({ "filePath": other })).await.failed("rejected");
}

/// Not even by a rule that allows all of it.
#[tokio::test]
async fn what_commands_do_not_see_is_not_read_for_them() {
    let mut hall = Hall::hiding(Rules::with([rule("*", "*", Leave::Allow)]), |root| {
        vec![root.join("data"), root.join("place/keys"), root.join("key.txt"), root.join("not/there")]
    });
    std::fs::create_dir(&hall.data).unwrap();
    let root = hall.data.parent().unwrap().to_owned();
    for file in ["data/grants.json", "key.txt", "open.txt"] {
        std::fs::write(root.join(file), "KEY=1\n").unwrap();
    }
    hall.put("keys/a", "KEY=1\n");
    hall.put("b", "KEY=2\n");
    std::os::unix::fs::symlink(root.join("key.txt"), hall.workspace.join("link")).unwrap();
    let outside = [root.join("data/grants.json"), root.join("key.txt")].map(|path| path.to_str().unwrap().to_owned());
    let kernel = ["/proc/self/environ", "/proc/self/root/proc/1/status", "/dev/zero", "/sys/kernel"].map(str::to_owned);
    for path in outside.into_iter().chain(kernel).chain(["keys/a", "link"].map(str::to_owned)) {
        let ended = hall.call("read", json!({ "filePath": path })).await;
        ended.failed("is hidden from agents and from their commands");
    }
    hall.call("write", json!({ "filePath": "keys/new", "content": "x" })).await.failed("is hidden from agents");
    let said = hall.call("grep", json!({ "pattern": "KEY" })).await.went_well().said();
    assert!(said.contains("KEY=2") && !said.contains("KEY=1"), "{said}");
    hall.call("read", json!({ "filePath": root.join("open.txt") })).await.went_well();
    assert_eq!(hall.asked(), []);
}

#[tokio::test]
async fn a_person_is_asked_and_sees_what_is_wanted() {
    let mut hall = Hall::open();
    let line = "git init -q . && touch a";
    let ended = hall.call("bash", json!({ "command": line, "description": "Begin" })).await;
    ended.went_well();
    let asked = hall.asked().remove(0);
    assert_eq!((asked.permission.as_str(), asked.title.as_str()), ("bash", line));
    assert_eq!(asked.patterns, ["git init -q .", "touch *"]);
    assert_eq!(
        asked.metadata.unwrap().value(),
        json!({ "command": line, "description": "Begin", "workdir": hall.workspace })
    );
    let options: Vec<_> = asked.options.iter().map(|o| (o.id.as_str(), o.name.as_str(), o.kind)).collect();
    assert_eq!(
        options,
        [
            ("once", "Allow once", OptionKind::AllowOnce),
            ("always", "Always allow `git init -q .` and `touch *`", OptionKind::AllowAlways),
            ("reject", "Reject", OptionKind::RejectOnce),
        ]
    );
    let steps = hall.told().of(|event| match event {
        Event::ToolChanged(change) => Some(change.status.map_or("announced".to_owned(), |s| format!("{s:?}"))),
        Event::PermissionAsked(_) => Some("asked".to_owned()),
        _ => None,
    });
    assert_eq!(steps, ["announced", "asked", "Running", "Completed"]);
    assert_eq!(hall.call("bash", json!({ "command": line })).await.tool.status, ToolStatus::Completed);
    assert_eq!(hall.asked().len(), 2, "once is once");
}

#[tokio::test]
async fn a_refusal_ends_the_turn_and_a_reason_goes_to_the_model() {
    let mut hall = Hall::open();
    hall.person = Person::Chooses("reject", None);
    let ended = hall.call("bash", json!({ "command": "npm run build", "description": "Builds the app" })).await;
    ended.failed("Error: The user rejected permission to use this specific tool call.");
    assert!(ended.outcome.ends_turn);
    hall.person = Person::Chooses("reject", Some(" use make "));
    let ended = hall.call("bash", json!({ "command": "npm run build" })).await;
    ended.failed("with the following feedback: use make");
    assert!(!ended.outcome.ends_turn);
    hall.person = Person::IsAway;
    let ended = hall.call("bash", json!({ "command": "npm run build" })).await;
    ended.failed("Nobody answered the request for permission");
    assert!(!ended.outcome.ends_turn);
    assert_eq!(hall.told().of(|event| matches!(event, Event::OutputAppended(_)).then_some(())), []);
}

#[tokio::test]
async fn what_stands_behind_a_refusal_is_not_done() {
    let mut hall = Hall::open();
    hall.person = Person::Chooses("reject", None);
    let calls = [("bash", json!({ "command": "make" })), ("write", json!({ "filePath": "a", "content": "x" }))];
    let ended = hall.calls(&calls).await;
    assert_eq!((ended[0].tool.status, ended[1].tool.status), (ToolStatus::Failed, ToolStatus::Cancelled));
    assert_eq!(ended[1].said(), "This call was not run: the user rejected an earlier one of the same step.");
    assert!(ended[0].outcome.ends_turn && ended[1].outcome.is_error && !hall.workspace.join("a").exists());
    hall.person = Person::Chooses("reject", Some("not now"));
    let ended = hall.calls(&calls).await;
    assert!(!ended[1].outcome.is_error, "with a reason the rest goes on");
}

#[tokio::test]
async fn an_edit_that_is_asked_shows_its_diff() {
    let mut hall = Hall::with(Rules::with([rule("edit", "*", Leave::Ask), rule("edit", "locked/*", Leave::Deny)]));
    hall.put("src/a.rs", "one\n");
    hall.put("locked/b", "x");
    let edit = json!({ "filePath": "src/a.rs", "oldString": "one", "newString": "two" });
    hall.call("edit", edit).await.went_well();
    let asked = hall.asked().remove(0);
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-one\n+two\n";
    assert_eq!(asked.metadata.unwrap().value(), json!({ "filepath": "src/a.rs", "diff": diff }));
    assert_eq!((asked.permission.as_str(), &asked.patterns[..]), ("edit", &["src/*".to_owned()][..]));
    hall.call("delete", json!({ "filePath": "locked/b" })).await.failed("the rules of this server do not allow `edit`");
    hall.person = Person::Chooses("reject", None);
    hall.call("delete", json!({ "filePath": "src/a.rs" })).await.failed("rejected");
    assert_eq!(hall.get("src/a.rs"), "two\n");
    assert_eq!((hall.asked().len(), hall.changed().len()), (2, 1));
}

#[tokio::test]
async fn always_is_remembered_and_can_be_taken_back() {
    let mut hall = Hall::open();
    hall.person = Person::Chooses("always", None);
    hall.call("bash", json!({ "command": "touch a" })).await.went_well();
    hall.person = Person::Chooses("reject", None);
    hall.call("bash", json!({ "command": "touch b && ls" })).await.went_well();
    let odd = "touch $(echo c)";
    hall.call("bash", json!({ "command": odd })).await.failed("rejected");
    hall.person = Person::Chooses("always", None);
    hall.call("bash", json!({ "command": odd })).await.went_well();
    hall.person = Person::Chooses("reject", None);
    hall.call("bash", json!({ "command": odd })).await.went_well();
    hall.call("bash", json!({ "command": "touch $(echo d)" })).await.failed("rejected");
    let grants = Grants::new(&hall.data);
    let list = grants.list();
    let told: Vec<_> = list.iter().map(|g| (g.permission.as_str(), g.pattern.as_str(), g.session.as_str())).collect();
    assert_eq!(told, [("bash", "touch *", "ses_test"), ("bash", "touch $(echo c)", "ses_test")]);
    assert_eq!(list[0].workspace, hall.workspace);
    assert!(grants.revoke(&list[0].id).unwrap());
    assert!(!grants.revoke(&list[0].id).unwrap());
    hall.call("bash", json!({ "command": "touch e" })).await.failed("rejected");
    assert_eq!(hall.asked().len(), 5);
}

#[tokio::test]
async fn a_grant_does_not_override_a_deny() {
    let mut hall = Hall::with(Rules::with([rule("bash", "git push *", Leave::Deny)]));
    let grants = Grants::new(&hall.data);
    grants.add(&hall.workspace, "bash", "git *", &SessionId::from("ses_test")).unwrap();
    hall.call("bash", json!({ "command": "git push" })).await.failed("do not allow `bash` for `git push`");
    hall.call("bash", json!({ "command": "git init -q" })).await.went_well();
    assert_eq!(hall.asked(), []);
}

#[test]
fn grants_are_private_to_their_owner_and_their_workspace() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("deep");
    let grants = Grants::new(&data);
    assert_eq!(grants.list(), []);
    let session = SessionId::from("ses_1");
    let (here, there) = (Path::new("/here"), Path::new("/there"));
    let first = grants.add(here, "bash", "make *", &session).unwrap();
    assert_eq!(grants.add(here, "bash", "make *", &SessionId::from("ses_2")).unwrap(), first, "it is there once");
    grants.add(there, "bash", "ls *", &session).unwrap();
    assert!(grants.matches(here, "bash", "make all") && !grants.matches(there, "bash", "make all"));
    assert!(!grants.matches(here, "edit", "make all"));
    let mode = std::fs::metadata(data.join("grants.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(Grants::new(&data).list().len(), 2);
}

#[test]
fn two_at_once_lose_nothing() {
    let data = tempfile::tempdir().unwrap();
    let one = Arc::new(Grants::new(data.path()));
    // Another process has another of these.
    let other = Arc::new(Grants::new(data.path()));
    std::thread::scope(|scope| {
        for n in 0..8 {
            let grants = if n % 2 == 0 { one.clone() } else { other.clone() };
            scope.spawn(move || {
                for m in 0..5 {
                    grants.add(Path::new("/w"), "bash", &format!("c{n}-{m}"), &SessionId::from("s")).unwrap();
                }
            });
        }
    });
    assert_eq!(one.list().len(), 40);
}

#[test]
fn a_broken_file_gives_nothing_and_is_put_aside() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("grants.json");
    for broken in ["{", "{\"version\":9,\"grants\":[]}", ""] {
        std::fs::write(&file, broken).unwrap();
        let grants = Grants::new(data.path());
        assert!(matches!(grants.read(), Err(GrantError::Broken { .. })));
        assert_eq!(grants.list(), []);
        assert!(!grants.matches(Path::new("/w"), "bash", "x"));
        assert!(grants.revoke("gra_x").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), broken, "reading changes nothing");
    }
    let grants = Grants::new(data.path());
    grants.add(Path::new("/w"), "bash", "x", &SessionId::from("s")).unwrap();
    assert_eq!(grants.list().len(), 1);
    let aside =
        std::fs::read_dir(data.path()).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert_eq!(aside.filter(|name| name.starts_with("grants.json.broken-")).count(), 1);
}
