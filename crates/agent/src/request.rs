//! [`Request`]: one model call, as the machine asks for it. Not in any provider's form.

use std::sync::Arc;

use plimsoll_context::{Message, Tokens, ToolSpec};
use serde::{Deserialize, Serialize};

/// One model call.
#[derive(Debug, Clone)]
pub struct Request {
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The tools, in a fixed order.
    pub tools: Arc<[ToolSpec]>,
    /// The view.
    pub messages: Vec<Arc<Message>>,
    /// What belongs after the history and is not part of it.
    pub dynamic_context: Option<Arc<str>>,
    /// Whether the model may call tools.
    pub tool_choice: ToolChoice,
    /// Tokens of the answer, at most; `None` leaves it to the provider.
    pub max_output: Option<Tokens>,
    /// How the model samples.
    pub sampling: Sampling,
    /// The weight of all of it by our counter.
    pub counted: Tokens,
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
}
