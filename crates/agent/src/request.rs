//! [`Request`]: one model call in a form that is independent of the provider.

use std::sync::Arc;

use plimsoll_context::{CachePlan, HostedTool, MessageList, Tokens, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

/// One model call.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The tools, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// The provider's own tools, in the order in which they are sent.
    pub hosted_tools: Arc<[HostedTool]>,
    /// The view.
    pub messages: MessageList,
    /// Text that is appended to the history without becoming part of it.
    pub dynamic_context: Option<Arc<str>>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// Maximum number of tokens of the answer; `None` uses the provider's default.
    pub max_output: Option<Tokens>,
    /// The sampling parameters.
    pub sampling: Sampling,
    /// The size of the whole request by our counter.
    pub counted: Tokens,
    /// The use of the provider's prompt cache.
    pub cache: CachePlan,
    /// The expected size in the provider's tokens, and the model's window.
    pub expects: Expects,
}

/// The properties of a request that are known before it is sent, in the provider's tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expects {
    /// The model's window.
    pub window: Option<Tokens>,
    /// The rest of the window after the request. If a provider requires a limit for the answer and none
    /// is configured, this is the most that is sent.
    pub room: Option<Tokens>,
    /// The size of the request. `None` without an earlier report, or if it is not larger than the
    /// request before.
    pub input: Option<Tokens>,
    /// The reported size of the request before this one.
    pub previous: Option<Tokens>,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No. The tool definitions are still sent.
    None,
}

/// The sampling parameters; `None` uses the provider's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<f64>,
    /// Seed, for providers that accept one.
    pub seed: Option<u64>,
    /// The thinking effort.
    pub thinking: Option<ThinkingLevel>,
}

impl Sampling {
    /// The highest temperature: the maximum of OpenAI and of compatible providers. For providers with a
    /// maximum of 1, higher values are lowered to 1.
    pub const MAX_TEMPERATURE: f64 = 2.0;
}

/// How much a model thinks before it answers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ThinkingLevel {
    /// No thinking, if the model can turn it off; otherwise the minimum.
    Off,
    /// The minimum.
    Minimal,
    /// A little.
    Low,
    /// Enough for most tasks.
    Medium,
    /// The maximum.
    High,
}
