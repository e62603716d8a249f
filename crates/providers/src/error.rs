//! [`ProviderError`]: why no provider can be made of what was asked for. Not why a call failed;
//! that is a `Failure`. No text here holds a key.

use std::convert::Infallible;

use thiserror::Error;

use crate::vendor;

/// Why no provider can be made of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// A model's name without its provider.
    #[error("`{given}` names no provider{}; write PROVIDER/NAME, with a provider of: {}", mean(.suggestion), vendor::names())]
    NoProvider {
        /// What was given.
        given: String,
        /// A name that is probably meant.
        suggestion: Option<String>,
    },
    /// A provider that is not known.
    #[error("there is no provider `{given}`{}; known are: {}; any other server with OpenAI's API is `openai-compatible/NAME` with --base-url", mean(.suggestion), vendor::names())]
    UnknownProvider {
        /// What was given.
        given: String,
        /// A name that is probably meant.
        suggestion: Option<String>,
    },
    /// A provider without a model.
    #[error("`{provider}` needs a model: write {provider}/NAME")]
    NoModel {
        /// The provider.
        provider: &'static str,
    },
    /// There is no key.
    #[error("{provider} needs a key: set {variable}, or choose another model with --model")]
    NoKey {
        /// The provider.
        provider: &'static str,
        /// The environment's variable.
        variable: &'static str,
    },
    /// The key cannot be sent.
    #[error("the key for {provider} has characters that no key has; copy it again, in one line")]
    BadKey {
        /// The provider.
        provider: &'static str,
    },
    /// There is no address.
    #[error("`{provider}` has no usual address; give one with --base-url")]
    NoBaseUrl {
        /// The provider.
        provider: &'static str,
    },
    /// The address is not one.
    #[error(
        "the base URL `{given}` is of no use: {reason}; write it like http://127.0.0.1:8080/v1"
    )]
    BadBaseUrl {
        /// What was given, without a password or query.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header that cannot be sent.
    #[error(
        "the header `{name}` cannot be sent: its name or value has characters that headers cannot have"
    )]
    BadHeader {
        /// Its name.
        name: String,
    },
    /// What the environment has to fill in of an address.
    #[error("{provider} needs {variable}: set it, or give an address with --base-url")]
    NoVariable {
        /// The provider.
        provider: &'static str,
        /// The environment's variable.
        variable: &'static str,
    },
    /// The provider serves the model in a way that is not spoken.
    #[error("`{provider}/{model}` cannot be called: of {provider} only {served} can")]
    NotServed {
        /// The provider.
        provider: &'static str,
        /// The model.
        model: String,
        /// What can be called.
        served: &'static str,
    },
    /// The HTTP client cannot be made.
    #[error("no HTTP client can be made: {reason}")]
    Client {
        /// Why.
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
