//! `tolka checkpoints restore`: what would be done, whether to do it, and what was done.

use std::io::{IsTerminal, Write};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tolka_workspace::names::{meant, shown};

use super::found::{Found, find};
use super::words::{count, step};
use super::{Action, Checkpoints};
use crate::client::Client;
use crate::print::{self, plain};

impl Checkpoints {
    pub(super) async fn restore(&self) -> Result<()> {
        let Action::Restore { checkpoint, session, preview, yes, json, .. } = &self.action else { return Ok(()) };
        let is_terminal = std::io::stdin().is_terminal();
        if !preview && !yes && (*json || !is_terminal) {
            bail!("nobody is here to ask: add --yes to restore, or --preview to see what would be done");
        }
        let Found { snapshot, .. } = find(self.stores().await?, checkpoint, session.as_deref())?;
        let attached = self.attach().await?;
        let path = format!("/v1/sessions/{}/rewind", snapshot.session);
        let restored = self.go_back(&attached.client, &path, &snapshot.commit).await;
        attached.leave().await?;
        restored
    }

    async fn go_back(&self, client: &Client, path: &str, commit: &str) -> Result<()> {
        let Action::Restore { preview, overwrite, yes, json: as_json, .. } = &self.action else { return Ok(()) };
        let body = |preview: bool| json!({ "checkpoint": commit, "what": "files", "overwrite": overwrite, "preview": preview });
        if *preview || !yes {
            let planned = client.post(path, &body(true)).await?;
            if *as_json {
                return Ok(print::line(planned)?);
            }
            tell(&planned, "would change", "would be kept")?;
            if *preview || !has_files(&planned) {
                return Ok(());
            }
            if !is_agreed()? {
                return Ok(print::line("nothing was done")?);
            }
        }
        let done = client.post(path, &body(false)).await?;
        if *as_json {
            return Ok(print::line(done)?);
        }
        tell(&done, "changed", "kept")?;
        if let Some(before) = done["before"].as_str().filter(|_| has_files(&done)) {
            let before = before.get(..12).unwrap_or(before);
            print::line(format_args!("to take this back: tolka checkpoints restore {before}"))?;
        }
        Ok(())
    }
}

fn has_files(answer: &Value) -> bool {
    answer["files"].as_array().is_some_and(|files| !files.is_empty())
}

fn is_agreed() -> Result<bool> {
    print!("Go back? [y/N] ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn tell(answer: &Value, changed: &str, kept: &str) -> Result<()> {
    let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
    let text = |item: &Value, name: &str| plain(item[name].as_str().unwrap_or_default());
    let path = |item: &Value| meant(item["path"].as_str().unwrap_or_default());
    let (files, stays) = (list("files"), list("kept"));
    if files.is_empty() {
        print::line("no file has to change")?;
    } else {
        print::line(format_args!("{} {changed}:", count(files.len() as u64, "file")))?;
    }
    for file in &files {
        let number = |name: &str| file[name].as_u64().unwrap_or(0);
        print::line(step(&path(file), &text(file, "operation"), number("added"), number("removed")))?;
    }
    if !stays.is_empty() {
        print::line(format_args!("{} {kept}:", count(stays.len() as u64, "file")))?;
    }
    for file in &stays {
        // What else the words say is for those who ask over HTTP.
        let words = text(file, "words");
        let words = words.split_once(';').map_or_else(|| words.clone(), |(why, _)| format!("{why}."));
        print::line(format_args!("  {}  {words}", shown(&path(file))))?;
    }
    let has_conflict = stays.iter().any(|file| file["why"] == "conflict");
    if has_conflict {
        print::line("with --overwrite, files that somebody else changed as well go back too")?;
    }
    Ok(())
}
