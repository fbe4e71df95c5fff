//! Which agents a server has: the one that was chosen first, the demo beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use tolka_agent::native::demo::DEMO;
use tolka_agent::native::processes::{News, Processes};
use tolka_agent::native::{Native, Reaching};
use tolka_agent::{Agent, Agents, Pace, Recording, Replay};
use tolka_mcp::Hub;
use tolka_server::Hands;
use tolka_workspace::Checkpoints;

use crate::config::{self, Config, ConfigArgs, Require, Which};
use crate::environment::Environment;
use crate::models::{Catalogue, Look};
use crate::saving::Saving;
use crate::settings::{self, Sandboxed};

pub(crate) const NATIVE: &str = "native";

/// What an agent is chosen by.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgentArgs {
    /// Agent: `native`, `demo`, or `replay:<file>` for a recorded run [default: native if a model can be used, else demo]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Model for the native agent, as `tolka models` lists them
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<Which>,
    /// Refuse to start without a sandbox for commands: `bubblewrap` or `landlock`; without a name, any
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "any")]
    require_sandbox: Option<Require>,
    /// How fast the demo and recordings play: 1 as recorded, 10 ten times as fast, max at once
    #[arg(long, default_value = "1", value_name = "FACTOR")]
    pace: Pace,
    #[command(flatten)]
    config: ConfigArgs,
}

/// An agent that was chosen, and all that was read for it.
pub(crate) struct Choice {
    first: First,
    pace: Pace,
    config: Config,
    environment: Environment,
}

enum First {
    Native(Catalogue),
    Demo(WhyDemo),
    Replay(Arc<Replay>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WhyDemo {
    Chosen,
    NoModel,
}

/// What is said where nobody chose the demo and nothing else could answer.
const FALLEN_BACK: &str = "no model can be used, so the demo answers: a fixed script, and it says so";

/// The agents, what they may do, and what there is to say about them at the start.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) agents: Agents,
    pub(crate) hands: Hands,
    pub(crate) says: Vec<String>,
    pub(crate) processes: Arc<Processes>,
    /// What is told of them when no turn runs.
    pub(crate) news: News,
}

impl Crew {
    /// Of agents that run nothing on this machine.
    pub(crate) fn without_hands(agents: Agents) -> Self {
        let (processes, news) = Processes::new();
        Crew { agents, hands: Hands::default(), says: Vec::new(), processes, news }
    }
}

impl AgentArgs {
    pub(crate) async fn choose(&self) -> Result<Choice> {
        let environment = Environment::of_this_process();
        let mut config = self.config.read(&environment)?;
        config.sandbox.require_at_least(self.require_sandbox)?;
        let gather = || Catalogue::gather(&config, &environment, self.model.as_ref(), Look::WhereNeeded);
        let name = self.agent.as_deref();
        if let (Some(model), Some(name)) = (&self.model, name.filter(|name| *name != NATIVE)) {
            bail!("--model {model} is for the agent `native`, and --agent says `{name}`");
        }
        let first = match name.map(|name| (name, name.split_once(':'))) {
            None | Some((NATIVE, _)) => {
                let found = gather().await;
                match (found.stuck(), name) {
                    (Some(why), _) => bail!(why),
                    (None, _) if found.usual.is_some() => First::Native(found),
                    (None, None) => First::Demo(WhyDemo::NoModel),
                    (None, Some(_)) => {
                        bail!("the native agent needs a model, and none can be used; `tolka models` says why")
                    }
                }
            }
            Some((DEMO, _)) => First::Demo(WhyDemo::Chosen),
            Some((name, Some(("replay", file)))) => First::Replay(Arc::new(replay(name, Path::new(file), self.pace)?)),
            Some((name, _)) => bail!(
                "no agent is called `{name}`; there are `native`, `demo` and `replay:<file>` (ACP agents are not built yet)"
            ),
        };
        Ok(Choice { first, pace: self.pace, config, environment })
    }
}

pub(crate) fn replay(name: &str, file: &Path, pace: Pace) -> Result<Replay> {
    Ok(Replay::new(name, Recording::open(file)?, pace))
}

/// Where the demo works if it is not told where: in no folder of the person's own.
pub(crate) fn demo_workspace(data: &Path) -> PathBuf {
    data.join(DEMO)
}

impl Choice {
    /// Why the demo answers, where that is not what was asked for: one line for people.
    pub(crate) fn fallen_back(&self) -> Option<String> {
        matches!(self.first, First::Demo(WhyDemo::NoModel)).then(|| format!("{FALLEN_BACK}; `tolka models` tells why"))
    }

