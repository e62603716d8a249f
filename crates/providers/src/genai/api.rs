//! [`Api`]: which API is spoken, and what its model wants of a request, as far as its name tells.
//! Not how anything is written; `shape.rs` and `settings.rs` write.

use genai::adapter::AdapterKind;
use plimsoll_wire::bedrock::MixedTurn;
use plimsoll_wire::gemini::Signatures;
use plimsoll_wire::{anthropic, bedrock, gemini};

use crate::error::ProviderError;
use crate::model_ref::ModelRef;
use crate::vendor::Wire;

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
    Ollama,
}

/// What a Gemini wants.
#[derive(Debug, Clone)]
pub(crate) struct Gemini {
    /// Its name, in lower case.
    pub(super) name: String,
    /// Whether tool calls without a signature are refused.
    pub(super) signatures: Signatures,
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
            Wire::Ollama => Self::Ollama,
        }))
    }

    /// What the library calls it.
    pub(super) fn kind(&self) -> AdapterKind {
        match self {
            Self::Gemini(_) => AdapterKind::Gemini,
            Self::Vertex(_) => AdapterKind::Vertex,
            Self::Converse(_) => AdapterKind::BedrockApi,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// Whether further keys of a body can be sent; the library merges them only here.
    pub(crate) fn takes_extra(&self) -> bool {
        matches!(self, Self::Gemini(_) | Self::Vertex(_))
    }

    pub(super) fn gemini(&self) -> Option<&Gemini> {
        match self {
            Self::Gemini(gemini) | Self::Vertex(gemini) => Some(gemini),
            Self::Converse(_) | Self::Ollama => None,
        }
    }

    pub(super) fn converse(&self) -> Option<&Converse> {
        match self {
            Self::Converse(converse) => Some(converse),
            Self::Gemini(_) | Self::Vertex(_) | Self::Ollama => None,
        }
    }
}

impl Gemini {
    fn of(name: &str) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            signatures: gemini::Profile::of_model(name).signatures,
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
