//! [`ModelFacts`]: what is known of one model, each figure with who says so. Not where it is
//! looked up; that is a [`super::ModelBook`].

use std::fmt;
use std::time::Duration;

use plimsoll_context::{CacheRetention, LongerCache, Money, PriceSheet, Rates, Tokens};
use plimsoll_wire::Effort;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses as responses;
use plimsoll_wire::{anthropic, bedrock, gemini};
use serde::{Deserialize, Serialize};

/// Who says something of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// We, in this version.
    BuiltIn,
    /// A table of models that was fetched since.
    Published,
    /// The user, in a file of theirs.
    User,
    /// A configuration.
    Configuration,
}

/// A figure, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The figure.
    pub value: T,
    /// Who says so.
    pub from: Origin,
}

/// Prices that go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Of a million tokens.
    pub rates: Rates,
    /// Of a million tokens written to be kept longer, where that has a price of its own.
    pub longer_write: Option<Money>,
}

/// What is known of a model; what is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelFacts {
    /// Its window, or where the input has a smaller limit of its own, that.
    pub window: Option<Fact<Tokens>>,
    /// Tokens of one answer, at most.
    pub max_output: Option<Fact<Tokens>>,
    /// What it costs.
    pub prices: Option<Fact<Prices>>,
    /// What an entry of its prompt cache surely does not outlive unused.
    pub cache_lives: Option<Fact<Duration>>,
    /// How long an entry can be asked to be kept, where that is longer than usual.
    pub longer_lives: Option<Fact<Duration>>,
    /// A shorter prompt is not cached.
    pub min_cacheable: Option<Fact<Tokens>>,
    /// Whether it takes images.
    pub images: Option<Fact<bool>>,
    /// Whether it thinks before it answers.
    pub thinking: Option<Fact<bool>>,
    /// How hard it can be asked to think, the lowest first.
    pub efforts: Option<Fact<Vec<Effort>>>,
    /// Whether it calls tools.
    pub tools: Option<Fact<bool>>,
}

impl ModelFacts {
    /// Returns whether it takes images, as far as it is known.
    pub(crate) fn takes_images(&self) -> Option<bool> {
        self.images.as_ref().map(|fact| fact.value)
    }

    /// What it costs and how its cache behaves; `None` where no price is known.
    #[must_use]
    pub fn sheet(&self) -> Option<PriceSheet> {
        let prices = self.prices?.value;
        Some(PriceSheet {
            rates: prices.rates,
            cache_lives: self.cache_lives.map(|fact| fact.value),
            longer: self.longer(&prices),
            min_cacheable: self.min_cacheable.map(|fact| fact.value),
            retention: CacheRetention::Usual,
        })
    }

    /// The longer life, with its price. Whoever asks nothing for writing asks nothing for keeping it
    /// either; whoever does, and the price is not known, asks twice that of fresh input.
    fn longer(&self, prices: &Prices) -> Option<LongerCache> {
        let rates = prices.rates;
        let usual = rates.cache_write.filter(|write| *write <= rates.input);
        let twice = Money(rates.input.0.saturating_mul(2));
        Some(LongerCache {
            lives: self.longer_lives?.value,
            cache_write: prices.longer_write.or(usual).unwrap_or(twice),
        })
    }

    /// A dialect as the user's own figures want it.
    pub(crate) fn dialect(&self, dialect: Dialect) -> Dialect {
        Dialect {
            images: self.images_or(dialect.images),
            ..dialect
        }
    }

    /// The same of a profile of Responses.
    pub(crate) fn responses(&self, profile: responses::Profile) -> responses::Profile {
        let images = self.images_or(profile.images);
        let thinks = self.thinking.as_ref().and_then(Fact::own);
        let efforts = self.efforts.as_ref().filter(|fact| fact.is_own());
        let profile = match thinks {
            Some(false) => responses::Profile {
                name: profile.name,
                cache_key: profile.cache_key,
                ..responses::Profile::plain()
            },
            // It does, and we did not know.
            Some(true) if profile.efforts.is_empty() => responses::Profile {
                cache_key: profile.cache_key,
                ..responses::Profile::openai()
            },
            _ => profile,
        };
        responses::Profile {
            images,
            efforts: efforts.map_or(profile.efforts, |fact| fact.value.clone()),
            ..profile
        }
    }

    /// The same of a profile of Messages.
    pub(crate) fn messages(&self, profile: anthropic::Profile) -> anthropic::Profile {
        let most = self.max_output.as_ref().and_then(Fact::own);
        let most = most.map(|tokens| tokens.0).or(profile.max_output);
        let least = self.min_cacheable.as_ref().and_then(Fact::own);
        let thinks = self.thinking.as_ref().and_then(Fact::own);
        let (thinking, effort) = match (thinks, profile.thinking) {
            (Some(false), _) => (
                anthropic::ThinkingStyle::None,
                anthropic::EffortSupport::Refused,
            ),
            // It does, and we did not know.
            (Some(true), anthropic::ThinkingStyle::None) => {
                (anthropic::ThinkingStyle::Budget, profile.effort)
            }
            (_, known) => (known, profile.effort),
        };
        anthropic::Profile {
            max_output: most,
            default_output: profile.default_output.min(most.unwrap_or(u64::MAX)),
            min_cacheable: least.unwrap_or(profile.min_cacheable),
            thinking,
            effort,
            ..profile
        }
    }

    /// The same of a profile of `generateContent`.
    pub(crate) fn gemini(&self, profile: gemini::Profile) -> gemini::Profile {
        match self.thinking.as_ref().and_then(Fact::own) {
            Some(true) => profile.that_thinks(),
            _ => profile,
        }
    }

    /// The same of a profile of Converse.
    pub(crate) fn converse(&self, profile: bedrock::Profile) -> bedrock::Profile {
        let maker = match profile.maker {
            bedrock::Maker::Anthropic(claude) => {
                bedrock::Maker::Anthropic(Box::new(self.messages(*claude)))
            }
            maker => maker,
        };
        bedrock::Profile { maker, ..profile }
    }

    /// Returns these facts, and what only others say.
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
    /// Whether the user or their configuration says so.
    #[must_use]
    pub fn is_own(&self) -> bool {
        matches!(self.from, Origin::User | Origin::Configuration)
    }
}

impl<T: Copy> Fact<T> {
    /// The figure, where the user or their configuration says so: that is enforced, while what is
    /// published may be out of date, and the provider has the last word.
    #[must_use]
    pub fn own(&self) -> Option<T> {
        self.is_own().then_some(self.value)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::Published => "published",
            Self::User => "yours",
            Self::Configuration => "configured",
        })
    }
}
