//! From `tolka.toml`, the environment and the command line to what the native agent is given.

use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tolka_agent::native::demo::Demo;
use tolka_agent::native::model::Model;
use tolka_agent::native::permission::{Grants, ONCE};
use tolka_agent::native::settings::{Settings, Titles};
use tolka_agent::{Pace, Patience};
use tolka_server::Hands;
use tolka_workspace::Checkpoints;
use tolka_workspace::command::{Level, Shell};

use crate::config::{self, Config, Otherwise, Sandbox, TitleSource};
use crate::environment::Environment;
use crate::models::Catalogue;

/// Enough for the longest of tasks, and an end for a model that goes round in circles.
const STEPS: u32 = 200;
const TURN: Duration = Duration::from_secs(2 * 3600);
const TRIES: u32 = 5;
const COMMAND: Duration = Duration::from_secs(120);

/// What all settings are made from.
pub(crate) struct Given<'a> {
    pub(crate) config: &'a Config,
    pub(crate) environment: &'a Environment,
    pub(crate) data: &'a Path,
    pub(crate) shell: Arc<Shell>,
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
}

impl Given<'_> {
    pub(crate) fn native(&self, found: &Catalogue) -> Result<Settings> {
        let models = found.make()?;
        let ask = &self.config.ask;
        let usual = Patience::default();
        let patience = Patience {
            alone: ask.alone.map_or(usual.alone, |time| time.0),
            attended: ask.attended.map_or(usual.attended, |time| time.0),
            otherwise: match ask.otherwise {
                Otherwise::Reject => None,
                // Never always: nobody was there.
                Otherwise::Allow => Some(ONCE.to_owned()),
            },
        };
        let instructions = self.config.instructions.as_deref().map(|path| self.instructions(path)).transpose()?;
        let titles = match self.config.titles {
            TitleSource::Prompt => Titles::Prompt,
            TitleSource::Model => Titles::Model,
        };
        let rules = config::rules(self.config);
        Ok(Settings { rules, patience, titles, instructions, ..self.usual(models) })
    }

    /// The demo has its own models, rules and patience; limits and the sandbox are those of everybody.
    pub(crate) fn demo(&self, pace: Pace) -> Settings {
        let usual = self.usual(vec![Demo::new(pace)]);
        Settings { rules: Demo::rules(), patience: Demo::patience(), ..usual }
    }

    fn usual(&self, models: Vec<Arc<dyn Model>>) -> Settings {
        let limits = &self.config.limits;
        Settings {
            models,
            steps: limits.steps.unwrap_or(STEPS),
            turn: limits.turn.map_or(TURN, |time| time.0),
            tries: limits.tries.unwrap_or(TRIES),
            command: limits.command.map_or(COMMAND, |time| time.0),
            rules: config::rules(self.config),
            grants: Arc::new(Grants::new(self.data)),
            patience: Patience::default(),
            shell: self.shell.clone(),
            checkpoints: self.checkpoints.clone(),
            titles: Titles::Prompt,
            instructions: None,
        }
    }

    fn instructions(&self, path: &Path) -> Result<String> {
        /// It is sent with every step; what is longer is no instruction.
        const LONGEST: u64 = 256 * 1024;
        let path = beside(self.config.folder.as_deref(), path, self.environment);
        let place = path.display();
        let file = std::fs::File::open(&path).with_context(|| format!("the instructions {place} cannot be read"))?;
        let mut text = String::new();
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        read.with_context(|| format!("the instructions {place} cannot be read"))?;
        if text.len() as u64 > LONGEST {
            bail!("the instructions {place} are longer than {} KiB; they are sent with every step", LONGEST / 1024);
        }
        Ok(text)
    }
}

/// What an agent may do, for those who look.
pub(crate) fn hands(settings: &Settings, level: Level) -> Hands {
    let cannot_stop = level.cannot_stop().iter().map(|&what| what.to_owned()).collect();
    Hands {
        rules: settings.rules.0.clone(),
        grants: Some(settings.grants.clone()),
        sandbox: Some(tolka_server::Sandbox { level: level.name().to_owned(), cannot_stop }),
    }
}

/// What commands have no business with: the journal, tokens and grants, the configuration, and files with keys in them.
pub(crate) fn hidden(config: &Config, environment: &Environment, data: &Path) -> Vec<PathBuf> {
    let keys = config.providers.0.iter().filter_map(|provider| provider.value.key_file.as_deref());
    let keys = keys.map(|file| beside(config.folder.as_deref(), file, environment));
    config.file.iter().cloned().chain([data.to_owned()]).chain(keys).collect()
}

pub(crate) struct Sandboxed {
    pub(crate) shell: Arc<Shell>,
    /// One short line for people.
    pub(crate) says: String,
}

/// What commands are run with; it blocks while it tries what the machine can do.
/// `hidden` is what they do not see.
pub(crate) fn shell(wanted: Sandbox, hidden: Vec<PathBuf>) -> Result<Sandboxed> {
    let keeper = std::env::current_exe().context("this program does not know where it is")?;
    let shell = match wanted {
        Sandbox::Auto | Sandbox::Require => Shell::probe(&keeper),
        Sandbox::None => Shell::at(&keeper, Level::None)?,
    };
    let shell = shell.hiding(hidden);
    let level = shell.level();
    let says = match (wanted, level) {
        (Sandbox::Require, Level::None) => {
            bail!("sandbox = \"require\", and this machine has neither bubblewrap nor Landlock; install bubblewrap")
        }
        (_, Level::None) => "sandbox: none; commands can do all that you can".to_owned(),
        (_, Level::Bubblewrap | Level::Landlock) => format!("sandbox: {}", level.name()),
    };
    Ok(Sandboxed { shell: Arc::new(shell), says })
}

/// As everything makes the data folder: for its owner alone.
pub(crate) fn make_private_folder(folder: &Path) -> Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("{} cannot be made", folder.display()))
}

/// A path of the configuration: `~` is the home folder, and what is relative is so from the file's own folder.
pub(crate) fn beside(folder: Option<&Path>, path: &Path, environment: &Environment) -> PathBuf {
    if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), environment.get("HOME")) {
        return Path::new(home).join(rest);
    }
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}
