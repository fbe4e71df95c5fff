//! Who may do what: rules, people, and what they allowed always.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tolka_agent::native::permission::{GrantError, Grants, Leave, Rules};
use tolka_facts::event::OptionKind;
use tolka_facts::{Event, SessionId, ToolStatus};

use crate::hall::{Hall, Person, rule};

fn command(rules: &Rules, line: &str) -> Leave {
    rules.leave_command(line, Path::new("/work/place"))
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
        "ls /work/place/src 2>/dev/null",
        "ls\npwd",
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
        "\\ls",
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

#[tokio::test]
async fn a_person_is_asked_and_sees_what_is_wanted() {
    let mut hall = Hall::open();
    let line = "git init -q . && touch a";
    let ended = hall.call("bash", json!({ "command": line, "description": "Begin" })).await;
    ended.went_well();
    let asked = hall.asked().remove(0);
    assert_eq!((asked.permission.as_str(), asked.title.as_str()), ("bash", line));
    assert_eq!(asked.patterns, ["git init *", "touch *"]);
    assert_eq!(
        asked.metadata.unwrap().value(),
        json!({ "command": line, "description": "Begin", "workdir": hall.workspace })
    );
    let options: Vec<_> = asked.options.iter().map(|o| (o.id.as_str(), o.name.as_str(), o.kind)).collect();
    assert_eq!(
        options,
        [
            ("once", "Allow once", OptionKind::AllowOnce),
            ("always", "Always allow `git init *` and `touch *`", OptionKind::AllowAlways),
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
