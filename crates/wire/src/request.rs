//! The settings of a request, and the result of rendering it: the same for every protocol.
//!
//! A setting that a protocol or a model does not accept is left out, and a [`Note`] reports it.

use plimsoll_context::{Breakpoint, CachePlan, CacheRetention, Opaque, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::anthropic::Prefix;

/// The parts of a request besides its messages.
#[derive(Debug, Clone, Default)]
pub struct RenderInput<'a> {
    /// The model's name.
    pub model: &'a str,
    /// The system prompt; it is sent before all messages.
    pub system: Option<&'a str>,
    /// The tools. They are sent sorted by name, so that their order never changes the request.
    pub tools: &'a [ToolSpec],
    /// The provider's own tools as JSON, sent after the others. Tools of other protocols are left out.
    /// Chat Completions has no place for them.
    pub hosted_tools: &'a [Opaque],
    /// Whether the model may call tools. `Auto` is not sent.
    pub tool_choice: ToolChoice,
    /// The output limit in tokens. If it is `None` and the protocol requires one, the profile's default
    /// is sent.
    pub max_output: Option<u64>,
    /// The tokens left in the window behind the request. If `max_output` is `None`, it is an upper
    /// bound of the limit that is sent. Only used by Messages.
    pub room: Option<u64>,
    /// The effort of the model's thinking. `None` leaves it to the model.
    ///
    /// The nearest accepted value is sent. Chat Completions has it in `extra`, because each server
    /// names the key differently.
    pub effort: Option<Effort>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Seed of the sampler. Only Chat Completions has a key for it.
    pub seed: Option<i64>,
    /// Text for this request only. It is sent after the history, in the user's role, so that it does
    /// not invalidate the provider's cache.
    pub context: Option<&'a str>,
    /// The breakpoints, the key and the lifetime of the prompt cache, as far as the protocol supports
    /// them.
    pub cache: Option<&'a CachePlan>,
    /// Additional keys of the body, sent last and as they are given. A known key replaces the value set
    /// here, and `null` removes it.
    pub extra: Option<&'a Map<String, Value>>,
}

impl<'a> RenderInput<'a> {
    /// Returns the breakpoints of the prompt cache.
    pub(crate) fn breakpoints(&self) -> &'a [Breakpoint] {
        self.cache.map_or(&[], |plan| &plan.breakpoints)
    }

    /// Returns how long the prompt cache keeps its entries.
    pub(crate) fn retention(&self) -> CacheRetention {
        self.cache.map(|plan| plan.retention).unwrap_or_default()
    }
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must not call a tool. The definitions are still sent, because the history may need
    /// them.
    None,
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

/// A rendered request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The body as JSON.
    pub body: Vec<u8>,
    /// The differences between the body and the transcript: first those of messages in their order,
    /// then those of settings.
    pub notes: Vec<Note>,
    /// The prefix that the reply's thinking is bound to. Pass the reply to [`Prefix::bind`], which has
    /// no effect unless the protocol signs thinking.
    pub prefix: Prefix,
    /// The values that the `anthropic-beta` header must contain, usually empty.
    pub betas: Vec<&'static str>,
}

/// A difference between a request and the transcript or the settings it was rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// The index of the message, without the system prompt. `None` for a setting.
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

/// A kind of difference between a request and its transcript or settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// An assistant message without content is left out; servers refuse it.
    SilentAssistant,
    /// A note replaces an image or a file.
    Attachment,
    /// A block of another provider is left out.
    ForeignBlock,
    /// A call of the provider's own tool without a result is left out.
    ServerCall,
    /// Reasoning of another provider, or reasoning that is only readable if it was stored, is left out.
    Reasoning,
    /// Reasoning without content after it is left out.
    LoneReasoning,
    /// Thinking that this provider did not sign is left out, in the whole tool loop.
    ForeignThinking,
    /// Thinking of another model is left out, in the whole tool loop.
    OtherModel,
    /// Thinking that is bound to messages that have changed is left out, in the whole tool loop.
    OtherPrefix,
    /// Thinking of an earlier tool loop is left out, because its prefix is unknown.
    UnknownPrefix,
    /// Thinking is left out: the model is not asked to think, and would refuse it in the current tool
    /// loop.
    UnaskedThinking,
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
    /// The effort is left out, because the model does not accept one here.
    Effort,
    /// The model does not think: the current tool loop began without thinking, or the reply has no space
    /// for it.
    ThinkingOff,
    /// The model may think although thinking was disabled, because it cannot be turned off.
    ThinkingOn,
    /// The output limit is sent as the model's own.
    OutputCapped,
}

impl Effort {
    /// Returns the accepted effort that is nearest to this one, the lower of two. Only
    /// [`Effort::None`] becomes [`Effort::None`].
    #[must_use]
    pub fn nearest(self, accepted: &[Self]) -> Option<Self> {
        let far = |effort: Self| (effort as u8).abs_diff(self as u8);
        let accepted = accepted.iter().copied();
        let accepted = accepted.filter(|effort| self == Self::None || *effort != Self::None);
        accepted.min_by_key(|effort| (far(*effort), *effort))
    }

    /// Returns the name for an API with three efforts. `None` becomes the lowest.
    pub(crate) fn name_of_three(self) -> &'static str {
        match self {
            Self::None | Self::Minimal | Self::Low => "low",
            Self::Medium => "medium",
            Self::High | Self::Xhigh | Self::Max => "high",
        }
    }

    /// Returns the budget in tokens for a model with a thinking budget. `Effort::None` has no budget.
    pub(crate) fn budget(self, least: u64, most: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Minimal => Some(least),
            Self::Low => Some(2_048),
            Self::Medium => Some(8_192),
            Self::High | Self::Xhigh | Self::Max => Some(most),
        }
    }

    /// All efforts, the lowest first.
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
