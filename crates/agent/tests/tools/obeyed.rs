//! What git obeys: what runs because a repository says so, and who may change that.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tolka_agent::native::permission::{Leave, Rules};
use tolka_facts::Event;
use tolka_workspace::command::Level;

use crate::hall::{Hall, Person, rule};

fn shell(folder: &Path, line: &str) {
    assert!(Command::new("bash").args(["-c", line]).current_dir(folder).status().unwrap().success(), "{line}");
}

fn bash(command: &str, folder: &str) -> Value {
    json!({ "command": command, "description": "Try it", "workdir": folder })
}

fn notices(hall: &Hall) -> Vec<(String, String)> {
    hall.told().of(|event| match event {
        Event::Noticed(notice) => Some((notice.title.clone(), notice.description.clone().unwrap_or_default())),
        _ => None,
    })
}

fn questions(hall: &Hall) -> Vec<String> {
    hall.told().of(|event| match event {
        Event::QuestionAsked(asked) => Some(asked.questions[0].question.clone()),
        _ => None,
    })
}

const EVIL: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"id > RAN; false\"\n";

/// What is there, and the line and the folder in which it is obeyed.
type Stage = (fn(&Hall), &'static str, &'static str);

/// Each of these runs a program of the repository's, with a `git status` that only seems to look.
#[tokio::test]
async fn a_look_by_git_that_may_run_something_is_asked() {
    let bare = |hall: &Hall| {
        for folder in ["x/objects", "x/refs"] {
            std::fs::create_dir_all(hall.workspace.join(folder)).unwrap();
        }
        hall.put("x/HEAD", "ref: refs/heads/main\n");
        hall.put("x/config", EVIL);
    };
    let included = |hall: &Hall| {
        shell(&hall.workspace, "git init -q; git config include.path ../team");
        hall.put("team", "[core]\n\tfsmonitor = \"id > RAN; false\"\n");
    };
    let elsewhere = |hall: &Hall| {
        shell(&hall.workspace, "git init -q --separate-git-dir=.bare .; git config core.fsmonitor 'id > RAN; false'");
    };
    let inner = |hall: &Hall| {
        shell(&hall.workspace, "git init -q; git init -q x; git -C x config core.fsmonitor 'id > ../RAN; false'");
    };
    let textconv = |hall: &Hall| {
        let line = "git init -q; git config diff.x.textconv 'id > RAN; cat'; echo '* diff=x' >.gitattributes; \
                    echo a >a; git add .; echo b >a";
        shell(&hall.workspace, line);
    };
    let stages: [Stage; 5] = [
        (bare, "git status", "x"),
        (included, "git status", "."),
        (elsewhere, "git status", "."),
        (inner, "cd x && git status", "."),
        (textconv, "git diff", "."),
    ];
    for (n, (stage, line, folder)) in stages.into_iter().enumerate() {
        let mut hall = Hall::open();
        stage(&hall);
        let ran = || hall.workspace.join("RAN").exists() || hall.workspace.join("x/RAN").exists();
        assert!(!ran(), "{n}");
        hall.person = Person::IsAway;
        hall.call("bash", bash(line, folder)).await.failed("Nobody answered");
        assert_eq!(hall.asked().len(), 1, "{n}");
        hall.mode = "plan".to_owned();
        hall.call("bash", bash(line, folder)).await.failed("this is plan mode");
        assert!(!hall.workspace.join("RAN").exists() && !hall.workspace.join("x/RAN").exists(), "{n}: it ran unasked");
        // It is an attack: whoever lets it run has it run.
        hall.mode = "build".to_owned();
        hall.person = Person::Chooses("once", None);
        hall.call("bash", bash(line, folder)).await.went_well();
        assert!(hall.workspace.join("RAN").exists() || hall.workspace.join("x/RAN").exists(), "{n}: nothing ran");
    }
}

/// In a repository that names nothing it is free, and even then nothing of the repository's runs.
#[tokio::test]
async fn a_look_by_git_runs_no_hook() {
    let mut hall = Hall::open();
    let line = "git init -q; git config core.hooksPath .husky; mkdir .husky; echo a >a; git add a; touch -d yesterday a; \
                printf '#!/bin/sh\\necho >RAN\\n' >.husky/post-index-change; chmod +x .husky/post-index-change";
    shell(&hall.workspace, line);
    for mode in ["plan", "build"] {
        hall.mode = mode.to_owned();
        let ended = hall.call("bash", bash("git status --short && git diff && git branch", ".")).await;
        assert!(ended.went_well().said().contains("A  a"), "{}", ended.said());
    }
    assert_eq!((hall.asked(), hall.workspace.join("RAN").exists()), (Vec::new(), false));
    // Not so where a person's own git is at work.
    shell(&hall.workspace, "touch a; git status >/dev/null");
    assert!(hall.workspace.join("RAN").exists());
}

