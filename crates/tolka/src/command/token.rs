use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use tolka_server::{Scope, TokenFile};

use crate::{DataArgs, print};

#[derive(Args)]
#[command(after_help = "Examples:
  tolka token add phone --scope view,approve
  tolka token list
  tolka token revoke phone

As soon as there is a token, every request needs one: as `Authorization: Bearer`, as the password of
Basic (OPENCODE_SERVER_PASSWORD), or by opening http://…/?token=… once in a browser.")]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Subcommand)]
enum Action {
    /// Make a token and print it; it is shown this once
    Add {
        /// Who or what it is for
        name: String,
        /// view, prompt, approve, admin; with commas between
        #[arg(long, value_delimiter = ',', default_value = "admin", value_name = "SCOPES")]
        scope: Vec<Scope>,
    },
    /// List names and scopes
    List,
    /// Take a token back: requests are refused at once, open streams are cut within seconds
    Revoke { name: String },
}

impl TokenCommand {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let file = TokenFile::new(&self.data.folder()?);
        match self.action {
            Action::Add { name, scope } => print::line(file.add(&name, scope)?)?,
            Action::List => {
                for token in file.list()? {
                    let scopes: Vec<String> = token.scopes.iter().map(ToString::to_string).collect();
                    print::line(format_args!("{}  {}", token.name, scopes.join(",")))?;
                }
            }
            Action::Revoke { name } => {
                file.revoke(&name)?;
                if file.list()?.is_empty() {
                    let path = self.data.folder()?.join("tokens.json");
                    eprintln!(
                        "that was the last token: nobody comes in until you add one, or remove {}",
                        path.display()
                    );
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
