//! `plimsoll doctor`: which providers, keys and local servers are there. It never shows a key.

use plimsoll::providers::{self, KeyState, ServerState};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::{DONE, Stop};
use crate::out::out;
use crate::{local, paths};

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs) -> Result<u8, Stop> {
    let detected = providers::detect(&providers::environment).await;
    let local = local::state()?;
    let data = paths::data()?;
    if args.json {
        let report = json!({ "keys": detected.keys, "servers": detected.servers, "local": local, "data": data });
        out!("{report}");
        return Ok(DONE);
    }
    out!("Keys");
    for key in &detected.keys {
        let state = match key.state {
            KeyState::Set => "set",
            KeyState::Missing => "not set",
        };
        out!("  {:<12} {:<24} {state}", key.provider, key.variable);
    }
    out!("Servers on this machine");
    for server in &detected.servers {
        let state = match &server.state {
            ServerState::Up { models } => {
                let names: Vec<String> = models
                    .iter()
                    .map(|model| match model.window {
                        Some(window) => format!("{} (window {window})", model.name),
                        None => model.name.clone(),
                    })
                    .collect();
                if names.is_empty() {
                    "answers, without models".to_owned()
                } else {
                    format!("answers: {}", names.join(", "))
                }
            }
            ServerState::Refuses { status } => format!("refuses with status {status}"),
            ServerState::Stranger => "something else listens there".to_owned(),
            ServerState::Down => "nothing answers".to_owned(),
        };
        out!("  {:<12} {:<32} {state}", server.provider, server.base_url);
    }
    out!("Local models");
    for model in &local {
        out!("  {:<24} {}", model.name, model.state());
    }
    out!("Sessions\n  {}", data.display());
    Ok(DONE)
}
