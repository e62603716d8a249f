//! `plimsoll doctor`: lists providers, API keys and local servers. With `--model`, explains the
//! requests to that model. It never prints a key.

mod model;

use plimsoll::providers::{self, ServerState};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::error::{CliError, DONE};
use crate::{local, paths, stdout};

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs) -> Result<u8, CliError> {
    if args.sources.flags.text("model").is_some() {
        return model::run(args);
    }
    let detected = providers::detect(&providers::environment).await;
    let local = local::list()?;
    let data = paths::data()?;
    if args.json {
        let report = json!({ "keys": detected.keys, "servers": detected.servers, "local": local, "data": data });
        out!("{report}");
        return Ok(DONE);
    }
    out!("Keys");
    for key in &detected.keys {
        let state = if key.is_set { "set" } else { "not set" };
        out!("  {:<12} {:<24} {state}", key.provider, key.variable);
    }
    out!("Servers on this machine");
    for server in &detected.servers {
        let state = match &server.state {
            ServerState::Up { models } if models.is_empty() => "answers, without models".to_owned(),
            ServerState::Up { models } => format!("answers: {}", models.join(", ")),
            ServerState::Refuses { status } => format!("refuses with status {status}"),
            ServerState::Stranger => "something else listens there".to_owned(),
            ServerState::Down => "nothing answers".to_owned(),
        };
        let (provider, url) = (server.provider, &server.base_url);
        stdout::prose(&format!("  {provider:<12} {url:<32} {state}"))?;
    }
    out!("Local models");
    for model in &local {
        stdout::prose(&format!("  {:<24} {}", model.name, local::state(model)))?;
    }
    out!("Sessions\n  {}", data.display());
    Ok(DONE)
}
