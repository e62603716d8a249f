//! Anthropic Messages, by the [`MessagesProfile`] of a model, which `models.rs` assigns to each. Bedrock and
//! Vertex AI wrap the same body.

mod document;
pub(crate) mod hosted;
mod media;
mod models;
pub(crate) mod pause;
mod read;
mod read_block;
pub(crate) mod render;
pub(crate) mod settings;
mod stream;
mod stream_block;
pub(crate) mod thinking;
mod usage;
mod write;

use plimsoll_context::{Bytes, Tokens, USUAL_MINIMUM};
use serde::{Deserialize, Serialize};

pub use crate::compose::render;
pub use document::FORMAT;
pub use hosted::{hosted_kinds, not_hosted};
pub use read::read;
pub use settings::MIN_BUDGET;
pub use stream::{MessagesStreamState, read_reply};
pub use thinking::Prefix;

pub use crate::open_reply::MAX_REPLY;

/// The origin of blocks that are sent back to Anthropic.
pub const ORIGIN: &str = "anthropic";
/// The key of a breakpoint.
pub const MARK: &str = "cache_control";

/// The maximum size of a body at Anthropic's servers (AM13).
const MAX_BODY: Bytes = Bytes(32 * 1024 * 1024);
/// The default maximum number of tokens in a reply. The API requires a number.
const DEFAULT_OUTPUT: u64 = 8_192;

/// The requirements of a model. A configuration may start from a model's profile and change single
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesProfile {
    /// The name of the model, or `compatible`.
    pub name: String,
    /// Whether the last message may be the assistant's (AM8).
    pub prefill: bool,
    /// How requests enable thinking.
    pub thinking: ThinkingStyle,
    /// Whether requests may set an effort.
    pub effort: EffortSupport,
    /// Whether a request without thinking may contain thinking of the current tool loop (AM9). If not,
    /// thinking is sent back only while the model thinks.
    pub unasked_thinking: bool,
    /// Whether thinking may be turned off.
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
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
    /// The maximum number of tokens in a reply. `None` if unknown.
    pub max_output: Option<u64>,
    /// The number of tokens in a reply if the request sets no limit.
    pub default_output: u64,
    /// The minimum number of tokens that can be cached (AM12).
    pub min_cacheable: Tokens,
    /// The maximum size of a body (AM13).
    pub max_body: Bytes,
}

/// How requests enable thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingStyle {
    /// The model has no thinking.
    None,
    /// With a budget of tokens.
    Budget,
    /// The model decides, guided by an effort. A budget is accepted, too.
    Either,
    /// The model decides, guided by an effort. A budget is refused.
    Adaptive,
    /// Unknown. Rendered requests set a budget of tokens, which most servers understand. The validator
    /// accepts both ways.
    Unknown,
}

/// Whether requests may set an effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortSupport {
    /// It is refused.
    Refused,
    /// It is accepted, but not sent, because a budget is more precise.
    Accepted,
    /// As `output_config.effort`.
    Supported,
}

/// Whether thinking may be turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoThinking {
    /// As `disabled`.
    Supported,
    /// The model always thinks.
    Refused,
    /// The model is unknown. The setting is not sent, because the model might refuse it.
    Unknown,
}

impl MessagesProfile {
    /// Returns the profile of a model by its name, with or without a date, an alias (`-latest`), dots
    /// instead of dashes, or a cloud's prefix. An unknown Claude gets the profile of a new one, and any
    /// other name that of a compatible server.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        models::profile(name)
    }

    /// Returns the profile of a compatible server. Requests are rendered in a form that all servers
    /// accept. The validator also allows features that only some accept.
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
            images: true,
            max_output: None,
            default_output: DEFAULT_OUTPUT,
            min_cacheable: USUAL_MINIMUM,
            max_body: MAX_BODY,
        }
    }
}

impl Default for MessagesProfile {
    fn default() -> Self {
        Self::compatible()
    }
}
