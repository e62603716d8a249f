//! [`ModelRef`]: the name of a model in the form `provider/name`. Whether the model exists is not
//! checked.

use std::fmt;
use std::str::FromStr;

use crate::error::ProviderError;
use crate::models;
use crate::vendor::Vendor;

/// A model of a provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelRef {
    vendor: &'static Vendor,
    name: String,
}

impl ModelRef {
    /// Parses `provider/name`. The name is everything after the first slash. Providers with a
    /// single model (`llama.cpp`, `local`) need no name.
    ///
    /// # Errors
    /// [`ProviderError::NoProvider`], [`ProviderError::UnknownProvider`] or
    /// [`ProviderError::NoModel`].
    pub fn parse(text: &str) -> Result<Self, ProviderError> {
        let text = text.trim();
        let (provider, name) = match text.split_once('/') {
            Some((provider, name)) => (provider, name.trim()),
            None => (text, ""),
        };
        let vendor = match Vendor::named(provider) {
            Ok(vendor) => vendor,
            // Without a slash, the text is more likely a model than a provider.
            Err(ProviderError::UnknownProvider { suggestion, .. }) if !text.contains('/') => {
                let model = models::provider_of(text).map(|owner| format!("{owner}/{text}"));
                let vendor = suggestion.map(|vendor| match Self::parse(&vendor) {
                    Ok(_) => vendor,
                    Err(_) => format!("{vendor}/NAME"),
                });
                return Err(ProviderError::NoProvider {
                    given: text.to_owned(),
                    suggestion: model.or(vendor),
                });
            }
            Err(error) => return Err(error),
        };
        Self::of(vendor, name)
    }

    /// Creates the name of a model of a vendor.
    ///
    /// # Errors
    /// [`ProviderError::NoModel`] if the name is empty and the vendor has many models.
    pub fn of(vendor: &'static Vendor, name: &str) -> Result<Self, ProviderError> {
        let name = match (name, vendor.only_model) {
            ("", Some(only)) => only,
            ("", None) => {
                return Err(ProviderError::NoModel {
                    provider: vendor.name,
                });
            }
            (name, _) => name,
        };
        Ok(Self {
            vendor,
            name: name.to_owned(),
        })
    }

    /// Returns the vendor.
    #[must_use]
    pub fn vendor(&self) -> &'static Vendor {
        self.vendor
    }

    /// Returns the name of the model at its vendor.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for ModelRef {
    type Err = ProviderError;

    fn from_str(text: &str) -> Result<Self, ProviderError> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for ModelRef {
    type Error = ProviderError;

    fn try_from(text: &str) -> Result<Self, ProviderError> {
        Self::parse(text)
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor.name, self.name)
    }
}

impl fmt::Debug for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRef({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        for (text, read) in [
            ("openai/gpt-4o", "openai/gpt-4o"),
            (
                " OpenRouter/qwen/qwen3-coder:free ",
                "openrouter/qwen/qwen3-coder:free",
            ),
            ("moonshot/kimi-k3", "kimi/kimi-k3"),
            ("ollama/ qwen3:8b", "ollama/qwen3:8b"),
            ("llama.cpp", "llama.cpp/default"),
            ("llamacpp/", "llama.cpp/default"),
            ("local", "local/default"),
            (
                "openai-compatible/./model.gguf",
                "openai-compatible/./model.gguf",
            ),
        ] {
            let model: ModelRef = text.parse().unwrap();
            assert_eq!(model.to_string(), read);
            assert_eq!(ModelRef::parse(read), Ok(model));
        }
    }

    #[test]
    fn what_is_no_name_gets_a_cure() {
        for (text, cure) in [
            ("gpt-4o", "do you mean `openai/gpt-4o`?"),
            ("opnai", "do you mean `openai/NAME`?); write PROVIDER/NAME"),
            ("local2", "do you mean `local`?"),
            ("", "write PROVIDER/NAME"),
            ("/gpt-4o", "there is no provider ``; known are: openai, "),
            ("opnai/gpt-4o", "do you mean `openai`?"),
            ("azure/gpt-4o", "`openai-compatible/NAME` with --base-url"),
            ("openai", "write openai/NAME"),
            ("openai/ ", "write openai/NAME"),
        ] {
            let error = ModelRef::parse(text).unwrap_err().to_string();
            assert!(error.contains(cure), "{text}: {error}");
        }
    }
}
