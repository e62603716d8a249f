//! [`Failure`]: why a model call failed, as far as it changes what the run does next.
//! Not a provider's wording; `wire` classifies that.

use plimsoll_context::{Tokens, Usage};
use serde::{Deserialize, Serialize};

/// Why a model call failed. `message` is the provider's own text, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "failure", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The request does not fit the window.
    #[error("the request does not fit the model's window: {message}")]
    Overflow {
        /// The request's size as the provider counts.
        used: Option<Tokens>,
        /// The window.
        window: Option<Tokens>,
        /// The provider's text.
        message: String,
    },
    /// The server answered, but had cut the request, or ran out of window inside its answer: it is not
    /// an answer to what was asked. The run takes it as an overflow.
    #[error("the server cut the request: {message}")]
    Cut {
        /// The request's size, as the provider counts or by estimate.
        used: Option<Tokens>,
        /// The window.
        window: Option<Tokens>,
        /// What the call used all the same.
        usage: Option<Usage>,
        /// What it shows.
        message: String,
    },
    /// The request alone has more tokens than a minute may carry. The run takes it as an overflow of a
    /// window that holds for this session, once it was not let through after waiting either.
    #[error("the request has more tokens than the provider takes in a minute: {message}")]
    SoftWindow {
        /// The request's size as the provider counts.
        used: Option<Tokens>,
        /// What a minute may carry.
        limit: Tokens,
        /// How long to wait, in milliseconds, where the same request may pass then: most of it may be
        /// read from the cache, which does not count. `None` where waiting does not help.
        #[serde(default)]
        retry_after_ms: Option<u64>,
        /// The provider's text.
        message: String,
    },
    /// The request has too many bytes, whatever its tokens are.
    #[error("the request has more bytes than the provider takes: {message}")]
    BodyTooLarge {
        /// The provider's text.
        message: String,
    },
    /// Only the output that was asked for is too much.
    #[error("the model cannot write that much: {message}")]
    OutputTooLarge {
        /// The most that may be asked for, where the provider said.
        limit: Option<Tokens>,
        /// The provider's text.
        message: String,
    },
    /// The key is missing or refused.
    #[error("the provider refused the key: {message}")]
    Auth {
        /// The provider's text.
        message: String,
    },
    /// Too many requests, also after waiting.
    #[error("the provider's rate limit was reached: {message}")]
    RateLimited {
        /// How long to wait, in milliseconds, where the provider said.
        retry_after_ms: Option<u64>,
        /// The provider's text.
        message: String,
    },
    /// The provider does not accept the request; sending it again would not help.
    #[error("the provider refused the request: {message}")]
    Refused {
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// The provider's text.
        message: String,
    },
    /// Something that may pass: no connection, a cut stream, a server error.
    #[error("the model could not be reached: {message}")]
    Transient {
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// How long to wait, in milliseconds, where the provider said.
        retry_after_ms: Option<u64>,
        /// What happened.
        message: String,
    },
    /// The provider's content filter, or its model's refusal to go on, ended the answer.
    #[error("the provider's content filter ended the answer")]
    ContentFilter,
    /// The answer cannot be understood.
    #[error("the model's answer cannot be understood: {message}")]
    Garbled {
        /// What is wrong with it.
        message: String,
    },
}

impl Failure {
    /// Whether sending the same request again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Transient { .. }
                | Self::Garbled { .. }
                | Self::SoftWindow {
                    retry_after_ms: Some(_),
                    ..
                }
        )
    }

    /// What the call has used, where the failure itself says so.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Cut { usage, .. } => *usage,
            _ => None,
        }
    }

    /// How long the provider asks to wait before the next try, in milliseconds.
    #[must_use]
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_ms, .. }
            | Self::Transient { retry_after_ms, .. }
            | Self::SoftWindow { retry_after_ms, .. } => *retry_after_ms,
            _ => None,
        }
    }
}
