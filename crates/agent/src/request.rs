//! [`Request`]: one model call, as the machine asks for it. Not in any provider's form.

use std::sync::Arc;

use plimsoll_context::{CachePlan, HostedTool, MessageList, Tokens, ToolSpec};
use serde::{Deserialize, Serialize};

/// One model call.
#[derive(Debug, Clone)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The tools, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// The provider's own tools, in the order in which they are sent.
    pub hosted_tools: Arc<[HostedTool]>,
    /// The view.
    pub messages: MessageList,
    /// What belongs after the history and is not part of it.
    pub dynamic_context: Option<Arc<str>>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// The JSON schema that the answer follows, for models that have to be held to one; others are
    /// told in words.
    pub format: Option<Arc<serde_json::Value>>,
    /// Tokens of the answer, at most; `None` leaves it to the provider.
    pub max_output: Option<Tokens>,
    /// How the model samples.
    pub sampling: Sampling,
    /// The weight of all of it by our counter.
    pub counted: Tokens,
    /// What is asked of the provider's prompt cache.
    pub cache: CachePlan,
    /// What its report should say; where it says much less, the server has cut the request.
    pub expects: Expects,
}

/// What is known of a request before it is sent, in tokens as the provider counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Expects {
    /// The model's window.
    pub window: Option<Tokens>,
    /// What is left of it behind the request: a provider that has to name a limit of the answer where
    /// none was asked for names no more.
    pub room: Option<Tokens>,
    /// What may be written: what was asked for or, where that was left to the provider, set aside.
    pub output: Option<Tokens>,
    /// The request. `None` where nothing can be said of it, or it is no larger than the one before.
    pub input: Option<Tokens>,
    /// What the request before this one was reported to take.
    pub previous: Option<Tokens>,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// Not at all; the definitions are sent all the same.
    None,
}

/// How the model samples; `None` leaves it to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Temperature.
    pub temperature: Option<f64>,
    /// Seed, where the provider takes one.
    pub seed: Option<u64>,
    /// How hard the model thinks before it answers.
    pub thinking: Option<ThinkingLevel>,
}

impl Sampling {
    /// The highest temperature: what OpenAI and those who copy it take. Where the most is 1, a higher
    /// one is sent as that.
    pub const MAX_TEMPERATURE: f64 = 2.0;
}

/// How hard a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// Not at all, if the model has a switch for that; as little as can be otherwise.
    Off,
    /// As little as can be.
    Minimal,
    /// A little.
    Low,
    /// As most work wants it.
    Medium,
    /// As much as can be.
    High,
}
