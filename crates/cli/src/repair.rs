//! `plimsoll repair`: repairs a chat so that its model's API accepts it. It needs no model and no
//! network, and its output is deterministic. The `foreign` crate repairs.

use std::path::PathBuf;

use clap::Args;
use plimsoll::foreign::{Target, repair};
use plimsoll::providers::{self, ModelRef};
use serde_json::{Value, json};

use crate::chat_file;
use crate::error::{CliError, DONE};
use crate::input;

/// The arguments of `plimsoll repair`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/repair.txt").trim_ascii_end())]
pub(crate) struct RepairArgs {
    /// The chat; `-` is standard input [default: standard input]
    file: Option<PathBuf>,
    /// The protocol [default: detected]
    #[arg(long, value_name = "NAME", value_parser = Target::PROTOCOLS, conflicts_with = "model")]
    protocol: Option<String>,
    /// Apply the rules of this model's API, as PROVIDER/NAME
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Remove all reasoning, for when the provider refuses a signature
    #[arg(long)]
    drop_thinking: bool,
    /// Print the reason for each repair to stderr
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    explain: bool,
    /// Print the repairs to stderr as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print nothing to stderr
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
}

/// Runs the filter.
pub(crate) fn run(args: &RepairArgs) -> Result<u8, CliError> {
    let mut input = input::chat(args.file.as_deref())?;
    let mut repairs = std::mem::take(&mut input.repairs);
    let (model, protocol) = (args.model.as_deref(), args.protocol.as_deref());
    let (mut chat, target) = chat_file::read(&mut input, model, protocol)?;
    let reasoning = chat_file::reasoning(args.drop_thinking);
    repairs.extend(repair(&mut chat, &target, reasoning));
    if args.json {
        let report = json!({ "protocol": target.protocol().name(), "repairs": repairs });
        crate::note(&report.to_string());
    } else if !args.quiet {
        for repair in &repairs {
            say!("repaired: {repair}");
            if args.explain {
                note!("  because {}", repair.reason());
            }
        }
    }
    crate::stdout::exactly(&chat_file::ended(chat.write(), !repairs.is_empty()))?;
    Ok(DONE)
}

/// Returns the rules that apply: those of the named model, otherwise of the named protocol,
/// otherwise of the session log that the request comes from, otherwise of the protocol that the
/// request looks like.
pub(crate) fn target(
    model: Option<&str>,
    protocol: Option<&str>,
    request: &Value,
    of_log: Option<&Target>,
) -> Result<Target, CliError> {
    let target = match (model, protocol, of_log) {
        (Some(model), ..) => {
            let model = ModelRef::parse(model)?;
            providers::target_of(&model, request).map_err(CliError::usage)?
        }
        (None, None, Some(target)) => target.clone(),
        (None, protocol, _) => {
            let model = request.get("model").and_then(Value::as_str);
            let named = protocol.and_then(|protocol| Target::of_protocol(protocol, model));
            named.unwrap_or_else(|| Target::of_request(request))
        }
    };
    let own = of_log.cloned().or_else(|| Target::detect(request));
    let named = target.protocol().name();
    match own
        .map(|own| own.protocol().name())
        .filter(|own| *own != named)
    {
        None => Ok(target),
        Some(own) => Err(CliError::usage(format!(
            "the chat has the protocol {own}, but that of the model or of --protocol is {named}; leave \
             them out, or go on with any model by `plimsoll sessions import FILE`"
        ))),
    }
}
