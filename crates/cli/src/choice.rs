//! Which model a run uses, and how it is reached. Asked for by name, found on this machine, or our
//! own local one.

use std::sync::Arc;
use std::time::Duration;

use plimsoll::providers::{
    self, ModelRef, OpenAiChat, Place, ServerState, Timeouts, WindowSource, resolve_window,
};
use plimsoll::wire::openai_chat::{Dialect, ToolStyle};
use plimsoll::{Money, PriceSheet, Provider, Rates, Tokens, Usage, Window};

use crate::args::RunArgs;
use crate::exit::Stop;
use crate::local;
use crate::prices;

/// Servers on this machine that go before our own local model.
const PREFERRED: [&str; 2] = ["llama.cpp", "ollama"];

/// A model that can be called.
pub(crate) struct Choice {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) window: Window,
    /// Where the window comes from, in words.
    pub(crate) window_from: &'static str,
    /// What it costs; `None` where it is not known.
    pub(crate) prices: Option<PriceSheet>,
    /// Whether it answers one call at a time, as a server on this machine does: a summary beside
    /// the run would then hold it up, and lose the server's cache twice.
    pub(crate) one_at_a_time: bool,
    /// Tokens of one answer where the user does not say.
    pub(crate) max_tokens: Option<u64>,
    /// The same tool calls in a row, at most, where the user does not say.
    pub(crate) max_identical_tool_calls: Option<u64>,
    /// Our own server, which stops when this is dropped.
    pub(crate) _server: Option<local::Server>,
}

/// What the tokens of a run cost, and those of its summaries; each `None` where it is not known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunRates {
    pub(crate) run: Option<Rates>,
    pub(crate) summaries: Option<Rates>,
}

impl RunRates {
    /// What `all` cost, of which summaries took a part; `None` where a price is missing.
    pub(crate) fn cost(&self, all: Usage, summaries: Usage) -> Option<Money> {
        let run = all.without(summaries).estimated_cost(self.run.as_ref()?)?;
        if summaries == Usage::default() {
            return Some(run);
        }
        Some(run + summaries.estimated_cost(self.summaries.as_ref()?)?)
    }
}

/// The model that writes summaries.
pub(crate) struct Summarizer {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) prices: Option<PriceSheet>,
}

impl Choice {
    /// What tokens cost, where that is known.
    pub(crate) fn rates(&self, summarizer: Option<&Summarizer>) -> RunRates {
        let rates = |sheet: Option<PriceSheet>| sheet.map(|sheet| sheet.rates);
        RunRates {
            run: rates(self.prices),
            summaries: rates(summarizer.map_or(self.prices, |summarizer| summarizer.prices)),
        }
    }
}

/// What `--max-context` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaxContext {
    Ask,
    Unknown,
    Tokens(Tokens),
}

/// Finds or starts the model.
pub(crate) async fn choose(args: &RunArgs) -> Result<Choice, Stop> {
    let max_context = max_context(args.max_context.as_deref())?;
    match (args.model.as_deref(), &args.base_url) {
        (Some("local"), None) => local_model(args, max_context).await,
        (Some("local"), Some(_)) => Err(Stop::usage(
            "--model local has no --base-url; name the model that the server has: --model openai-compatible/NAME",
        )),
        (Some(name), None) if name.starts_with("local/") => local::start(args, max_context).await,
        (Some(name), _) => remote(args, name, max_context).await,
        (None, Some(_)) => remote(args, "openai-compatible/default", max_context).await,
        (None, None) => {
            let keys = providers::detect_keys(&providers::environment);
            let set = keys
                .iter()
                .find(|key| key.state == providers::KeyState::Set);
            if let Some(key) = set {
                return Err(Stop::usage(format!(
                    "{} is set, but no model is named: give --model {}/NAME, or --model local, which costs nothing",
                    key.variable, key.provider
                )));
            }
            local_model(args, max_context).await
        }
    }
}

/// Reads `--max-context`.
pub(crate) fn max_context(text: Option<&str>) -> Result<MaxContext, Stop> {
    match text {
        None => Ok(MaxContext::Ask),
        Some("unknown") => Ok(MaxContext::Unknown),
        Some(text) => match text.replace('_', "").parse::<u64>() {
            Ok(tokens) if tokens > 0 => Ok(MaxContext::Tokens(Tokens(tokens))),
            _ => Err(Stop::usage(format!(
                "--max-context is `{text}`; give a number of tokens such as 32000, or `unknown`"
            ))),
        },
    }
}

async fn remote(args: &RunArgs, name: &str, max_context: MaxContext) -> Result<Choice, Stop> {
    let model = ModelRef::parse(name).map_err(Stop::usage)?;
    provider(args, model, args.base_url.as_deref(), max_context).await
}

