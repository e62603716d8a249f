//! [`Reply`]: a complete answer of a model, and [`Delta`]: a piece of it while it arrives. `wire`
//! reads the providers' formats.

use serde::{Deserialize, Serialize};

use crate::message::{CallId, Part};
use crate::usage::Usage;

/// A complete answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Text, thinking and tool calls in the order in which they arrived.
    pub parts: Vec<Part>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// The usage of the call; `None` if the provider did not report it.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    Stop,
    /// The model wants tools to run.
    ToolCalls,
    /// The answer reached the output limit. If the provider does not distinguish the two, the end
    /// of the window.
    Length,
    /// The answer reached the end of the window.
    Window,
    /// The provider withheld the rest of the answer.
    ContentFilter,
    /// The answer is paused because a hosted tool is still running. It is sent back unchanged, and
    /// the model continues.
    Paused,
    /// Any other reason.
    Other,
}

/// A piece of a reply while it arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// The new piece.
        text: String,
    },
    /// More thinking.
    Thinking {
        /// The new piece.
        text: String,
    },
    /// A tool call begins.
    CallStarted {
        /// The id of the call.
        call: CallId,
        /// The tool's name.
        name: String,
    },
    /// More of a tool call's arguments.
    CallArguments {
        /// The call's id.
        call: CallId,
        /// The new piece of JSON text.
        text: String,
    },
    /// The model has called a hosted tool, which the provider runs without approval. The host runs
    /// nothing.
    HostedCall {
        /// The id of the call.
        call: CallId,
        /// The tool's name.
        name: String,
        /// The arguments, shortened.
        text: String,
    },
    /// The result of a hosted tool call. The reply contains the full result.
    HostedResult {
        /// The id of the call.
        call: CallId,
        /// The tool's name, if the provider reports it.
        name: String,
        /// The result, shortened.
        text: String,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A message for the user about how the call was made. It is no part of the reply. Observers
    /// receive it as a warning.
    Warning {
        /// The text of the message.
        text: String,
    },
    /// The server refused the request with this HTTP status. Used for spans only; observers do not
    /// receive it.
    Refused {
        /// The HTTP status.
        status: u16,
    },
    /// The usage of the call so far, as reported by the provider; a later report replaces an
    /// earlier one. It counts if no reply follows. Used by the run only; observers do not receive
    /// it.
    Used {
        /// The total usage, not the difference to the last report.
        usage: Usage,
    },
}
