use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::json;
use tolka_agent::native::permission::Grants;

use crate::print::plain;
use crate::{DataArgs, print};

#[derive(Args)]
#[command(after_help = "Examples:
  tolka permissions list
  tolka permissions revoke 5f0c…

These are the answers \"always\" that people gave; each counts in one workspace. What is allowed, asked and denied to begin
with is settled under [permissions] in tolka.toml. A server that runs heeds both commands at once.")]
pub(crate) struct Permissions {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Subcommand)]
enum Action {
    /// List them
    List {
        /// As JSON, one object
        #[arg(long)]
        json: bool,
    },
    /// Take one back, or all of them
    Revoke {
        /// As the list names it, or as much of it as is like no other; `all` for all
        id: String,
    },
}

impl Permissions {
    /// It is a file that servers and commands share, with a lock of its own: no server has to be asked.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let grants = Grants::new(&self.data.folder()?);
        match self.action {
            Action::List { json: true } => print::line(json!({ "permissions": grants.read()? }))?,
            Action::List { json: false } => list(&grants)?,
            Action::Revoke { id } => revoke(&grants, &id)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(grants: &Grants) -> Result<()> {
    let known = grants.read()?;
    if known.is_empty() {
        print::line("nothing was allowed always")?;
    }
    for grant in known {
        let (permission, pattern) = (plain(&grant.permission), plain(&grant.pattern));
        print::line(format_args!(
            "{}  {permission:8}  {pattern}  in {}",
            grant.id,
            plain(&grant.workspace.display().to_string())
        ))?;
    }
    Ok(())
}

fn revoke(grants: &Grants, id: &str) -> Result<()> {
    let known = grants.read()?;
    let meant: Vec<_> = known.iter().filter(|grant| id == "all" || grant.id.starts_with(id)).collect();
    match are_meant(id, meant.len()) {
        Meant::None => bail!("nothing that was allowed is called `{id}`; `tolka permissions list` shows what there is"),
        Meant::Several => bail!("`{id}` could be {} of them; say more of it", meant.len()),
        Meant::These => {}
    }
    for grant in meant {
        grants.revoke(&grant.id)?;
        print::line(format_args!("revoked {}  {}", plain(&grant.permission), plain(&grant.pattern)))?;
    }
    Ok(())
}

enum Meant {
    None,
    These,
    Several,
}

fn are_meant(id: &str, count: usize) -> Meant {
    match count {
        _ if id == "all" => Meant::These,
        0 => Meant::None,
        1 if !id.is_empty() => Meant::These,
        _ => Meant::Several,
    }
}
