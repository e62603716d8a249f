//! [`Api`]: which API is spoken, and what its model wants of a request, as far as its name tells.
//! Not how anything is written; `shape.rs` and `settings.rs` write.

use genai::adapter::AdapterKind;
use plimsoll_wire::Effort;
use plimsoll_wire::bedrock::MixedTurn;
use plimsoll_wire::gemini::Signatures;
use plimsoll_wire::{anthropic, bedrock, gemini};

use crate::error::ProviderError;
use crate::model_ref::ModelRef;
use crate::models::{FROM_LOW, Fact, ModelFacts};
use crate::vendor::Wire;

/// What Gemini has words for.
const EFFORTS: &[Effort] = &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
/// Families that think at Ollama, by how their names begin.
const THINKING: [&str; 11] = [
    "deepseek-r1",
    "deepseek-v3.1",
    "deepseek-v3.2",
    "glm-4.6",
    "glm-4.7",
    "gpt-oss",
    "kimi-k2-thinking",
    "magistral",
    "minimax-m2",
    "nemotron-3-nano",
    "qwen3",
];
/// What names of models in these families hold that do not.
const UNTHINKING: [&str; 4] = ["coder", "instruct", "embedding", "reranker"];

/// Which API is spoken.
#[derive(Debug, Clone)]
pub(crate) enum Api {
    /// Gemini's `generateContent`, at Google's own host.
    Gemini(Gemini),
    /// The same at Vertex AI.
    Vertex(Gemini),
    /// Bedrock's Converse.
    Converse(Converse),
    /// Ollama's own API.
    Ollama(Ollama),
}

/// What a Gemini wants.
#[derive(Debug, Clone)]
pub(crate) struct Gemini {
    /// Its name, in lower case.
    pub(super) name: String,
    /// Whether tool calls without a signature are refused.
    pub(super) signatures: Signatures,
    /// Whether the user says that it thinks.
    pub(super) thinks: bool,
}

/// What a model at Ollama wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ollama {
    /// Whether it is known to think; another model is refused where it is asked to.
    pub(super) thinks: bool,
}

/// What a model behind Converse wants.
#[derive(Debug, Clone)]
pub(crate) struct Converse {
    /// Its id, as it stands in the address.
    pub(super) id: String,
    /// Whose model it is.
    pub(super) maker: Maker,
    /// Whether results may share their message with text.
    pub(super) mixed: MixedTurn,
}

/// Whose model stands behind Bedrock.
#[derive(Debug, Clone)]
pub(crate) enum Maker {
    Anthropic(Box<anthropic::Profile>),
    Amazon,
    OpenAi,
    Another,
}

impl Api {
    /// The API of a model whose vendor is not spoken to by any of our own wires.
    ///
    /// # Errors
    /// A model of another maker at Vertex, whose requests have another shape.
    pub(crate) fn of(model: &ModelRef) -> Result<Option<Self>, ProviderError> {
        let name = model.name();
        Ok(Some(match model.vendor().wire {
            Wire::Chat | Wire::Responses | Wire::Messages => return Ok(None),
            Wire::Gemini => Self::Gemini(Gemini::of(name)),
            Wire::Vertex if name.starts_with("gemini") => Self::Vertex(Gemini::of(name)),
            Wire::Vertex => {
                return Err(ProviderError::NotServed {
                    provider: model.vendor().name,
                    model: name.to_owned(),
                    served: "gemini-*",
                });
            }
            Wire::Converse => Self::Converse(Converse::of(name)),
            Wire::Ollama => Self::Ollama(Ollama::of(name)),
        }))
    }

    /// The same where the user says more of the model, or a table does.
    pub(super) fn with(mut self, facts: &ModelFacts) -> Self {
        let thinks = facts.thinking.as_ref();
        match &mut self {
            Self::Gemini(gemini) | Self::Vertex(gemini) => {
                gemini.thinks = thinks.and_then(Fact::own) == Some(true);
            }
            Self::Converse(Converse {
                maker: Maker::Anthropic(profile),
                ..
            }) => **profile = facts.messages((**profile).clone()),
            Self::Converse(_) => {}
            Self::Ollama(ollama) => {
                ollama.thinks = thinks.map_or(ollama.thinks, |fact| fact.value);
            }
        }
        self
    }

    /// Which efforts it has words for.
    pub(super) fn words(&self) -> &'static [Effort] {
        match self {
            Self::Gemini(_) | Self::Vertex(_) => EFFORTS,
            Self::Converse(_) | Self::Ollama(_) => FROM_LOW,
        }
    }

    /// What the library calls it.
    pub(super) fn kind(&self) -> AdapterKind {
        match self {
            Self::Gemini(_) => AdapterKind::Gemini,
            Self::Vertex(_) => AdapterKind::Vertex,
            Self::Converse(_) => AdapterKind::BedrockApi,
            Self::Ollama(_) => AdapterKind::Ollama,
        }
    }

    /// Whether further keys of a body can be sent; the library merges them only here.
    pub(crate) fn takes_extra(&self) -> bool {
        matches!(self, Self::Gemini(_) | Self::Vertex(_))
    }

    pub(super) fn gemini(&self) -> Option<&Gemini> {
        match self {
            Self::Gemini(gemini) | Self::Vertex(gemini) => Some(gemini),
            Self::Converse(_) | Self::Ollama(_) => None,
        }
    }

    pub(super) fn converse(&self) -> Option<&Converse> {
        match self {
            Self::Converse(converse) => Some(converse),
            Self::Gemini(_) | Self::Vertex(_) | Self::Ollama(_) => None,
        }
    }
}

impl Gemini {
    fn of(name: &str) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            signatures: gemini::Profile::of_model(name).signatures,
            thinks: false,
        }
    }
}

impl Ollama {
    /// By the names of Ollama's own library; what somebody else has put there under such a name may
    /// have another template.
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let family = THINKING.iter().any(|family| name.starts_with(family));
        let other = UNTHINKING.iter().any(|word| name.contains(word));
        Self {
            thinks: family && !other && !name.contains('/'),
        }
    }
}

impl Converse {
    fn of(id: &str) -> Self {
        let lower = id.to_ascii_lowercase();
        let maker = if lower.contains("anthropic.") {
            Maker::Anthropic(Box::new(anthropic::Profile::of_model(&lower)))
        } else if lower.contains("amazon.") {
            Maker::Amazon
        } else if lower.contains("openai.") {
            Maker::OpenAi
        } else {
            Maker::Another
        };
        Self {
            id: id.to_owned(),
            maker,
            mixed: bedrock::Profile::of_model(id).mixed_turn,
        }
    }
}
