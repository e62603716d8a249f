//! [`Profile`]: what one model, or one family of models, wants of a Messages request. Data only:
//! `render.rs` writes by it, `validate.rs` judges by it. Which model has which is in `models.rs`.

use plimsoll_context::{Bytes, Tokens, USUAL_MINIMUM};
use serde::{Deserialize, Serialize};

use super::models;

/// What Anthropic's servers take in one body (AM13).
const MAX_BODY: Bytes = Bytes(32 * 1024 * 1024);
/// Tokens of a reply where nobody says: the wire must have a number.
const DEFAULT_OUTPUT: u64 = 8_192;

/// What a model wants. A configuration may start from a model's own and change single fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Whether the assistant may have the last word (AM8).
    pub prefill: bool,
    /// How thinking is asked for.
    pub thinking: ThinkingStyle,
    /// Whether the effort may be said.
    pub effort: EffortSupport,
    /// Whether a request without thinking may contain thinking of the current tool loop (AM9). If not,
    /// thinking goes back only while the model thinks.
    pub unasked_thinking: bool,
    /// Whether thinking may be switched off.
    pub no_thinking: NoThinking,
    /// Whether a temperature is accepted: from 0 to 1, and only 1 while the model thinks.
    pub temperature: bool,
    /// Whether a temperature is accepted together with `top_p`.
    pub both_samplers: bool,
    /// Whether system messages are accepted behind the first message. They are sent in the user's role
    /// anyway, which every model accepts.
    pub later_system: bool,
    /// Whether the model can be forced to call a tool, while it does not think.
    pub forced_tools: bool,
    /// Whether a signed thinking block is bound to the system prompt, the tools and all messages before
    /// it, and not only to its own text (AM10).
    pub binds_prefix: bool,
    /// Tokens of a reply, at most; `None` where it is not known.
    pub max_output: Option<u64>,
    /// Tokens of a reply where the request does not say.
    pub default_output: u64,
    /// The least that can be cached (AM12).
    pub min_cacheable: Tokens,
    /// The largest body (AM13).
    pub max_body: Bytes,
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingStyle {
    /// Not at all: the model has none.
    None,
    /// With a budget of tokens.
    Budget,
    /// As the model sees fit; how hard is said as an effort. A budget is accepted too.
    Either,
    /// As the model sees fit; how hard is said as an effort. A budget is refused.
    Adaptive,
    /// Not known: it is asked for with a budget of tokens, which most servers understand, and a
    /// request that asks for it in either way is accepted.
    Unknown,
}

/// Whether the effort may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortSupport {
    /// It is refused.
    Refused,
    /// It is taken, and not said: a budget says more.
    Accepted,
    /// As `output_config.effort`.
    Supported,
}

/// Whether thinking may be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoThinking {
    /// As `disabled`.
    Supported,
    /// The model thinks whatever it is told.
    Refused,
    /// The model is not known: it is not told, since it might refuse that.
    Unknown,
}

impl Profile {
    /// The profile of a model by its name, with or without a date, an alias (`-latest`), dots for
    /// dashes or a cloud's prefix. An unknown Claude is taken for a new one; anything else for a
    /// server that speaks like Anthropic's.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        models::profile(name)
    }

    /// Any server that speaks this wire. Requests are written as all servers accept them; a request
    /// of somebody else may use what only some accept.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            name: "compatible".into(),
            prefill: false,
            thinking: ThinkingStyle::Unknown,
            effort: EffortSupport::Accepted,
            unasked_thinking: true,
            no_thinking: NoThinking::Supported,
            temperature: true,
            both_samplers: true,
            later_system: true,
            forced_tools: true,
            binds_prefix: false,
            max_output: None,
            default_output: DEFAULT_OUTPUT,
            min_cacheable: USUAL_MINIMUM,
            max_body: MAX_BODY,
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::compatible()
    }
}
