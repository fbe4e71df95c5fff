use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use tolka_agent::{Agent, Agents, Pace, Recording, Replay, demo};

/// The agent that `--agent` names, and the demo beside it.
pub(crate) fn agents(name: &str, pace: Pace) -> Result<Agents> {
    let chosen: Arc<dyn Agent> = match name.split_once(':') {
        Some(("replay", file)) => Arc::new(Replay::new(name, Recording::open(Path::new(file))?, pace)),
        None if name == "demo" => return Ok(Arc::from([demo(pace)])),
        None if name == "native" => bail!("the native agent is not built yet; `demo` and `replay:<file>` are"),
        _ => bail!("no agent is called `{name}`; there are `demo` and `replay:<file>` (ACP agents are not built yet)"),
    };
    Ok(Arc::from([chosen, demo(pace)]))
}
