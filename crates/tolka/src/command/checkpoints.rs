mod found;
mod going_back;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tolka_agent::Agents;
use tolka_workspace::checkpoint::StoreInfo;
use tolka_workspace::names::shown;

use crate::DataArgs;
use crate::agents::Crew;
use crate::config::{Age, ConfigArgs, Size};
use crate::environment::Environment;
use crate::host::Attached;
use crate::print::{self, is_coloured, plain};
use crate::saving::Saving;
use found::{Found, find};
use words::{ago, bytes, count, dim};

#[derive(Args)]
#[command(after_help = "Examples:
  tolka checkpoints list
  tolka checkpoints show 3f2a91c --diff
  tolka checkpoints restore 3f2a91c --preview
  tolka checkpoints prune --older-than 7d --dry-run

A checkpoint is the workspace as it was before or after a turn, or before a restore; the first digits of its name will do. A
restore takes back what turns of its session did to files since then. What others changed is shown and kept.")]
pub(crate) struct Checkpoints {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    data: DataArgs,
    /// Token of a server that runs already
    #[arg(long, env = "TOLKA_TOKEN", hide_env_values = true, value_name = "SECRET", global = true)]
    token: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Subcommand)]
enum Action {
    /// List them by workspace and session, with what they take of the disk
    List {
        /// Only those of this session
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only those of this folder
        #[arg(long, value_name = "DIR")]
        workspace: Option<PathBuf>,
        /// As JSON, one object
        #[arg(long)]
        json: bool,
    },
    /// Tell what one is, and what changed from it to the next one of its session
    Show {
        /// As the list names it, or as much of it as is like no other
        checkpoint: String,
        /// Of this session, if several have it [default: the oldest]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// With the text of what changed
        #[arg(long)]
        diff: bool,
        /// As JSON, one object
        #[arg(long)]
        json: bool,
    },
    /// Take back what turns did to the files since then; the conversation stays
    Restore {
        /// As the list names it, or as much of it as is like no other
        checkpoint: String,
        /// What this session's turns did, if several have it [default: the oldest]
        #[arg(long, value_name = "ID")]
        session: Option<String>,
        /// Only show what would be done
        #[arg(long)]
        preview: bool,
        /// Also files that somebody else changed after the turns
        #[arg(long)]
        overwrite: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// As JSON, one object; needs --preview or --yes
        #[arg(long)]
        json: bool,
    },
    /// Remove old ones [default: as the checkpoints part of tolka.toml says]
    Prune {
        /// Those that are older, such as 12h, 7d or 4w
        #[arg(long, value_name = "AGE")]
        older_than: Option<Age>,
        /// The oldest of each workspace, until those that are left take no more than this, such as 500MB or 2GB
        #[arg(long, value_name = "SIZE")]
        to_size: Option<Size>,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
        /// As JSON, one object
        #[arg(long)]
        json: bool,
    },
}

impl Checkpoints {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        match &self.action {
            Action::List { session, workspace, json } => {
                let workspace = workspace.as_ref().map(std::path::absolute).transpose()?;
                let workspace = workspace.map(|path| path.canonicalize().unwrap_or(path));
                self.list(session.as_deref(), workspace, *json).await?;
            }
            Action::Show { checkpoint, session, diff, json } => {
                self.show(checkpoint, session.as_deref(), *diff, *json).await?;
            }
            Action::Restore { .. } => self.restore().await?,
            Action::Prune { .. } => self.prune().await?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The stores are read where they lie: looking needs no server, and disturbs none.
    async fn stores(&self) -> Result<Vec<StoreInfo>> {
        let data = self.data.folder()?;
        Ok(tolka_workspace::Checkpoints::new(&data).stores().await?)
    }

    async fn list(&self, session: Option<&str>, workspace: Option<PathBuf>, as_json: bool) -> Result<()> {
        let mut stores = self.stores().await?;
        stores.retain(|store| workspace.as_ref().is_none_or(|workspace| *workspace == store.workspace));
        for store in &mut stores {
            store.snapshots.retain(|it| session.is_none_or(|session| it.session.as_str() == session));
        }
        if session.is_some() {
            stores.retain(|store| !store.snapshots.is_empty());
        }
        if stores.is_empty() && (session.is_some() || workspace.is_some()) {
            let of = session.map(|session| format!(" of a session `{}`", plain(session))).unwrap_or_default();
            let place = workspace.map(|folder| format!(" in {}", shown(&folder))).unwrap_or_default();
            bail!("no checkpoints{of}{place}; `tolka checkpoints list` shows what there is");
        }
        if as_json {
            let stores: Vec<Value> = stores.iter().map(found::store).collect();
            print::line(json!({ "stores": stores }))?;
            return Ok(());
        }
        if stores.is_empty() {
            print::line("no checkpoints; the first prompt in a workspace makes one")?;
        }
        for store in &stores {
            let gone = if store.is_orphan { ", which is gone" } else { "" };
            let (many, size) = (count(store.snapshots.len() as u64, "checkpoint"), bytes(store.bytes));
            print::line(format_args!("{}{gone}: {many}, {size}", shown(&store.workspace)))?;
            for snapshot in store.snapshots.iter().rev() {
                let (name, session) = (&snapshot.commit[..12], plain(snapshot.session.as_str()));
                let about = dim(&format!("{:>14}  {session}", ago(snapshot.taken)));
                print::line(format_args!("  {name}  {about}  {}", plain(&snapshot.words)))?;
            }
        }
        Ok(())
    }

