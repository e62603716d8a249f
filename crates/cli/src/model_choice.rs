//! Chooses the model of a run: one that is named, one that runs on this machine, or Plimsoll's own
//! local model.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::config::{AgentConfig, AgentModel};
use plimsoll::context::FALLBACK_WINDOW;
use plimsoll::providers::local::RunningServer;
use plimsoll::providers::{self, Fact, ModelFacts, Origin, ServerLocation};
use plimsoll::{Provider, Tokens, Window};

use crate::error::CliError;
use crate::local;

/// A model that can be called.
pub(crate) struct ModelChoice {
    /// The name of the model, as in `--model`.
    pub(crate) name: String,
    /// The address, unless it is the provider's usual one.
    pub(crate) base_url: Option<String>,
    pub(crate) model: AgentModel,
    /// The source of the window, in words.
    pub(crate) window_from: &'static str,
    /// Where its server runs. The settings are adapted to that.
    pub(crate) place: ServerLocation,
    /// Plimsoll's own server, which stops when this is dropped.
    pub(crate) _server: Option<RunningServer>,
}

/// Finds or starts the model.
pub(crate) async fn choose(agent: &AgentConfig, is_quiet: bool) -> Result<ModelChoice, CliError> {
    let settings = agent.settings();
    match (settings.model.as_deref(), settings.base_url.as_deref()) {
        // A configuration has no address for it.
        (Some("local"), _) => local_model(agent, is_quiet, false).await,
        (Some(name), None) if name.starts_with("local/") => {
            local::start(agent, is_quiet, false).await
        }
        (Some(name), base_url) => remote(agent, name, base_url).await,
        (None, base_url @ Some(_)) => remote(agent, "openai-compatible/default", base_url).await,
        (None, None) => {
            let keys = providers::detect_keys(&providers::environment);
            if let Some(key) = keys.iter().find(|key| key.is_set) {
                return Err(CliError::usage(format!(
                    "{} is set, but no model is named: use --model {}/NAME, or --model local, \
                     which is free of charge",
                    key.variable, key.provider
                )));
            }
            local_model(agent, is_quiet, true).await
        }
    }
}

async fn remote(
    agent: &AgentConfig,
    name: &str,
    base_url: Option<&str>,
) -> Result<ModelChoice, CliError> {
    let environment = &providers::environment;
    let (model, mut builder) = agent.chat(name, environment)?;
    if let Some(base_url) = base_url {
        builder = builder.base_url(base_url);
    }
    let facts = agent.facts(&model);
    let provider = builder.build();
    let provider = Arc::new(provider?);
    let settings = &agent.settings().builder;
    let mut reported = None;
    if settings.window == Window::Discover {
        let limit = settings.limits.max_duration.unwrap_or(Duration::MAX);
        let asked = tokio::time::timeout(limit, provider.window()).await;
        reported = asked.ok().flatten();
    }
    let (window, window_from) = resolved_window(settings.window, reported, &facts);
    Ok(ModelChoice {
        name: name.to_owned(),
        base_url: base_url.map(str::to_owned),
        model: AgentModel {
            provider,
            window,
            prices: facts.sheet(),
        },
        window_from,
        place: model.vendor().place,
        _server: None,
    })
}

/// Returns the window that a run begins with, and its source in words. `reported` is the answer of
/// the server.
pub(crate) fn resolved_window(
    setting: Window,
    reported: Option<Tokens>,
    facts: &ModelFacts,
) -> (Window, &'static str) {
    let (tokens, from) = match (setting, reported, facts.window) {
        (Window::Unknown, ..) => return (Window::Unknown, "learned from refusals"),
        (Window::Known(tokens), ..) => (tokens, "as given"),
        (_, Some(tokens), _) => (tokens, "from the server"),
        (.., Some(Fact { value, from })) => match from {
            Origin::Configuration => (value, "from the configuration"),
            Origin::BuiltIn => (value, "as published"),
        },
        _ => (FALLBACK_WINDOW, "assumed; set it with --max-context"),
    };
    (Window::Known(tokens), from)
}

/// Uses a server that runs on this machine, or else starts Plimsoll's own. The model `is_default` if
/// the user names none.
async fn local_model(
    agent: &AgentConfig,
    is_quiet: bool,
    is_default: bool,
) -> Result<ModelChoice, CliError> {
    let here = providers::detect(&providers::environment).await;
    if let Some((server, model)) = here.preferred() {
        let (provider, base_url) = (server.provider, server.base_url.as_str());
        say!("{provider} runs at {base_url}; using its model {model}");
        return remote(agent, &format!("{provider}/{model}"), Some(base_url)).await;
    }
    local::start(agent, is_quiet, is_default).await
}