    /// The folder to work in: the given one, the demo's own, or the current one.
    pub(crate) fn workspace(&self, given: Option<&Path>, data: &Path) -> Result<PathBuf> {
        let folder = match (given, &self.first) {
            // It writes files, and the folder was named for somebody who knows what was asked.
            (Some(given), First::Demo(WhyDemo::NoModel)) => bail!(
                "no model can be used, and the demo does not write into {} unless it is asked to: `tolka models` tells how to \
                 get a model, --agent demo plays the demo there",
                given.display()
            ),
            (Some(given), _) => given.to_owned(),
            (None, First::Demo(_)) => {
                let folder = demo_workspace(data);
                settings::make_private_folder(data)?;
                std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
                folder
            }
            (None, First::Native(_) | First::Replay(_)) => PathBuf::from("."),
        };
        folder.canonicalize().with_context(|| format!("the workspace {} cannot be used", folder.display()))
    }

    /// How workspaces are saved.
    pub(crate) fn saving(&self, data: &Path) -> Saving {
        Saving::of(&self.config.checkpoints, data)
    }

    pub(crate) async fn agents(self, data: &Path, checkpoints: Option<Arc<Checkpoints>>) -> Result<Crew> {
        let Choice { first, pace, config, environment } = self;
        let (sandbox, hidden) = (config.sandbox.clone(), settings::hidden(&config, &environment, data));
        let making = tokio::task::spawn_blocking(move || settings::shell(&sandbox, hidden));
        let Sandboxed { shell, says, .. } = making.await??;
        let (servers, left_out) = config::servers(&config, &environment);
        let mcp = Arc::new(Hub::new(servers, Arc::new(Reaching::new(shell.clone()))));
        let (processes, news) = Processes::new();
        let (config, environment) = (&config, &environment);
        let given =
            settings::Given { config, environment, data, shell, processes: processes.clone(), checkpoints, mcp };
        let demo = given.demo(pace);
        // Those of the agent that is chosen where nobody chooses.
        let mut hands = settings::hands(&demo);
        let demo: Arc<dyn Agent> = Arc::new(Native::new(DEMO, Arc::new(demo)));
        let (agents, mut lines): (Agents, Vec<String>) = match first {
            First::Demo(why) => {
                let hint = [
                    FALLEN_BACK.to_owned(),
                    "for a real one set ANTHROPIC_API_KEY, OPENAI_API_KEY or another, or start Ollama; `tolka models` tells more"
                        .to_owned(),
                ];
                (Arc::from([demo]), if why == WhyDemo::NoModel { hint.to_vec() } else { Vec::new() })
            }
            First::Replay(replay) => (Arc::from([replay as Arc<dyn Agent>, demo]), Vec::new()),
            First::Native(found) => {
                let settings = given.native(&found)?;
                hands = settings::hands(&settings);
                let usual = found.usual.as_ref().map(Which::to_string).unwrap_or_default();
                let native: Arc<dyn Agent> = Arc::new(Native::new(NATIVE, Arc::new(settings)));
                let (_, search) = crate::web::web(config, environment);
                (Arc::from([native, demo]), vec![format!("model: {usual}"), search])
            }
        };
        lines.push(says);
        lines.extend(left_out);
        Ok(Crew { agents, hands, says: lines, processes, news })
    }
}
