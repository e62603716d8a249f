//! [`ProviderError`]: the reasons why no client can be created. Failed calls are reported as a
//! `Failure`. No text contains a key.

use std::convert::Infallible;

use thiserror::Error;

use crate::vendor;

/// The reasons why no client can be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The model's name does not name a provider.
    #[error("`{given}` names no provider{}; write PROVIDER/NAME, with a provider of: {}", mean(.suggestion), vendor::names())]
    NoProvider {
        /// The given name.
        given: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// The provider is unknown.
    #[error("there is no provider `{given}`{}; known are: {}; any other server with OpenAI's API is `openai-compatible/NAME` with --base-url", mean(.suggestion), vendor::names())]
    UnknownProvider {
        /// The given name.
        given: String,
        /// A similar name.
        suggestion: Option<String>,
    },
    /// The name contains a provider but no model.
    #[error("`{provider}` needs a model: write {provider}/NAME")]
    NoModel {
        /// The provider.
        provider: &'static str,
    },
    /// The key is missing.
    #[error("{provider} needs a key: set {variable}, or choose another model with --model")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment variable to set.
        variable: &'static str,
    },
    /// The key contains characters that cannot be sent.
    #[error("the key for {provider} has characters that no key has; copy it again, in one line")]
    BadKey {
        /// The provider.
        provider: &'static str,
    },
    /// The provider has no usual address, and none is given.
    #[error("`{provider}` has no usual address; give one with --base-url")]
    NoBaseUrl {
        /// The provider.
        provider: &'static str,
    },
    /// The address is invalid.
    #[error(
        "the base URL `{given}` is of no use: {reason}; write it like http://127.0.0.1:8080/v1"
    )]
    BadBaseUrl {
        /// The given address, without a password or query.
        given: String,
        /// The fault.
        reason: String,
    },
    /// A header contains characters that cannot be sent.
    #[error(
        "the header `{name}` cannot be sent: its name or value has characters that headers cannot have"
    )]
    BadHeader {
        /// Its name.
        name: String,
    },
    /// A variable is missing that is a part of the address.
    #[error("{provider} needs {variable}: set it, or give an address with --base-url")]
    NoVariable {
        /// The provider.
        provider: &'static str,
        /// The environment variable to set.
        variable: &'static str,
    },
    /// The provider serves the model through an unsupported protocol.
    #[error("`{provider}/{model}` cannot be called: of {provider} only {served} can")]
    NotServed {
        /// The provider.
        provider: &'static str,
        /// The model.
        model: String,
        /// A pattern of the supported models.
        served: &'static str,
    },
    /// The HTTP client cannot be created.
    #[error("no HTTP client can be made: {reason}")]
    Client {
        /// The reason.
        reason: String,
    },
}

impl From<Infallible> for ProviderError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

fn mean(suggestion: &Option<String>) -> String {
    let mean = |name: &String| format!(" (do you mean `{name}`?)");
    suggestion.as_ref().map(mean).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_cure() {
        let error = ProviderError::UnknownProvider {
            given: "opnai".into(),
            suggestion: Some("openai".into()),
        };
        let text = error.to_string();
        assert!(
            text.contains("do you mean `openai`?") && text.contains("lmstudio"),
            "{text}"
        );
        let error = ProviderError::NoKey {
            provider: "groq",
            variable: "GROQ_API_KEY",
        };
        assert!(error.to_string().contains("set GROQ_API_KEY"));
    }
}