#[tokio::test]
async fn files_that_git_obeys_are_asked_for_and_folders_of_repositories_are_refused() {
    let mut hall = Hall::open();
    let line = "git init -q --separate-git-dir=.bare .; git config core.hooksPath .husky; git config include.path ../team; \
                mkdir .husky; ln -s .husky/pre-commit way";
    shell(&hall.workspace, line);
    hall.person = Person::IsAway;
    let write = |path: &str| json!({ "filePath": path, "content": "evil" });
    for path in [".husky/pre-commit", "team", "way"] {
        hall.call("write", write(path)).await.failed("Nobody answered");
    }
    let patch = "*** Begin Patch\n*** Add File: .husky/pre-push\n+evil\n*** End Patch";
    hall.call("apply_patch", json!({ "patchText": patch })).await.failed("Nobody answered");
    assert_eq!(hall.asked().len(), 4);
    assert!(hall.asked()[0].title.contains("git obeys it"), "{:?}", hall.asked());
    for path in [".bare/config", ".bare/hooks/pre-commit"] {
        let before = std::fs::read(hall.workspace.join(path)).ok();
        let ended = match before {
            Some(_) => hall.call("edit", json!({ "filePath": path, "oldString": "[core]", "newString": "[x]" })).await,
            None => hall.call("write", write(path)).await,
        };
        ended.failed("takes for a repository");
        assert_eq!(std::fs::read(hall.workspace.join(path)).ok(), before);
    }
    hall.call("write", write("free")).await.went_well();
    hall.person = Person::Chooses("once", None);
    hall.call("write", write(".husky/pre-commit")).await.went_well();
    assert_eq!(hall.get(".husky/pre-commit"), "evil");
    // Who writes a rule of their own knows why.
    let mut hall = Hall::allowing("edit");
    shell(&hall.workspace, "git init -q; git config core.hooksPath .husky");
    hall.call("write", write(".husky/pre-commit")).await.went_well();
    assert_eq!(hall.asked(), []);
}

/// The stronger sandbox cannot guard what is missing either, nor what is not the workspace's own.
#[tokio::test]
async fn what_a_sandbox_cannot_guard_is_put_back() {
    for level in [Level::Bubblewrap, Level::Landlock] {
        let Some(mut hall) = Hall::under(level, Rules::with([rule("bash", "*", Leave::Allow)])) else { continue };
        let line = "git init -q; rm -rf .git/hooks; git init -q sub; git config core.hooksPath .husky; mkdir .husky; \
                    echo mine >.husky/pre-push";
        shell(&hall.workspace, line);
        hall.person = Person::IsAway;
        let sub = hall.get("sub/.git/config");
        let line = "mkdir .git/hooks; for file in .git/hooks/pre-commit .git/commondir .git/config.worktree \
                    .husky/pre-push .husky/pre-commit sub/.git/config; do echo evil >$file; done";
        let ended = hall.call("bash", bash(line, ".")).await;
        assert!(ended.went_well().said().contains("was put back"), "{level:?}: {}", ended.said());
        for path in [".git/hooks", ".git/commondir", ".git/config.worktree", ".husky/pre-commit"] {
            assert!(!hall.workspace.join(path).exists(), "{level:?}: {path}");
        }
        assert_eq!((hall.get(".husky/pre-push"), hall.get("sub/.git/config")), ("mine\n".to_owned(), sub));
        let [question] = questions(&hall).try_into().unwrap();
        for path in [".git/commondir", ".git/hooks", ".husky/pre-commit", ".husky/pre-push", "sub/.git/config"] {
            assert!(question.contains(path), "{level:?}: {question}");
        }
    }
}

#[tokio::test]
async fn a_repository_that_a_command_moved_is_back_with_its_history() {
    let rules = || Rules::with([rule("bash", "*", Leave::Allow)]);
    for line in ["mv .git .git-old", "mv .git .git-old; mkdir .git; echo evil >.git/config"] {
        let Some(mut hall) = Hall::under(Level::Landlock, rules()) else { return };
        let setting = "git init -q; git -c user.name=p -c user.email=p@x commit -qm first --allow-empty";
        shell(&hall.workspace, setting);
        let ended = hall.call("bash", bash(line, ".")).await;
        assert!(ended.went_well().said().contains(".git is the user's repository"), "{}", ended.said());
        shell(&hall.workspace, "git log -1 --format=%s | grep -q first");
        let [(title, words)] = notices(&hall).try_into().unwrap();
        assert_eq!(title, "A command moved a repository");
        assert!(words.contains(".git was moved to .git-old. It is moved back"), "{words}");
        assert_eq!(questions(&hall), [] as [&str; 0], "nothing is left to be asked");
    }
    let Some(mut hall) = Hall::under(Level::Landlock, rules()) else { return };
    shell(&hall.workspace, "git init -q");
    hall.call("bash", bash("rm -rf .git", ".")).await.went_well();
    let told = notices(&hall);
    assert!(told.len() == 1 && told[0].1.contains(".git is gone, with the history"), "{told:?}");
}
