//! [`Reply`]: one whole answer of a model, and the [`Delta`]s it arrives in.
//! Not a provider's form of it; `wire` reads those.

use serde::{Deserialize, Serialize};

use crate::message::{CallId, Part};
use crate::usage::Usage;

/// One whole answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Text, thinking and tool calls in the order in which they came.
    pub parts: Vec<Part>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What the call used; `None` where the provider did not say.
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had finished.
    Stop,
    /// It wants tools to run.
    ToolCalls,
    /// It reached the output limit or, where the provider does not tell them apart, the end of the
    /// window.
    Length,
    /// It reached the end of the window, and the provider says so.
    Window,
    /// The provider withheld the rest.
    ContentFilter,
    /// It has only paused, because a tool of the provider's own is still at work: what it said goes
    /// back as it is, and it goes on.
    Paused,
    /// Anything else.
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
        /// Its id.
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
    /// The model has called a tool that the provider runs by itself: nobody is asked, and the host
    /// runs nothing.
    HostedCall {
        /// Its id.
        call: CallId,
        /// The tool's name.
        name: String,
        /// What it is called with, shortened.
        text: String,
    },
    /// What came of such a call; the answer holds the whole of it.
    HostedResult {
        /// The call's id.
        call: CallId,
        /// The tool's name, where the provider says it.
        name: String,
        /// What came of it, shortened.
        text: String,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Something that a person should know of how the call was made: a sentence, no part of the reply.
    /// Observers are told it as a warning.
    Warning {
        /// The sentence.
        text: String,
    },
    /// The server has refused, with this HTTP status. It is for spans, and observers are not told of it.
    Refused {
        /// The status.
        status: u16,
    },
    /// What the call has used so far, as the provider says; the newest holds. It counts where no
    /// reply follows. It is for the run, and observers are not told of it.
    Used {
        /// All of it, not what is new.
        usage: Usage,
    },
}
