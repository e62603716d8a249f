//! [`Failure`]: the reasons for a failed model call that the run distinguishes.
//!
//! The `wire` crate classifies the providers' error texts.

use plimsoll_context::Tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The reason why a model call failed. `message` is the provider's own text, unshortened.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, IntoStaticStr, JsonSchema,
)]
#[serde(tag = "failure", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    /// The server cut the request, or reached the end of the window within its answer. The answer is
    /// not usable, and the run treats it as an overflow.
    #[error("the server cut the request: {message}")]
    Cut {
        /// The request's size, as the provider counts or by estimate.
        used: Option<Tokens>,
        /// The window.
        window: Option<Tokens>,
        /// The evidence.
        message: String,
    },
    /// The request alone exceeds the provider's limit per minute. If waiting does not help either, the
    /// run treats it as an overflow of a window that is valid for this session.
    #[error(
        "the request has more tokens than the provider's rate limit takes in a minute: {message}"
    )]
    SoftWindow {
        /// The request's size as the provider counts.
        used: Option<Tokens>,
        /// The provider's limit per minute.
        limit: Tokens,
        /// Milliseconds to wait if the same request may pass later, because most of it may then be read
        /// from the cache, which does not count. `None` if waiting does not help.
        retry_after_ms: Option<u64>,
        /// The provider's text.
        message: String,
    },
    /// The request has too many bytes, regardless of its tokens.
    #[error("the request has more bytes than the provider takes: {message}")]
    BodyTooLarge {
        /// The provider's text.
        message: String,
    },
    /// The requested output length is too large.
    #[error("the model cannot write that much: {message}")]
    OutputTooLarge {
        /// The largest allowed output, if the provider reported it.
        limit: Option<Tokens>,
        /// The provider's text.
        message: String,
    },
    /// The API key is missing or was refused.
    #[error("the provider refused the key: {message}")]
    Auth {
        /// The provider's text.
        message: String,
    },
    /// Too many requests, even after waiting.
    #[error("the provider's rate limit was reached: {message}")]
    RateLimited {
        /// Milliseconds to wait, if the provider reported it.
        retry_after_ms: Option<u64>,
        /// The provider's text.
        message: String,
    },
    /// The provider rejects the request; sending it again would not help.
    #[error("the provider refused the request: {message}")]
    Refused {
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// The provider's text.
        message: String,
    },
    /// A temporary problem: no connection, a broken stream, a server error.
    #[error("the model could not be reached: {message}")]
    Transient {
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// Milliseconds to wait, if the provider reported it.
        retry_after_ms: Option<u64>,
        /// A description of the problem.
        message: String,
    },
    /// The provider's content filter, or a refusal of the model, ended the answer.
    #[error("the provider's content filter ended the answer")]
    ContentFilter,
    /// The answer is malformed.
    #[error("the model's answer cannot be understood: {message}")]
    Garbled {
        /// A description of the problem.
        message: String,
    },
}

impl Failure {
    /// Returns the kind of failure as one word, such as `rate_limited`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.into()
    }

    /// Returns `true` if sending the same request again may help.
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

    /// Returns how many milliseconds the provider asks to wait before the next attempt.
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
