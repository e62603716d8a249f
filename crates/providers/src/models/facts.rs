//! [`ModelFacts`]: the known facts about one model, each with its source. [`super::ModelBook`]
//! looks them up.

use std::fmt;
use std::time::Duration;

use plimsoll_context::{CacheRetention, LongPrompt, LongerCache, Money, PriceSheet, Rates, Tokens};
use plimsoll_wire::Effort;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses as responses;
use plimsoll_wire::{anthropic, bedrock, gemini};
use serde::{Deserialize, Serialize};

/// The source of a fact about a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Built into this version.
    BuiltIn,
    /// The user's configuration.
    Configuration,
}

/// A value and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// The source.
    pub from: Origin,
}

/// Prices that are only valid together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Prices {
    /// The price of a million tokens.
    pub rates: Rates,
    /// The price of a million tokens written with the longer lifetime, if it differs.
    pub longer_write: Option<Money>,
    /// The prices of requests with a long prompt, if they are higher.
    pub long: Option<LongPrompt>,
}

/// The known facts about a model. Unknown ones are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelFacts {
    /// The window, or the limit of the input if that is smaller.
    pub window: Option<Fact<Tokens>>,
    /// The maximum number of tokens in one reply.
    pub max_output: Option<Fact<Tokens>>,
    /// The prices.
    pub prices: Option<Fact<Prices>>,
    /// The time after which an unused entry of the prompt cache may be gone.
    pub cache_lives: Option<Fact<Duration>>,
    /// The longer lifetime that a request can ask for, if there is one.
    pub longer_lives: Option<Fact<Duration>>,
    /// The minimum length of a prompt that is cached.
    pub min_cacheable: Option<Fact<Tokens>>,
    /// Whether it accepts images.
    pub images: Option<Fact<bool>>,
    /// Whether it thinks before it answers.
    pub thinking: Option<Fact<bool>>,
    /// The thinking efforts that it accepts, lowest first.
    pub efforts: Option<Fact<Vec<Effort>>>,
    /// Whether it calls tools.
    pub tools: Option<Fact<bool>>,
}

impl ModelFacts {
    /// Returns whether the model accepts images, or `None` if it is unknown.
    pub(crate) fn takes_images(&self) -> Option<bool> {
        self.images.as_ref().map(|fact| fact.value)
    }

    /// Returns the prices and cache properties, or `None` if no price is known.
    #[must_use]
    pub fn sheet(&self) -> Option<PriceSheet> {
        let prices = self.prices?.value;
        Some(PriceSheet {
            rates: prices.rates,
            cache_lives: self.cache_lives.map(|fact| fact.value),
            longer: self.longer(&prices),
            min_cacheable: self.min_cacheable.map(|fact| fact.value),
            long: prices.long,
            retention: CacheRetention::Usual,
        })
    }

    /// Returns the longer lifetime and its price. If writing to the cache has no surcharge, neither
    /// has the longer lifetime. If there is a surcharge and the price is unknown, it is twice the
    /// input price.
    fn longer(&self, prices: &Prices) -> Option<LongerCache> {
        let rates = prices.rates;
        let usual = rates.cache_write.filter(|write| *write <= rates.input);
        let twice = Money(rates.input.0.saturating_mul(2));
        Some(LongerCache {
            lives: self.longer_lives?.value,
            cache_write: prices.longer_write.or(usual).unwrap_or(twice),
        })
    }

    /// Applies the user's own facts to a dialect.
    pub(crate) fn dialect(&self, dialect: Dialect) -> Dialect {
        Dialect {
            images: self.images_or(dialect.images),
            ..dialect
        }
    }