    async fn show(&self, checkpoint: &str, session: Option<&str>, with_diff: bool, as_json: bool) -> Result<()> {
        let Found { store, snapshot, next } = find(self.stores().await?, checkpoint, session)?;
        let checkpoints = tolka_workspace::Checkpoints::new(&self.data.folder()?);
        let diffs = match &next {
            Some(next) => checkpoints.diffs(&store.workspace, &snapshot.commit, &next.commit, None).await?,
            None => Vec::new(),
        };
        if as_json {
            let changes: Vec<Value> = diffs.iter().map(|diff| found::change(diff, with_diff)).collect();
            let next = next.map(|next| next.commit);
            print::line(
                json!({ "checkpoint": found::snapshot(&snapshot), "workspace": store.workspace.to_string_lossy(),
                "next": next, "changes": changes }),
            )?;
            return Ok(());
        }
        print::line(format_args!("checkpoint {}", snapshot.commit))?;
        print::line(format_args!("session    {}", plain(snapshot.session.as_str())))?;
        print::line(format_args!("workspace  {}", shown(&store.workspace)))?;
        print::line(format_args!("taken      {}", ago(snapshot.taken)))?;
        print::line(format_args!("           {}", plain(&snapshot.words)))?;
        match &next {
            None => print::line("it is the last of its session")?,
            Some(next) if diffs.is_empty() => {
                print::line(format_args!("nothing changed up to {}", &next.commit[..12]))?;
            }
            Some(next) => print::line(format_args!("changed up to {}:", &next.commit[..12]))?,
        }
        for diff in &diffs {
            let change = &diff.change;
            print::line(words::step(&change.path, found::operation(change.operation), change.added, change.removed))?;
            if let (true, Some(patch)) = (with_diff, &diff.patch) {
                patch.lines().try_for_each(|line| print::line(words::coloured(&plain(line), is_coloured())))?;
            }
        }
        Ok(())
    }

    async fn prune(&self) -> Result<()> {
        let Action::Prune { older_than, to_size, dry_run, json } = &self.action else { return Ok(()) };
        let (data, environment) = (self.data.folder()?, Environment::of_this_process());
        let policy = Saving::of(&self.config.read(&environment)?.checkpoints, &data).policy;
        let is_said = older_than.is_some() || to_size.is_some();
        // What is not said is not wanted, unless nothing is.
        let age = older_than.map(|age| age.0).or((!is_said).then_some(policy.keep_for));
        let size = to_size.map(|size| size.0).or((!is_said).then_some(policy.most_bytes));
        let mut body = json!({ "preview": dry_run });
        if let Some(age) = age {
            body["older_than"] = json!(age.as_secs());
        }
        if let Some(size) = size {
            body["most_bytes"] = json!(size);
        }
        let pruned = self.ask("/v1/checkpoints/prune", &body).await?;
        if *json {
            print::line(pruned)?;
            return Ok(());
        }
        let (went, freed) = (pruned["checkpoints"].as_u64().unwrap_or(0), pruned["bytes"].as_u64().unwrap_or(0));
        let (many, freed) = (count(went, "checkpoint"), bytes(freed));
        print::line(match dry_run {
            true => format!("{many} would go, about {freed}"),
            false => format!("{many} went, {freed}"),
        })?;
        Ok(())
    }

    /// Asks the server that has the data folder, or one of our own for as long as that takes: what changes a store goes by
    /// whoever holds it.
    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let attached = self.attach().await?;
        let answered = attached.client.post(path, body).await;
        attached.leave().await?;
        answered
    }

    async fn attach(&self) -> Result<Attached> {
        let data = self.data.folder()?;
        if let Some(running) = Attached::to(&data, self.token.clone())? {
            return Ok(running);
        }
        if !data.exists() {
            bail!("there is nothing in {}", data.display());
        }
        let saving = Saving::of(&self.config.read(&Environment::of_this_process())?.checkpoints, &data);
        // Without agents: prompts that wait go on waiting.
        let agents: Agents = Arc::from([]);
        let crew = async { Ok(Crew::without_hands(agents)) };
        Attached::own(&data, &data, saving, crew).await
    }
}
