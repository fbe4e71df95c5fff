use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::config::{ConfigArgs, ModelEntry, Which};
use crate::environment::Environment;
use crate::models::{Catalogue, Look, Provider};
use crate::print::{self, plain};

#[derive(Args)]
#[command(after_help = "Examples:
  tolka models
  tolka models --json | jq -r '.models[].model'
  TOLKA_MODEL=ollama/qwen3 tolka serve

The one with the star is the usual one; --model, TOLKA_MODEL or `model` in tolka.toml choose another. One with an
exclamation mark was chosen so and cannot be used.
A model that is not listed can be named all the same: provider/model.")]
pub(crate) struct Models {
    #[command(flatten)]
    config: ConfigArgs,
    /// As JSON, one object
    #[arg(long)]
    json: bool,
}

impl Models {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let environment = Environment::of_this_process();
        let config = self.config.read(&environment)?;
        let (_, search) = crate::web::web(&config, &environment);
        let found = Catalogue::gather(&config, &environment, None, Look::Everywhere).await;
        if self.json {
            print::line(as_json(&found, &search))?;
        } else {
            tell(&found)?;
            print::line(format_args!("\n{search}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tell(found: &Catalogue) -> Result<()> {
    let listed: Vec<(bool, Which, &ModelEntry)> = listed(found).collect();
    if let Some(refused) = &found.refused {
        print::line(format_args!("! {}  {}", plain(&refused.model), plain(&refused.why)))?;
    }
    let width = listed.iter().map(|(_, which, _)| which.to_string().chars().count()).max().unwrap_or(0);
    for (is_usual, which, model) in &listed {
        let mark = if *is_usual { '*' } else { ' ' };
        let line = format!("{mark} {:width$}  {}", plain(&which.to_string()), about(model));
        print::line(line.trim_end())?;
    }
    let unlisted: Vec<&Provider> = found.usable.iter().filter(|provider| provider.models.is_empty()).collect();
    for provider in &unlisted {
        let (name, place) = (&provider.name, provider.base_url.shown());
        print::line(format_args!("  {name}/…  any model that {place} has, by its name: --model {name}/<id>"))?;
    }
    if listed.is_empty() && unlisted.is_empty() {
        print::line("no model can be used now; set one of the variables below, or start Ollama")?;
    }
    if !found.unusable.is_empty() {
        print::line("")?;
    }
    for unusable in &found.unusable {
        print::line(format_args!("- {}: {}", unusable.provider, plain(&unusable.why)))?;
    }
    Ok(())
}

fn listed(found: &Catalogue) -> impl Iterator<Item = (bool, Which, &ModelEntry)> {
    found.usable.iter().flat_map(|provider: &Provider| {
        provider.models.iter().map(|model| {
            let which = Which { provider: provider.name.clone(), id: model.id.clone() };
            (found.usual.as_ref() == Some(&which), which, model)
        })
    })
}

fn about(model: &ModelEntry) -> String {
    let mut words = Vec::new();
    words.extend(model.context.map(|tokens| format!("{} context", thousands(tokens))));
    words.extend(model.output.map(|tokens| format!("{} output", thousands(tokens))));
    words.extend(model.images.unwrap_or_default().then(|| "images".to_owned()));
    words.extend(model.price.map(|price| format!("${}/${} per million", price.input, price.output)));
    words.join(", ")
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

fn as_json(found: &Catalogue, search: &str) -> Value {
    let models: Vec<Value> = listed(found)
        .map(|(is_usual, which, model)| {
            let price = model.price.map(|price| {
                json!({ "input": price.input, "output": price.output, "cache_read": price.cache_read, "cache_write": price.cache_write })
            });
            json!({
                "model": which.to_string(), "provider": which.provider, "id": which.id, "name": model.name,
                "context": model.context, "output": model.output, "images": model.images, "price": price, "usual": is_usual,
            })
        })
        .collect();
    let unusable: Vec<Value> =
        found.unusable.iter().map(|unusable| json!({ "provider": unusable.provider, "why": unusable.why })).collect();
    let refused = found.refused.as_ref().map(|refused| json!({ "model": refused.model, "why": refused.why }));
    json!({ "usual": found.usual.as_ref().map(Which::to_string), "refused": refused, "models": models, "unusable": unusable, "search": search })
}
