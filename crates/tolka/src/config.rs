//! `tolka.toml`: what a person has settled about models, permissions and limits.
//!
//! It is read from `--config`, `TOLKA_CONFIG` or the person's own configuration folder, and never from the workspace: a
//! repository could send our keys to a server of its own. Every mistake in it is refused with its line and with what
//! would be right; what stands on that line is never repeated, for it may be a key.

mod file;
mod mcp;
mod sandbox;
mod values;
mod web;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use tolka_agent::native::permission::{Rule, Rules};

pub(crate) use file::{CheckpointsEntry, Config, ModelEntry, Otherwise, ProviderEntry, TitleSource, Wire};
use file::{LeaveEntry, Permission};
pub(crate) use mcp::servers;
pub(crate) use sandbox::{Require, SandboxEntry};
pub(crate) use values::{Age, BaseUrl, Compact, Size, Which};

use crate::environment::Environment;

/// Which file.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: ~/.config/tolka/tolka.toml]
    #[arg(long, value_name = "FILE", env = "TOLKA_CONFIG", global = true)]
    config: Option<PathBuf>,
}

impl ConfigArgs {
    /// A file that was named has to be there; the usual one need not.
    pub(crate) fn read(&self, environment: &Environment) -> Result<Config> {
        if let Some(path) = &self.config {
            return read(path).with_context(|| format!("the configuration {} cannot be used", path.display()));
        }
        let Some(path) = usual_place(environment) else { return Ok(Config::default()) };
        match read(&path) {
            Err(error) if is_missing(&error) => Ok(Config::default()),
            read => read.with_context(|| format!("the configuration {} cannot be used", path.display())),
        }
    }
}

pub(crate) fn usual_place(environment: &Environment) -> Option<PathBuf> {
    let base = environment.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|base| base.is_absolute());
    let home = || environment.get("HOME").map(|home| PathBuf::from(home).join(".config"));
    Some(base.or_else(home)?.join("tolka/tolka.toml"))
}

/// The rules of `[permissions]`, in the order of the file.
pub(crate) fn rules(config: &Config) -> Rules {
    let rule = |permission: &str, pattern: &str, leave: LeaveEntry| Rule {
        permission: permission.to_owned(),
        pattern: pattern.to_owned(),
        leave: leave.into(),
    };
    let rules = config.permissions.0.iter().flat_map(|entry| match &entry.value {
        Permission::All(leave) => vec![rule(&entry.name, "*", *leave)],
        Permission::By(patterns) => {
            patterns.0.iter().map(|pattern| rule(&entry.name, &pattern.name, pattern.value)).collect()
        }
    });
    Rules::with(rules)
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn read(path: &Path) -> Result<Config> {
    let text = std::fs::read_to_string(path)?;
    let mut config = parse(&text)?;
    let path = std::path::absolute(path)?;
    config.folder = path.parent().map(Path::to_owned);
    config.file = Some(path);
    Ok(config)
}

pub(crate) fn parse(text: &str) -> Result<Config> {
    let mistake = |span: Option<std::ops::Range<usize>>, message: &str| {
        let line = span.map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        anyhow!("{line}{}", discreet(message))
    };
    let config: Config = toml::from_str(text).map_err(|error| mistake(error.span(), error.message()))?;
    config.check().map_err(|(span, message)| mistake(span, &message))?;
    Ok(config)
}

/// The parser's words without what it quotes of a value: somebody may have put a key in the wrong place.
fn discreet(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((before, rest)) = message.split_once("string \"") else { return message };
    match rest.rfind("\", expected") {
        Some(end) => format!("{before}a string{}", &rest[end + 1..]),
        None => format!("{before}a string"),
    }
}

#[cfg(test)]
mod tests;
