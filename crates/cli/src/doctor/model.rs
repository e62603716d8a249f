//! `plimsoll doctor --model X`: shows the requests to a model, with the origin of every figure. Without `--connect` it contacts no server. It never prints a key.

use std::fmt::Display;

use plimsoll::Tokens;
use plimsoll::Window;
use plimsoll::providers::{
    self, BaseUrl, ConnectionReport, Fact, ModelClientBuilder, ModelFacts, ModelRef, ProviderError,
    RequestExplanation, Secret, ServerLocation, Vendor,
};

use crate::args::DoctorArgs;
use crate::error::{CliError, DONE, FAILED};
use crate::terminal::text::counted;
use crate::{local, model_choice, models, stdout};

/// A placeholder for the address of Plimsoll's own server, which uses another port on each run.
const OURS: &str = "http://127.0.0.1:1/v1";

/// All facts about a model that are known without asking its server.
struct KnownModel {
    model: ModelRef,
    facts: ModelFacts,
    explained: RequestExplanation,
    builder: ModelClientBuilder,
    address_from: String,
    /// Faults that prevent a request, such as a missing key.
    faults: Vec<String>,
    setting: Window,
}

/// Runs the command.
pub(crate) async fn run(args: &DoctorArgs) -> Result<u8, CliError> {
    let mut found = find(args).await?;
    let is_ours = found.model.vendor().place == ServerLocation::Ours;
    let connected = if args.connect && !is_ours {
        let asked = found.builder.clone().connect(&providers::environment);
        Some(asked.await?)
    } else {
        None
    };
    let trouble = connected.as_ref().and_then(|said| trouble(said, &found));
    found.faults.extend(trouble);
    tell(&found, connected.as_ref())?;
    Ok(if found.faults.is_empty() {
        DONE
    } else {
        FAILED
    })
}

