//! `plimsoll doctor --model X`: shows the requests to a model, and where their settings come from. It
//! contacts no server and never prints a key.

use std::fmt::Display;

use plimsoll::Window;
use plimsoll::providers::{self, BaseUrl, ProviderError, Secret, ServerLocation, Vendor};

use crate::args::DoctorArgs;
use crate::error::{CliError, DONE, FAILED};
use crate::model_choice::resolved_window;
use crate::stdout;

/// Runs the command. The exit code is 1 if a key is missing.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8, CliError> {
    let agent = args.sources.resolve()?.agent;
    let settings = agent.settings();
    let name = settings.model.as_deref().unwrap_or_default();
    let environment = &providers::environment;
    let (model, mut builder) = agent.chat(name, environment)?;
    let vendor = model.vendor();
    if vendor.place == ServerLocation::Ours {
        return Err(CliError::usage(
            "Plimsoll starts the server of its local model for each run; `plimsoll model list` lists \
             the local models",
        ));
    }
    if let Some(url) = settings.base_url.as_deref() {
        builder = builder.base_url(url);
    }
    let facts = agent.facts(&model);
    let thinking = settings.builder.sampling.thinking;
    let (explained, fault) = match builder.clone().explain(environment, thinking) {
        Err(error @ ProviderError::NoKey { .. }) => {
            let builder = builder.key(Secret::new(""));
            (builder.explain(environment, thinking)?, Some(error))
        }
        explained => (explained?, None),
    };
    out!("{model}");
    let (wire, profile) = (explained.wire, &explained.profile);
    row("wire", format!("{wire}, by the profile {profile}"))?;
    let address_from = match agent.origin("base_url") {
        Some(origin) if settings.base_url.is_some() => origin.to_string(),
        _ => address_from(vendor, &explained.address),
    };
    row("address", format!("{} ({address_from})", explained.address))?;
    row("key", key(vendor, explained.key_from.as_deref()))?;
    row(
        "window",
        match resolved_window(settings.builder.window, None, &facts) {
            (Window::Known(tokens), from) => format!("{tokens} tokens ({from})"),
            (_, from) => from.to_owned(),
        },
    )?;
    let asked = explained.window_from;
    row("", format!("requested from its server: {asked}"))?;
    let own_tools = match explained.hosted_tools.as_slice() {
        [] => "the provider has none for this protocol".to_owned(),
        kinds => format!("available: {}", kinds.join(", ")),
    };
    row("own tools", own_tools)?;
    row(
        "more",
        format!("plimsoll models {model} shows sizes and prices"),
    )?;
    out!("An example: a question, with a tool");
    out!("{:#}", explained.sample.request);
    for left_out in &explained.sample.left_out {
        out!("  not in it: {left_out}");
    }
    let Some(fault) = fault else { return Ok(DONE) };
    out!("fault: {fault}");
    Ok(FAILED)
}

/// Returns the source of an address that `base_url` does not set.
fn address_from(vendor: &Vendor, address: &str) -> String {
    let of_variable = providers::find_base_url(vendor, &providers::environment);
    let expected = of_variable.as_deref().or(vendor.base_url);
    let expected = expected.and_then(|url| BaseUrl::parse(url, vendor.base_url).ok());
    // A configured provider overrides the environment.
    let is_expected = expected.is_some_and(|url| url.to_string() == address);
    match vendor.base_variable {
        Some(variable) if is_expected && of_variable.is_some() => format!("${variable}"),
        _ if is_expected => "the usual one".to_owned(),
        _ if vendor.blanks.is_empty() => "the configuration".to_owned(),
        _ => "the environment".to_owned(),
    }
}

/// Describes the source of the key.
fn key(vendor: &Vendor, from: Option<&str>) -> String {
    match from {
        Some(from) if from.contains(' ') => format!("from {from}"),
        Some(from) => format!("${from} is set"),
        None if vendor.place == ServerLocation::Hosted => {
            format!("none; set {}", vendor.key_variables.join(" or "))
        }
        None => "none is needed".to_owned(),
    }
}

/// Prints one property of the model.
fn row(name: &str, text: impl Display) -> Result<(), CliError> {
    stdout::prose(&format!("  {name:<9} {text}"))
}
