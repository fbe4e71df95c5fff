mod about;
mod markdown;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tolka_dialect::Dialect;

use crate::print;
use about::About;

#[derive(Args)]
#[command(after_help = "Examples:
  tolka dialects
  tolka dialects --markdown > docs/dialects.md     which packet carries which fact, what is lost, every rule")]
pub(crate) struct Dialects {
    /// The whole of it, as Markdown: what each dialect carries, what it loses and why, and what it demands
    #[arg(long)]
    markdown: bool,
}

impl Dialects {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.markdown {
            print::line(markdown::document().trim_end())?;
            return Ok(ExitCode::SUCCESS);
        }
        for dialect in Dialect::ALL {
            let About { what, document, route } = About::of(dialect);
            print::line(format_args!("{:<21}{what} ({document})", dialect.name()))?;
            print::line(format_args!("{:<21}{route}", ""))?;
        }
        print::line("\nEvery session is told in any of them at /v1/sessions/{id}/events?dialect=<name>.")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// For help texts.
pub(crate) fn names() -> String {
    Dialect::ALL.map(Dialect::name).join(", ")
}