async fn provider(
    args: &RunArgs,
    model: ModelRef,
    base_url: Option<&str>,
    max_context: MaxContext,
) -> Result<Choice, Stop> {
    let mut builder = OpenAiChat::builder(model.clone()).timeouts(timeouts(args));
    if let Some(base_url) = base_url {
        builder = builder.base_url(base_url);
    }
    if let Some(style) = tool_style(args)? {
        let dialect = model.vendor().dialect();
        builder = builder.dialect(Dialect {
            tools: style,
            ..dialect
        });
    }
    let prices = prices::sheet(&model)?;
    let one_at_a_time = matches!(model.vendor().place, Place::ThisMachine | Place::Ours);
    let provider = builder.build().map_err(Stop::usage)?;
    let (window, window_from) = window(&provider, &model, max_context).await;
    Ok(Choice {
        provider: Arc::new(provider),
        window,
        window_from,
        prices,
        one_at_a_time,
        max_tokens: None,
        max_identical_tool_calls: None,
        _server: None,
    })
}

async fn window(
    provider: &OpenAiChat,
    model: &ModelRef,
    max_context: MaxContext,
) -> (Window, &'static str) {
    let (explicit, reported) = match max_context {
        MaxContext::Unknown => return (Window::Unknown, "learned from refusals"),
        MaxContext::Tokens(tokens) => (Some(tokens), None),
        MaxContext::Ask => (None, provider.window().await),
    };
    let found = resolve_window(explicit, reported, model);
    let from = match found.source {
        WindowSource::Explicit => "as given",
        WindowSource::Reported => "as the server says",
        WindowSource::Known => "as published",
        WindowSource::Fallback => "assumed; say better with --max-context",
    };
    let window = match found.source {
        WindowSource::Explicit => Window::Known(found.tokens),
        // A refusal knows better.
        _ => Window::Assumed(found.tokens),
    };
    (window, from)
}

/// A server that runs on this machine already, else our own.
async fn local_model(args: &RunArgs, max_context: MaxContext) -> Result<Choice, Stop> {
    let here = providers::detect(&providers::environment).await.servers;
    for wanted in PREFERRED {
        let found = here.iter().find_map(|server| match &server.state {
            ServerState::Up { models } if server.provider == wanted => {
                Some((server.base_url.clone(), models.first()?.name.clone()))
            }
            _ => None,
        });
        if let Some((base_url, name)) = found {
            let model = ModelRef::parse(&format!("{wanted}/{name}")).map_err(Stop::model)?;
            crate::say(&format!(
                "{wanted} runs at {base_url}; using its model {name}"
            ));
            return provider(args, model, Some(&base_url), max_context).await;
        }
    }
    local::start(args, max_context).await
}

/// The model that writes summaries, where the user names one.
pub(crate) fn summarizer(args: &RunArgs) -> Result<Option<Summarizer>, Stop> {
    let Some(name) = args.summarizer.as_deref() else {
        return Ok(None);
    };
    let model = ModelRef::parse(name).map_err(Stop::usage)?;
    let prices = prices::sheet(&model)?;
    let builder = OpenAiChat::builder(model).timeouts(timeouts(args));
    Ok(Some(Summarizer {
        provider: Arc::new(builder.build().map_err(Stop::usage)?),
        prices,
    }))
}

/// What `--tool-style` says.
pub(crate) fn tool_style(args: &RunArgs) -> Result<Option<ToolStyle>, Stop> {
    match args.tool_style.as_deref() {
        None => Ok(None),
        Some("native") => Ok(Some(ToolStyle::Native)),
        Some("json") => Ok(Some(ToolStyle::JsonSchema)),
        Some(other) => Err(Stop::usage(format!(
            "there is no tool style `{other}`; there is: native, json"
        ))),
    }
}

/// The named timeouts, as far as the user says something else.
pub(crate) fn timeouts(args: &RunArgs) -> Timeouts {
    let mut timeouts = Timeouts::default();
    if let Some(seconds) = args.connect_timeout {
        timeouts.connect = Duration::from_secs(seconds);
    }
    if let Some(seconds) = args.idle_timeout {
        timeouts.idle = Duration::from_secs(seconds);
    }
    timeouts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_context_is_a_number_or_unknown() {
        assert_eq!(max_context(None).unwrap(), MaxContext::Ask);
        assert_eq!(max_context(Some("unknown")).unwrap(), MaxContext::Unknown);
        assert_eq!(
            max_context(Some("32_000")).unwrap(),
            MaxContext::Tokens(Tokens(32_000))
        );
        for bad in ["", "0", "-5", "many", "3e4"] {
            assert!(
                max_context(Some(bad))
                    .unwrap_err()
                    .text
                    .contains("--max-context"),
                "{bad}"
            );
        }
    }
}
