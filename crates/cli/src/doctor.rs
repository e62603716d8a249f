//! `plimsoll doctor`: which providers, keys and local servers are there. It never shows a key.

use plimsoll::providers::{self, KeyState, ServerState};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::{DONE, Stop};
use crate::{local, paths};

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs) -> Result<u8, Stop> {
    let detected = providers::detect(&providers::environment).await;
    let local = local::state()?;
    let data = paths::data()?;
    if args.json {
        let report = json!({ "keys": detected.keys, "servers": detected.servers, "local": local, "data": data });
        println!("{report}");
        return Ok(DONE);
    }
    println!("Keys");
    for key in &detected.keys {
        let state = match key.state {
            KeyState::Set => "set",
            KeyState::Missing => "not set",
        };
        println!("  {:<12} {:<24} {state}", key.provider, key.variable);
    }
    println!("Servers on this machine");
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
        println!("  {:<12} {:<32} {state}", server.provider, server.base_url);
    }
    println!("Local models");
    for model in &local {
        println!("  {:<24} {}", model.name, model.state());
    }
    println!("Sessions\n  {}", data.display());
    Ok(DONE)
}
