//! Forks and the files: in the same folder with the snapshots of it, or in one of their own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tolka_facts::event::SessionForked;
use tolka_facts::{Event, MessageId, SessionId};
use tolka_journal::Journal;
use tolka_session::{ForkRequest, ForkWorkspace, SessionError};
use tolka_workspace::Checkpoints;

use super::all;
use crate::prompt;
use crate::saving::{LONG, Studio};

fn own(before: Option<MessageId>) -> ForkRequest {
    ForkRequest { before, workspace: ForkWorkspace::Own, title: None }
}

impl Studio {
    async fn say(&self, session: &SessionId, text: &str) -> MessageId {
        let accepted = self.world.desk.prompt(session, prompt(text)).await.unwrap();
        let mut head = self.world.journal.watch(&tolka_journal::Scope::Session(session.clone()));
        while !self.world.desk.tip(session).await.unwrap().queue.is_empty()
            || !self.world.desk.tip(session).await.unwrap().is_idle()
        {
            head.changed().await.unwrap();
        }
        accepted.message
    }

    fn write(&self, text: &str) {
        fs::write(self.workspace.join("a"), text).unwrap();
    }

    async fn forked(&self, session: &SessionId) -> SessionForked {
        let facts = self.world.facts(session).await;
        let last = facts.iter().find_map(|fact| match &fact.event {
            Event::SessionForked(forked) => Some(forked.clone()),
            _ => None,
        });
        last.unwrap()
    }

    async fn purge(&self, session: &SessionId) {
        self.world.desk.delete(session).await.unwrap();
        self.world.desk.purge(session).await.unwrap();
    }
}

fn read(folder: &str) -> String {
    fs::read_to_string(Path::new(folder).join("a")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_its_own_has_the_files_of_the_point() {
    let studio = Studio::new(LONG);
    fs::create_dir_all(studio.workspace.join(".git")).unwrap();
    fs::write(studio.workspace.join(".git/HEAD"), "the person's own").unwrap();
    fs::write(studio.workspace.join("run"), "#!/bin/sh").unwrap();
    fs::set_permissions(studio.workspace.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a", studio.workspace.join("link")).unwrap();
    let session = studio.session().await;
    studio.write("one");
    let first = studio.say(&session, "first").await;
    studio.write("two");
    let second = studio.say(&session, "second").await;
    studio.write("three");
    let mut folders = Vec::new();
    for (before, files, turns) in [(Some(first), "one", 0), (Some(second), "two", 1), (None, "three", 2)] {
        let fork = studio.world.desk.fork(&session, own(before)).await.unwrap();
        let (id, folder) = (fork.head.id, fork.head.workspace);
        assert_eq!((read(&folder).as_str(), fork.head.turns), (files, turns));
        let path = PathBuf::from(&folder);
        assert_eq!(path.canonicalize().unwrap(), path);
        assert!(path.ends_with(format!("forks/{id}/workspace")), "{folder}");
        assert_eq!(fs::metadata(path.join("run")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(path.join("link")).unwrap(), Path::new("a"));
        assert!(!path.join(".git").exists(), "it is no repository");
        assert!(
            studio.starts(&id).await.iter().all(|started| started.checkpoint.is_none()),
            "those are of another folder"
        );
        assert_eq!(studio.forked(&id).await.checkpoint, fork.base.map(|base| base.checkpoint));
        assert!(studio.forked(&id).await.checkpoint.is_some());
        studio.say(&id, "it goes on").await;
        assert!(studio.starts(&id).await.last().unwrap().checkpoint.is_some());
        folders.push((id, path));
    }
    assert_eq!(fs::read_to_string(studio.workspace.join("a")).unwrap(), "three");
    assert_eq!(fs::read_dir(studio.workspace.join(".git")).unwrap().count(), 1);

    let (first, folder) = &folders[0];
    let shares = studio.world.desk.fork(first, all()).await.unwrap().head;
    assert_eq!(Path::new(&shares.workspace), folder);
    studio.purge(first).await;
    assert!(folder.exists(), "another works there");
    studio.purge(&shares.id).await;
    assert!(!folder.parent().unwrap().exists() && folders[1].1.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_place_it_has_the_checkpoints_too_and_they_outlive_the_parent() {
    let studio = Studio::new(LONG);
    let session = studio.session().await;
    for text in ["one", "two"] {
        studio.write(text);
        studio.say(&session, text).await;
    }
    studio.write("three");
    let fork = studio.world.desk.fork(&session, all()).await.unwrap().head;
    assert_eq!(fork.workspace, studio.workspace.to_str().unwrap());
    let mut commits: Vec<String> =
        studio.starts(&fork.id).await.into_iter().filter_map(|start| start.checkpoint).collect();
    assert_eq!(
        commits,
        studio.starts(&session).await.into_iter().filter_map(|start| start.checkpoint).collect::<Vec<_>>()
    );
    commits.extend(studio.forked(&fork.id).await.checkpoint);
    studio.purge(&session).await;
    let checkpoints = Checkpoints::new(&studio.workspace.with_file_name("data"));
    let mut held = Vec::new();
    for commit in &commits {
        let contents = checkpoints.contents(&studio.workspace, commit, &["a".to_owned()]).await.unwrap();
        held.push(String::from_utf8(contents[0].clone().unwrap()).unwrap());
    }
    assert_eq!(held, ["one", "two", "three"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_checkpoint_there_is_no_folder_and_no_fork() {
    let studio = Studio::new(LONG);
    let session = studio.session_in(Path::new("/nonexistent")).await;
    let message = studio.say(&session, "one").await;
    let refused = studio.world.desk.fork(&session, own(Some(message.clone()))).await;
    assert!(matches!(refused, Err(SessionError::NoCheckpoint(_))), "{refused:?}");
    let refused = studio.world.desk.fork(&session, own(None)).await;
    assert!(matches!(refused, Err(SessionError::Checkpoint(_))), "{refused:?}");
    assert_eq!(super::forks_of(&studio.world, &session).await, 0);
    let forks = studio.workspace.with_file_name("data").join("forks");
    assert!(!forks.exists() || fs::read_dir(forks).unwrap().next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_where_somebody_worked_stays_and_is_named() {
    let studio = Studio::new(LONG);
    fs::write(studio.workspace.join(".gitignore"), "ignored").unwrap();
    let session = studio.session().await;
    studio.write("one");
    studio.say(&session, "first").await;
    let mut kept = Vec::new();
    for (name, is_kept) in [(None, false), (Some("a"), true), (Some("new"), true), (Some("ignored"), true)] {
        let fork = studio.world.desk.fork(&session, own(None)).await.unwrap().head;
        studio.say(&fork.id, "it goes on").await;
        let folder = PathBuf::from(&fork.workspace);
        if let Some(name) = name {
            fs::write(folder.join(name), "a person's").unwrap();
        }
        studio.world.desk.delete(&fork.id).await.unwrap();
        let purged = studio.world.desk.purge(&fork.id).await.unwrap();
        assert_eq!(folder.exists(), is_kept, "{name:?}");
        assert_eq!(purged.kept.as_deref(), is_kept.then(|| folder.parent().unwrap()), "{name:?}");
        assert!(purged.freed.facts > 0 && studio.world.journal.session(&fork.id).await.unwrap().is_none());
        kept.extend(name.map(|name| folder.join(name)));
    }
    // The next start, which clears away what a crash left of forks.
    studio.world.desk.recover().await.unwrap();
    studio.world.desk.shut_down().await;
    assert!(kept.iter().all(|file| fs::read_to_string(file).unwrap() == "a person's"));
}