async fn find(args: &DoctorArgs) -> Result<KnownModel, CliError> {
    let agent = args.sources.resolve()?.agent;
    let settings = agent.settings();
    let name = settings.model.clone().unwrap_or_default();
    let (name, unknown) = local::meant(name)?;
    let environment = &providers::environment;
    let (model, mut builder) = agent.chat(&name, environment)?;
    let vendor = model.vendor();
    let own_url = (vendor.place == ServerLocation::Ours).then_some(OURS);
    if let Some(url) = settings.base_url.as_deref().or(own_url) {
        builder = builder.base_url(url);
    }
    let facts = agent.facts(&model);
    builder = builder.facts(facts.clone());
    let mut faults = Vec::from_iter(unknown);
    let thinking = settings.builder.sampling.thinking;
    let explained = match builder.clone().explain(environment, thinking) {
        Err(error @ ProviderError::NoKey { .. }) => {
            faults.push(error.to_string());
            builder = builder.key(Secret::new(""));
            builder.clone().explain(environment, thinking)
        }
        explained => explained,
    };
    let explained = explained?;
    let address_from = match agent.origin("base_url") {
        Some(origin) if settings.base_url.is_some() => origin.to_string(),
        _ => address_from(vendor, &explained.address),
    };
    Ok(KnownModel {
        model,
        facts,
        explained,
        builder,
        address_from,
        faults,
        setting: settings.builder.window,
    })
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

/// Describes the window that a run begins with, and its source.
fn window(found: &KnownModel, reported: Option<Tokens>) -> String {
    let ours = found.model.vendor().place == ServerLocation::Ours;
    if ours && found.setting == Window::Discover {
        return format!("{} tokens (as started)", local::WINDOW);
    }
    match model_choice::resolved_window(found.setting, reported, &found.facts) {
        (Window::Known(tokens), from) => format!("{tokens} tokens ({from})"),
        (_, from) => from.to_owned(),
    }
}

/// Returns the fault in a server's response, if any.
fn trouble(said: &ConnectionReport, found: &KnownModel) -> Option<String> {
    let model = &found.model;
    if let Some(status @ (401 | 403)) = said.status {
        let names = model.vendor().key_variables.join(" or ");
        return Some(match &found.explained.key_from {
            Some(from) => format!(
                "its server refuses the key (status {status}); check the value of {from}, and \
                 that the key may use this model"
            ),
            None => format!("its server requires a key (status {status}); set {names}"),
        });
    }
    if said.refusal.is_some() {
        return said.refusal.clone();
    }
    if said.answers == Some(false) {
        return Some("its server does not answer".to_owned());
    }
    (said.has_model == Some(false)).then(|| format!("its server lists no model `{}`", model.name()))
}

/// Describes the source of the key.
fn key(found: &KnownModel) -> String {
    let vendor = found.model.vendor();
    match found.explained.key_from.as_deref() {
        Some(from) if from.contains(' ') => format!("from {from}"),
        Some(from) => format!("${from} is set"),
        None if vendor.place == ServerLocation::Hosted => {
            format!("none; set {}", vendor.key_variables.join(" or "))
        }
        None => "none is needed".to_owned(),
    }
}

fn tell(found: &KnownModel, connected: Option<&ConnectionReport>) -> Result<(), CliError> {
    let (explained, facts) = (&found.explained, &found.facts);
    out!("{}", found.model);
    let (wire, profile) = (explained.wire, &explained.profile);
    row("wire", format!("{wire}, by the profile {profile}"))?;
    match found.model.vendor().place {
        ServerLocation::Ours => row("address", "started for each run")?,
        _ => row(
            "address",
            format!("{} ({})", explained.address, found.address_from),
        )?,
    }
    row("key", key(found))?;
    row(
        "window",
        window(found, connected.and_then(|said| said.window)),
    )?;
    row(
        "",
        format!("requested from its server: {}", explained.window_from),
    )?;
    let most = |tokens: &Tokens| format!("{tokens} tokens at most");
    row("answer", fact_text(&facts.max_output, most))?;
    let price = fact_text(&facts.prices, |prices| {
        let rates = prices.rates;
        let cached = rates
            .cache_read
            .map(|price| format!(", {price} from the cache"));
        let cached = cached.unwrap_or_default();
        format!(
            "{} in, {} out{cached}, per million tokens",
            rates.input, rates.output
        )
    });
    row("price", price)?;
    let least = |tokens: &Tokens| format!("from {tokens} tokens on");
    row("cache", fact_text(&facts.min_cacheable, least))?;
    let can = models::can(facts, |from| format!(" ({from})"));
    if !can.is_empty() {
        row("can", can.join(", "))?;
    }
    let weighs = explained
        .weighs
        .unwrap_or("our own counter, calibrated by the reported usage");
    row("counted", format!("by {weighs}"))?;
    let own_tools = match explained.hosted_tools.as_slice() {
        [] => "the provider has none for this protocol".to_owned(),
        kinds => format!("available: {}", kinds.join(", ")),
    };
    row("own tools", own_tools)?;
    out!("An example: a question, with a tool");
    out!("{:#}", explained.sample.request);
    for left_out in &explained.sample.left_out {
        out!("  not in it: {left_out}");
    }
    if let Some(said) = connected {
        tell_connected(said)?;
    }
    for fault in &found.faults {
        out!("fault: {fault}");
    }
    Ok(())
}

/// Prints one property of the model.
fn row(name: &str, text: impl Display) -> Result<(), CliError> {
    stdout::prose(&format!("  {name:<9} {text}"))
}

fn tell_connected(said: &ConnectionReport) -> Result<(), CliError> {
    out!("Its server");
    if said.answers.is_none() {
        out!("  was not asked: this API counts only by generating");
        return Ok(());
    }
    let models = match (said.models, said.status) {
        (Some(count), _) => {
            let which = match said.has_model {
                Some(true) => ", including this one",
                Some(false) => ", but not this one",
                None => "",
            };
            format!("lists {}{which}", counted(count, "model"))
        }
        (None, Some(status)) => {
            format!("answers the request for its models with status {status}")
        }
        (None, None) => "lists no models".to_owned(),
    };
    out!("  {models}");
    match said.window {
        Some(window) => out!("  reports a window of {window} tokens"),
        None => out!("  does not report the window"),
    }
    match (said.counted, &said.refusal) {
        (Some(tokens), _) => out!("  counts {tokens} tokens for the example's question"),
        (None, None) => out!("  does not count requests"),
        (None, Some(_)) => out!("  refuses to count requests"),
    }
    Ok(())
}

/// Formats a figure with its source.
fn fact_text<T>(fact: &Option<Fact<T>>, text: impl Fn(&T) -> String) -> String {
    match fact {
        Some(fact) => format!("{} ({})", text(&fact.value), fact.from),
        None => "not known".to_owned(),
    }
}