    /// Applies the user's own facts to a profile of Responses.
    pub(crate) fn responses(
        &self,
        profile: responses::ResponsesProfile,
    ) -> responses::ResponsesProfile {
        let images = self.images_or(profile.images);
        let thinks = self.thinking.as_ref().and_then(Fact::own);
        let efforts = self.efforts.as_ref().filter(|fact| fact.is_own());
        let profile = match thinks {
            Some(false) => responses::ResponsesProfile {
                name: profile.name,
                cache_key: profile.cache_key,
                ..responses::ResponsesProfile::plain()
            },
            // The user states that the model thinks, and the profile does not know its efforts.
            Some(true) if profile.efforts.is_empty() => responses::ResponsesProfile {
                cache_key: profile.cache_key,
                ..responses::ResponsesProfile::openai()
            },
            _ => profile,
        };
        responses::ResponsesProfile {
            images,
            efforts: efforts.map_or(profile.efforts, |fact| fact.value.clone()),
            ..profile
        }
    }

    /// Applies the user's own facts to a profile of Messages.
    pub(crate) fn messages(
        &self,
        profile: anthropic::MessagesProfile,
    ) -> anthropic::MessagesProfile {
        let most = self.max_output.as_ref().and_then(Fact::own);
        let most = most.map(|tokens| tokens.0).or(profile.max_output);
        let least = self.min_cacheable.as_ref().and_then(Fact::own);
        let thinks = self.thinking.as_ref().and_then(Fact::own);
        let (thinking, effort) = match (thinks, profile.thinking) {
            (Some(false), _) => (
                anthropic::ThinkingStyle::None,
                anthropic::EffortSupport::Refused,
            ),
            // The user states that the model thinks, and the profile does not know it.
            (Some(true), anthropic::ThinkingStyle::None) => {
                (anthropic::ThinkingStyle::Budget, profile.effort)
            }
            (_, known) => (known, profile.effort),
        };
        anthropic::MessagesProfile {
            max_output: most,
            default_output: profile.default_output.min(most.unwrap_or(u64::MAX)),
            min_cacheable: least.unwrap_or(profile.min_cacheable),
            thinking,
            effort,
            images: self.images_or(profile.images),
            ..profile
        }
    }

    /// Applies the user's own facts to a profile of `generateContent`.
    pub(crate) fn gemini(&self, profile: gemini::GeminiProfile) -> gemini::GeminiProfile {
        let images = self.images_or(profile.images);
        let profile = match self.thinking.as_ref().and_then(Fact::own) {
            Some(true) => profile.that_thinks(),
            _ => profile,
        };
        gemini::GeminiProfile { images, ..profile }
    }

    /// Applies the user's own facts to a profile of Converse.
    pub(crate) fn converse(&self, profile: bedrock::ConverseProfile) -> bedrock::ConverseProfile {
        let maker = match profile.maker {
            bedrock::Maker::Anthropic(claude) => {
                bedrock::Maker::Anthropic(Box::new(self.messages(*claude)))
            }
            maker => maker,
        };
        bedrock::ConverseProfile {
            maker,
            images: self.images_or(profile.images),
            ..profile
        }
    }

    /// Returns these facts, completed with the others.
    pub(super) fn or(self, others: &Self) -> Self {
        let others = others.clone();
        Self {
            window: self.window.or(others.window),
            max_output: self.max_output.or(others.max_output),
            prices: self.prices.or(others.prices),
            cache_lives: self.cache_lives.or(others.cache_lives),
            longer_lives: self.longer_lives.or(others.longer_lives),
            min_cacheable: self.min_cacheable.or(others.min_cacheable),
            images: self.images.or(others.images),
            thinking: self.thinking.or(others.thinking),
            efforts: self.efforts.or(others.efforts),
            tools: self.tools.or(others.tools),
        }
    }

    /// Whether the model takes images, by the user's own figures before the protocol's.
    fn images_or(&self, usual: bool) -> bool {
        self.images.as_ref().and_then(Fact::own).unwrap_or(usual)
    }
}

impl<T> Fact<T> {
    /// Checks whether the fact comes from the user's configuration.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.from == Origin::Configuration
    }
}

impl<T: Copy> Fact<T> {
    /// Returns the value if it comes from the user's configuration. Such facts are enforced.
    /// Built-in facts may be outdated, so the provider decides.
    #[must_use]
    pub fn own(&self) -> Option<T> {
        self.is_own().then_some(self.value)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::Configuration => "configured",
        })
    }
}
