//! [`ModelConfig`]: all the values that a call of a model needs, under phi-core's name. The
//! settings of an agent are separate and start from this value.

use std::sync::Arc;

use plimsoll_context::PriceSheet;
use plimsoll_core::{Agent, AgentBuilder, Provider};
use plimsoll_wire::openai_chat::Dialect;

use crate::client::ModelClient;
use crate::error::ProviderError;
use crate::key::{Variables, environment};
use crate::model_ref::ModelRef;
use crate::models::known_prices;
use crate::vendor::Wire;
use plimsoll_core::Secret;

/// All the values that a call of a model needs. A `None` stands for the vendor's default.
///
/// ```
/// use plimsoll_providers::{ModelConfig, Secret, Wire};
///
/// let config = ModelConfig {
///     base_url: Some("http://127.0.0.1:9000/v1".into()),
///     api_key: Some(Secret::new("sk-test")),
///     protocol: Some(Wire::Messages),
///     ..ModelConfig::new("claude-haiku")
/// };
/// assert_eq!(config.model()?.to_string(), "anthropic/claude-haiku");
/// let agent = config.agent()?.max_turns(10); // and whatever else an agent has
/// # Ok::<(), plimsoll_providers::ProviderError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// The model: `provider/name` or, beside a protocol, its name alone.
    pub id: String,
    /// The key. Default: from the environment.
    pub api_key: Option<Secret>,
    /// The address of its server. Default: the vendor's.
    pub base_url: Option<String>,
    /// The protocol of its server, if the id names no provider.
    pub protocol: Option<Wire>,
    /// The dialect of a Chat Completions server. Default: the vendor's.
    pub compat: Option<Dialect>,
    /// The price. Default: the known price.
    pub cost: Option<PriceSheet>,
}

impl ModelConfig {
    /// Creates the configuration of a model with the vendor's defaults.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            api_key: None,
            base_url: None,
            protocol: None,
            compat: None,
            cost: None,
        }
    }

    /// Returns the model's full name.
    ///
    /// # Errors
    /// If the id names no known provider.
    pub fn model(&self) -> Result<ModelRef, ProviderError> {
        let vendor = match (self.id.contains('/'), self.protocol, &self.base_url) {
            (true, ..) | (_, None, _) => return ModelRef::parse(&self.id),
            (_, Some(Wire::Messages), _) => "anthropic",
            (_, Some(Wire::Responses), _) => "openai-responses",
            (_, Some(Wire::Gemini), _) => "gemini",
            (_, Some(Wire::Vertex), _) => "vertex",
            (_, Some(Wire::Converse), _) => "bedrock",
            (_, Some(Wire::Chat), Some(_)) => "openai-compatible",
            (_, Some(Wire::Chat), None) => "openai",
        };
        ModelRef::parse(&format!("{vendor}/{}", self.id))
    }

    /// Creates the provider that calls the model.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn provider(&self) -> Result<Arc<dyn Provider>, ProviderError> {
        self.provider_with(&environment)
    }

    /// Starts building an agent with this model and its price.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn agent(&self) -> Result<AgentBuilder, ProviderError> {
        let model = self.model()?;
        let agent = Agent::builder_shared(self.provider()?);
        let known = || known_prices(&model);
        Ok(match self.cost.or_else(known) {
            Some(sheet) => agent.prices(sheet),
            None => agent,
        })
    }

    fn provider_with(&self, variables: Variables<'_>) -> Result<Arc<dyn Provider>, ProviderError> {
        let mut builder = ModelClient::builder(self.model()?);
        if let Some(url) = &self.base_url {
            builder = builder.base_url(url);
        }
        if let Some(key) = &self.api_key {
            builder = builder.key(key.clone());
        }
        if let Some(dialect) = &self.compat {
            builder = builder.dialect(dialect.clone());
        }
        Ok(Arc::new(builder.build_with(variables)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_names_the_vendor_where_the_id_does_not() {
        let url = Some("http://127.0.0.1:1/v1".to_owned());
        for (id, protocol, base_url, full) in [
            ("openai/gpt-5", None, None, "openai/gpt-5"),
            ("openai/gpt-5", Some(Wire::Messages), None, "openai/gpt-5"),
            ("gpt-5", Some(Wire::Chat), None, "openai/gpt-5"),
            (
                "qwen",
                Some(Wire::Chat),
                url.clone(),
                "openai-compatible/qwen",
            ),
            (
                "gpt-5",
                Some(Wire::Responses),
                None,
                "openai-responses/gpt-5",
            ),
            ("claude", Some(Wire::Messages), url, "anthropic/claude"),
        ] {
            let config = ModelConfig {
                protocol,
                base_url,
                ..ModelConfig::new(id)
            };
            assert_eq!(config.model().unwrap().to_string(), full);
        }
        assert!(ModelConfig::new("gpt-5").model().is_err(), "of whom?");
    }

    #[test]
    fn its_key_is_never_shown_and_goes_before_the_environment() {
        let config = ModelConfig {
            api_key: Some(Secret::new("sk-very-secret")),
            ..ModelConfig::new("openai/gpt-5")
        };
        assert!(!format!("{config:?}").contains("secret"));
        let nothing = |_: &str| None;
        assert!(config.provider_with(&nothing).is_ok());
        let without = ModelConfig::new("openai/gpt-5");
        assert!(without.provider_with(&nothing).is_err(), "no key");
    }
}
