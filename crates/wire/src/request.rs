//! A request apart from its messages, and the result of rendering it: the same for every protocol.
//!
//! A setting that a protocol or a model does not take is left out, and a [`Note`] says so.

use plimsoll_context::{CachePlan, Opaque, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::anthropic::Prefix;
use crate::chunks::BodyChunks;

/// Everything of a request except its messages.
#[derive(Debug, Clone, Default)]
pub struct RenderInput<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The system prompt; it is sent before all messages.
    pub system: Option<&'a str>,
    /// The tools; they are sent sorted by name, so that their order is never a change.
    pub tools: &'a [ToolSpec],
    /// The provider's own tools, as they are, behind the others; blocks of other protocols are left
    /// out. Chat Completions has no place for them.
    pub hosted_tools: &'a [Opaque],
    /// Whether and which tools the model may call; `Auto` is not sent.
    pub tool_choice: ToolChoice,
    /// Output limit in tokens. If it is `None` and the protocol requires one, the profile's is sent.
    pub max_output: Option<u64>,
    /// Tokens left in the window behind the request: an upper bound of the limit that is sent if
    /// `max_output` is `None`. Read by Messages.
    pub room: Option<u64>,
    /// How hard the model thinks; `None` leaves it to the model. Sent as the nearest that the profile
    /// accepts. Chat Completions has it in `extra`, because each server names the key differently.
    pub effort: Option<Effort>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Seed of the sampler. Only Chat Completions has a key for it.
    pub seed: Option<i64>,
    /// Texts that end the reply. Responses has no key for them.
    pub stop: &'a [String],
    /// Whether the reply is streamed.
    pub delivery: Delivery,
    /// Text for this request only; it is sent after the history, in the user's role, so that it never
    /// breaks what the provider has cached.
    pub context: Option<&'a str>,
    /// The JSON schema that the answer must follow. Messages has no key for it; Chat Completions sends it
    /// if every turn is held to a schema
    /// ([`ToolStyle::JsonSchema`](crate::openai_chat::ToolStyle::JsonSchema)).
    pub format: Option<&'a Value>,
    /// The breakpoints, the key and the lifetime of the prompt cache, as far as the protocol has words
    /// for them.
    pub cache: Option<&'a CachePlan>,
    /// Further keys of the body, sent last; one that is known replaces the value set here.
    pub extra: Option<&'a Map<String, Value>>,
}

/// Whether and which tools the model may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// None; the definitions are still sent, because the history may need them.
    None,
    /// Any tool, but one.
    Required,
    /// This tool.
    Tool(String),
}

/// How the reply is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// In chunks while it is written.
    #[default]
    Stream,
    /// In one piece.
    Whole,
}

/// How hard a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    None,
    /// Hardly.
    Minimal,
    /// A little.
    Low,
    /// As most work needs it.
    Medium,
    /// Much.
    High,
    /// More.
    Xhigh,
    /// As much as possible.
    Max,
}

/// A rendered request. Its body is in one piece, or in [`BodyChunks`] if it is rendered
/// as the next one of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered<B = Vec<u8>> {
    /// The body as JSON.
    pub body: B,
    /// The differences between the body and the transcript: first those of messages in their order,
    /// then those of settings.
    pub notes: Vec<Note>,
    /// For each message or item of the body, the indices of the messages of the transcript that it
    /// contains, without the system prompt; empty for one that only stands between others. Empty as a
    /// whole if turns are JSON.
    pub from: Vec<Vec<usize>>,
    /// The prefix that the reply's thinking is bound to: pass the reply to [`Prefix::bind`]. It changes
    /// nothing unless the protocol signs thinking.
    pub prefix: Prefix,
    /// The values that the `anthropic-beta` header must contain; usually none.
    pub betas: Vec<&'static str>,
}

impl Rendered<BodyChunks> {
    /// Returns the request with its body in one piece.
    #[must_use]
    pub fn into_whole(self) -> Rendered {
        self.map(BodyChunks::into_vec)
    }
}

impl<B> Rendered<B> {
    /// Returns the request with its body converted.
    pub(crate) fn map<C>(self, convert: impl FnOnce(B) -> C) -> Rendered<C> {
        Rendered {
            body: convert(self.body),
            notes: self.notes,
            from: self.from,
            prefix: self.prefix,
            betas: self.betas,
        }
    }
}

/// A difference between a request and the transcript or the settings it was rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The index of the message, without the system prompt; `None` for a setting.
    pub message: Option<usize>,
    /// The kind of difference.
    pub what: LeftOut,
}

impl Note {
    /// Creates a note about a setting.
    #[must_use]
    pub fn setting(what: LeftOut) -> Self {
        Self {
            message: None,
            what,
        }
    }
}

/// What a request contains in another form than the transcript or the settings, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// An assistant message without content is left out; servers refuse it.
    SilentAssistant,
    /// A note replaces an image or a file.
    Attachment,
    /// A block of another provider is left out.
    ForeignBlock,
    /// Citations whose text was changed are left out.
    Citations,
    /// A call of the provider's own tool without a result is left out.
    ServerCall,
    /// Reasoning of another provider, or reasoning that is only readable if it was stored, is left out.
    Reasoning,
    /// Reasoning that nothing follows is left out.
    LoneReasoning,
    /// Thinking that this provider did not sign is left out, in the whole tool loop.
    ForeignThinking,
    /// Thinking of another model is left out, in the whole tool loop.
    OtherModel,
    /// Thinking that is bound to messages that have changed is left out, in the whole tool loop.
    OtherPrefix,
    /// Thinking of an earlier tool loop is left out, because it is not known what it is bound to.
    UnknownPrefix,
    /// Thinking is left out: the model is not asked to think, and would refuse it in the current tool
    /// loop.
    UnaskedThinking,
    /// Thinking at the end of a message is left out; the API refuses it.
    LastThinking,
    /// Arguments that are not a JSON object are sent inside one.
    BrokenArguments,
    /// A tool's name is sent with `_` for characters that the API refuses.
    Name,
    /// A tool is left out because another has the same name in the request: the first one counts.
    RepeatedTool,
    /// The temperature is left out: the model refuses it, or thinks.
    Temperature,
    /// The temperature is sent as 1, the API's maximum.
    TemperatureCapped,
    /// The effort is left out, because the model takes none here.
    Effort,
    /// The model does not think: the current tool loop began without thinking, a tool is forced, or the
    /// reply has no room for it.
    ThinkingOff,
    /// The model may think although it should not: its thinking cannot be switched off.
    ThinkingOn,
    /// No tool is forced, because the model cannot be forced.
    ToolForced,
    /// A stop sequence of white space is not sent.
    StopBlank,
    /// The output limit is sent as the model's own.
    OutputCapped,
}

impl Effort {
    /// Returns the name of an API that knows three efforts; the lowest for `None`.
    pub(crate) fn name_of_three(self) -> &'static str {
        match self {
            Self::None | Self::Minimal | Self::Low => "low",
            Self::Medium => "medium",
            Self::High | Self::Xhigh | Self::Max => "high",
        }
    }

    /// Returns the budget for a model that thinks by a budget of tokens. `None` has none.
    pub(crate) fn budget(self, least: u64, most: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Minimal => Some(least),
            Self::Low => Some(2_048),
            Self::Medium => Some(8_192),
            Self::High | Self::Xhigh | Self::Max => Some(most),
        }
    }

    /// Every effort, the lowest first.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// Returns the name that the APIs of OpenAI use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}
