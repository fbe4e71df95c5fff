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
use tolka_agent::native::processes::Processes;
use tolka_agent::native::settings::{Compaction, Few, Settings, Titles};
use tolka_agent::{Pace, Patience};
use tolka_mcp::Hub;
use tolka_server::Hands;
use tolka_workspace::Checkpoints;
use tolka_workspace::command::{Level, Network, Shell};
use tolka_workspace::slash::Shelf;

use crate::config::{self, Compact, Config, Otherwise, SandboxEntry, TitleSource};
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
    pub(crate) processes: Arc<Processes>,
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
    pub(crate) mcp: Arc<Hub>,
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
        let mcp = Some(self.mcp.clone());
        let shelf = Some(self.shelf());
        Ok(Settings { rules, patience, titles, instructions, mcp, shelf, ..self.usual(models) })
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
            processes: self.processes.clone(),
            checkpoints: self.checkpoints.clone(),
            titles: Titles::Prompt,
            mcp: None,
            compaction: match self.config.compact {
                Compact::Usual => Compaction::default(),
                Compact::Never => Compaction::OnRequest,
                Compact::At(share) => Compaction::At(share),
            },
            instructions: None,
            web: crate::web::web(self.config, self.environment).0,
            subagents: Few {
                at_once: limits.subagents.unwrap_or(Few::default().at_once),
                depth: limits.subagent_depth.unwrap_or(Few::default().depth),
            },
            shelf: None,
        }
    }

    /// Where the person keeps prompts for every folder.
    fn shelf(&self) -> Shelf {
        let of_home = |folder: &str| self.environment.get("HOME").map(|home| Path::new(home).join(folder));
        let given = |name: &str| self.environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        Shelf {
            configuration: given("XDG_CONFIG_HOME").or_else(|| of_home(".config")),
            claude: given("CLAUDE_CONFIG_DIR").or_else(|| of_home(".claude")),
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
pub(crate) fn hands(settings: &Settings) -> Hands {
    let shell = &settings.shell;
    let hosts = match shell.network() {
        Network::Only(hosts) => hosts.iter().map(ToString::to_string).collect(),
        Network::On | Network::Off => Vec::new(),
    };
    let sandbox = tolka_server::Sandbox {
        level: shell.level().name().to_owned(),
        network: shell.network().name().to_owned(),
        hosts,
        cannot_stop: shell.gaps().into_iter().map(|gap| gap.words().to_owned()).collect(),
    };
    Hands {
        rules: settings.rules.0.clone(),
        grants: Some(settings.grants.clone()),
        mcp: settings.mcp.clone(),
        sandbox: Some(sandbox),
        processes: Some(settings.processes.clone()),
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
    /// Stronger ones, and why they are not used.
    pub(crate) unusable: Vec<Unusable>,
}

/// A sandbox that does not work here.
pub(crate) struct Unusable {
    pub(crate) level: Level,
    pub(crate) why: String,
}

/// What commands are run with; it blocks while it tries what the machine can do.
/// `hidden` is what they do not see.
pub(crate) fn shell(wanted: &SandboxEntry, hidden: Vec<PathBuf>) -> Result<Sandboxed> {
    let keeper = std::env::current_exe().context("this program does not know where it is")?;
    let mut weaker = Vec::new();
    let levels = wanted.level.map_or(Level::ALL.to_vec(), |level| vec![level]);
    let try_out = |level: Level| Shell::at(&keeper, level)?.reaching(wanted.network.clone());
    let found = levels.into_iter().find_map(|level| match try_out(level) {
        Ok(shell) => Some(shell),
        Err(error) => {
            tracing::info!(level = level.name(), %error, "a sandbox cannot be used here");
            weaker.push(Unusable { level, why: error.to_string() });
            None
        }
    });
    let is_enough = |shell: &Shell| wanted.require.is_none_or(|least| shell.level().is_at_least(least));
    let Some(shell) = found.filter(is_enough) else { bail!(refusal(wanted, &weaker)) };
    let shell = shell.hiding(hidden).limited_to(wanted.limits());
    let network = match shell.network() {
        Network::On => String::new(),
        Network::Off => ", no network".to_owned(),
        Network::Only(hosts) => format!(", network: {} on the list", hosts.len()),
    };
    let says = match shell.level() {
        Level::None => "sandbox: none; commands can do all that you can".to_owned(),
        level @ (Level::Bubblewrap | Level::Landlock) => format!("sandbox: {}{network}", level.name()),
    };
    Ok(Sandboxed { shell: Arc::new(shell), says, unusable: weaker })
}

/// Why there is no server, and what to do.
fn refusal(wanted: &SandboxEntry, unusable: &[Unusable]) -> String {
    let name = |level: Level| level.name().to_owned();
    let least = wanted.level.or(wanted.require).map_or_else(|| "one".to_owned(), name);
    let why: Vec<String> = unusable.iter().map(|one| format!("{}: {}", one.level.name(), one.why)).collect();
    let hint = "install bubblewrap (the package is called so everywhere) and allow user namespaces, or use Linux 5.19 or \
                later, which has Landlock";
    format!("a sandbox is required ({least}), and it does not work here. {}. To get one, {hint}", why.join("; "))
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
