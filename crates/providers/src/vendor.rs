//! [`Vendor`]: who runs models behind an API, as data: address, key, dialect. Not which models
//! there are; a server knows that, and `windows.rs` knows a few windows.

use plimsoll_wire::openai_chat::Dialect;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::error::ProviderError;
use crate::key::Key;

/// Names further away than this from what was given are no suggestion.
const MAX_DISTANCE: usize = 3;

/// One who runs models behind an API.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Its name, the part of a model's name before the first slash.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Where its servers are.
    pub place: Place,
    /// Its usual address; `None` where there is none.
    pub base_url: Option<&'static str>,
    /// What of it the environment fills in.
    pub blanks: &'static [Blank],
    /// The environment's variable for another address.
    pub base_variable: Option<&'static str>,
    /// The environment's variables for its key; the first one is the name we give.
    pub key_variables: &'static [&'static str],
    /// How its servers expect the key.
    pub key_header: KeyHeader,
    /// What its servers speak.
    pub wire: Wire,
    /// The vendor that it is by another wire: models, windows and prices are the same.
    pub same_as: Option<&'static str>,
    /// The name of its dialect of Chat Completions.
    pub dialect: &'static str,
    /// How its server tells a model's window.
    pub tells: Tells,
    /// The model where none is named; for servers that hold only one.
    pub only_model: Option<&'static str>,
}

/// What a vendor's servers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
    /// The same at Vertex AI.
    Vertex,
    /// Bedrock's Converse.
    Converse,
}

/// The header that carries a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// `x-api-key: KEY`.
    XApiKey,
    /// `x-goog-api-key: KEY`.
    XGoogApiKey,
}

impl KeyHeader {
    /// Returns the header with this key.
    ///
    /// # Errors
    /// [`ProviderError::BadKey`] if the key has characters that no header may have.
    pub(crate) fn with(
        self,
        key: &Key,
        vendor: &Vendor,
    ) -> Result<(HeaderName, HeaderValue), ProviderError> {
        let key = key.secret.expose();
        let (name, value) = match self {
            Self::Bearer => (
                AUTHORIZATION,
                HeaderValue::try_from(format!("Bearer {key}")),
            ),
            Self::XApiKey => (
                HeaderName::from_static("x-api-key"),
                HeaderValue::try_from(key),
            ),
            Self::XGoogApiKey => {
                let name = HeaderName::from_static("x-goog-api-key");
                (name, HeaderValue::try_from(key))
            }
        };
        let bad = |_| ProviderError::BadKey {
            provider: vendor.name,
        };
        Ok((name, value.map_err(bad)?))
    }
}

impl Wire {
    /// Returns the name of the protocol.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Chat => "OpenAI Chat Completions",
            Self::Responses => "OpenAI Responses",
            Self::Messages => "Anthropic Messages",
            Self::Gemini => "Gemini generateContent",
            Self::Vertex => "Vertex AI generateContent",
            Self::Converse => "Bedrock Converse",
        }
    }
}

/// A part of an address that the environment fills in.
#[derive(Debug, PartialEq, Eq)]
pub struct Blank {
    /// What stands for it in the address, in braces.
    pub name: &'static str,
    /// The environment's variables for it.
    pub variables: &'static [&'static str],
    /// What it is where none is set; `None` where one has to be.
    pub usual: Option<&'static str>,
}

/// Where a vendor's servers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Elsewhere: a key is needed at its usual address.
    Hosted,
    /// On this machine, started by the user.
    ThisMachine,
    /// On this machine, started by us for the run.
    Ours,
    /// Wherever the user says.
    Anywhere,
}

/// How a server tells a model's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Not at all.
    Nothing,
    /// In its list of models.
    Models,
    /// llama.cpp: in its properties.
    Props,
    /// Ollama: for a loaded model.
    Ollama,
    /// LM Studio: for a loaded model, in a list of its own.
    LmStudio,
    /// Anthropic: in the model's own entry.
    Anthropic,
    /// A server that speaks like Anthropic's: in the model's own entry, or as llama.cpp does.
    LikeAnthropic,
    /// Google: in the model's own entry.
    Google,
    /// Not at all, and it has no list of models either.
    Silent,
    /// It may be any server: try what may be tried.
    Perhaps,
}

/// A hosted API with what most of them have.
const HOSTED: Vendor = Vendor {
    name: "",
    aliases: &[],
    place: Place::Hosted,
    base_url: None,
    blanks: &[],
    base_variable: None,
    key_variables: &[],
    key_header: KeyHeader::Bearer,
    wire: Wire::Chat,
    same_as: None,
    dialect: "compatible",
    tells: Tells::Models,
    only_model: None,
};

/// All vendors, in the order in which they are listed for people.
pub static VENDORS: [Vendor; 20] = [
    Vendor {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        base_variable: Some("OPENAI_BASE_URL"),
        key_variables: &["OPENAI_API_KEY"],
        dialect: "openai",
        tells: Tells::Nothing,
        ..HOSTED
    },
    Vendor {
        name: "openai-responses",
        aliases: &["openai_responses", "responses"],
        base_url: Some("https://api.openai.com/v1"),
        base_variable: Some("OPENAI_BASE_URL"),
        key_variables: &["OPENAI_API_KEY"],
        wire: Wire::Responses,
        same_as: Some("openai"),
        dialect: "openai",
        tells: Tells::Nothing,
        ..HOSTED
    },
    Vendor {
        name: "anthropic",
        aliases: &["claude"],
        base_url: Some("https://api.anthropic.com/v1"),
        base_variable: Some("ANTHROPIC_BASE_URL"),
        key_variables: &["ANTHROPIC_API_KEY"],
        key_header: KeyHeader::XApiKey,
        wire: Wire::Messages,
        tells: Tells::Anthropic,
        ..HOSTED
    },
    Vendor {
        name: "gemini",
        aliases: &["google", "google-ai", "googleai"],
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        base_variable: Some("GOOGLE_GEMINI_BASE_URL"),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        key_header: KeyHeader::XGoogApiKey,
        wire: Wire::Gemini,
        tells: Tells::Google,
        ..HOSTED
    },
    Vendor {
        name: "vertex",
        aliases: &["vertex-ai", "vertex_ai", "vertexai"],
        base_url: Some(
            "https://{location}-aiplatform.googleapis.com/v1/projects/{project}/locations/{location}",
        ),
        blanks: &[
            Blank {
                name: "{project}",
                variables: &["VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"],
                usual: None,
            },
            Blank {
                name: "{location}",
                variables: &["VERTEX_LOCATION", "GOOGLE_CLOUD_LOCATION"],
                usual: Some("global"),
            },
        ],
        // An access token, which lives for an hour.
        key_variables: &["VERTEX_API_KEY"],
        wire: Wire::Vertex,
        same_as: Some("gemini"),
        tells: Tells::Silent,
        ..HOSTED
    },
    Vendor {
        name: "bedrock",
        aliases: &["aws-bedrock", "aws_bedrock", "amazon-bedrock"],
        base_url: Some("https://bedrock-runtime.{region}.amazonaws.com"),
        blanks: &[Blank {
            name: "{region}",
            variables: &["AWS_REGION", "AWS_DEFAULT_REGION"],
            usual: Some("us-east-1"),
        }],
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK", "BEDROCK_API_KEY"],
        wire: Wire::Converse,
        tells: Tells::Silent,
        ..HOSTED
    },
    Vendor {
        name: "openrouter",
        aliases: &["open-router"],
        base_url: Some("https://openrouter.ai/api/v1"),
        key_variables: &["OPENROUTER_API_KEY"],
        dialect: "openrouter",
        ..HOSTED
    },
    Vendor {
        name: "groq",
        base_url: Some("https://api.groq.com/openai/v1"),
        key_variables: &["GROQ_API_KEY"],
        dialect: "groq",
        ..HOSTED
    },
    Vendor {
        name: "mistral",
        aliases: &["mistralai"],
        base_url: Some("https://api.mistral.ai/v1"),
        key_variables: &["MISTRAL_API_KEY"],
        dialect: "mistral",
        ..HOSTED
    },
    Vendor {
        name: "deepseek",
        base_url: Some("https://api.deepseek.com/v1"),
        key_variables: &["DEEPSEEK_API_KEY"],
        dialect: "deepseek",
        tells: Tells::Nothing,
        ..HOSTED
    },
    Vendor {
        name: "xai",
        aliases: &["x-ai", "grok"],
        base_url: Some("https://api.x.ai/v1"),
        key_variables: &["XAI_API_KEY", "GROK_API_KEY"],
        dialect: "xai",
        ..HOSTED
    },
    Vendor {
        name: "together",
        aliases: &["together-ai", "together_ai", "togetherai"],
        base_url: Some("https://api.together.xyz/v1"),
        key_variables: &[
            "TOGETHER_API_KEY",
            "TOGETHERAI_API_KEY",
            "TOGETHER_AI_API_KEY",
        ],
        dialect: "together",
        ..HOSTED
    },
    Vendor {
        name: "kimi",
        aliases: &["moonshot", "moonshotai"],
        base_url: Some("https://api.moonshot.ai/v1"),
        key_variables: &["MOONSHOT_API_KEY", "KIMI_API_KEY"],
        dialect: "kimi",
        ..HOSTED
    },
    Vendor {
        name: "cohere",
        base_url: Some("https://api.cohere.ai/compatibility/v1"),
        key_variables: &["COHERE_API_KEY", "CO_API_KEY"],
        dialect: "cohere",
        tells: Tells::Nothing,
        ..HOSTED
    },
    Vendor {
        name: "ollama",
        place: Place::ThisMachine,
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_variable: Some("OLLAMA_HOST"),
        key_variables: &["OLLAMA_API_KEY"],
        dialect: "ollama",
        tells: Tells::Ollama,
        ..HOSTED
    },
    Vendor {
        name: "llama.cpp",
        aliases: &["llamacpp", "llama-cpp", "llama-server"],
        place: Place::ThisMachine,
        base_url: Some("http://127.0.0.1:8080/v1"),
        key_variables: &["LLAMA_API_KEY"],
        dialect: "llama.cpp",
        tells: Tells::Props,
        only_model: Some("default"),
        ..HOSTED
    },
    Vendor {
        name: "lmstudio",
        aliases: &["lm-studio", "lm_studio"],
        place: Place::ThisMachine,
        base_url: Some("http://127.0.0.1:1234/v1"),
        key_variables: &["LMSTUDIO_API_KEY", "LM_API_TOKEN"],
        dialect: "lmstudio",
        tells: Tells::LmStudio,
        ..HOSTED
    },
    Vendor {
        name: "vllm",
        place: Place::ThisMachine,
        base_url: Some("http://127.0.0.1:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        dialect: "vllm",
        ..HOSTED
    },
    Vendor {
        name: "openai-compatible",
        aliases: &["compatible", "custom"],
        place: Place::Anywhere,
        // Not OpenAI's key: it must not go to just any server.
        key_variables: &["OPENAI_COMPATIBLE_API_KEY"],
        tells: Tells::Perhaps,
        ..HOSTED
    },
    Vendor {
        name: "local",
        place: Place::Ours,
        dialect: "llama.cpp",
        tells: Tells::Props,
        only_model: Some("default"),
        ..HOSTED
    },
];

impl Vendor {
    /// The vendor of that name or alias, in whatever case.
    ///
    /// # Errors
    /// [`ProviderError::UnknownProvider`], with a suggestion where one is near.
    pub fn named(name: &str) -> Result<&'static Self, ProviderError> {
        let lower = name.trim().to_ascii_lowercase();
        let known = VENDORS.iter().find(|vendor| vendor.is_called(&lower));
        known.ok_or_else(|| ProviderError::UnknownProvider {
            given: name.trim().to_owned(),
            suggestion: nearest(&lower).map(str::to_owned),
        })
    }

    /// What its servers want of a request.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        Dialect::named(self.dialect).unwrap_or_default()
    }

    fn is_called(&self, lower: &str) -> bool {
        self.name == lower || self.aliases.contains(&lower)
    }
}

/// All names for people, joined by commas.
pub(crate) fn names() -> String {
    let names: Vec<&str> = VENDORS.iter().map(|vendor| vendor.name).collect();
    names.join(", ")
}

/// The vendor whose name or alias is nearest, if any is near.
fn nearest(lower: &str) -> Option<&'static str> {
    let named = |vendor: &'static Vendor| {
        let names = vendor.aliases.iter().copied().chain([vendor.name]);
        names.map(move |name| (strsim::damerau_levenshtein(name, lower), name, vendor.name))
    };
    // `ollama-native` begins as `ollama` does.
    let begins = |vendor: &&Vendor| {
        { lower.strip_prefix(vendor.name) }.is_some_and(|rest| rest.starts_with(['-', '_']))
    };
    if let Some(vendor) = VENDORS.iter().find(begins) {
        return Some(vendor.name);
    }
    let near = VENDORS.iter().flat_map(named);
    // A short name is near to many words: at most a third of it may differ.
    let near = near.filter(|(distance, name, _)| {
        *distance <= MAX_DISTANCE && distance * 3 <= name.len().max(lower.len())
    });
    near.min_by_key(|(distance, ..)| *distance)
        .map(|(.., vendor)| vendor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendor_is_found_by_all_its_names() {
        for vendor in &VENDORS {
            for name in vendor.aliases.iter().chain([&vendor.name]) {
                assert_eq!(Vendor::named(name), Ok(vendor));
                assert_eq!(Vendor::named(&name.to_uppercase()), Ok(vendor));
            }
        }
    }

    #[test]
    fn every_vendor_has_what_its_place_asks_for() {
        for vendor in &VENDORS {
            assert!(Dialect::named(vendor.dialect).is_some(), "{}", vendor.name);
            let usual = matches!(vendor.place, Place::Hosted | Place::ThisMachine);
            assert_eq!(vendor.base_url.is_some(), usual, "{}", vendor.name);
            if vendor.place == Place::Hosted {
                assert!(!vendor.key_variables.is_empty(), "{}", vendor.name);
            }
        }
    }

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        for (given, suggestion) in [
            ("opnai", Some("openai")),
            ("open_router", Some("openrouter")),
            ("olama", Some("ollama")),
            ("moonshoot", Some("kimi")),
            ("llama_cpp", Some("llama.cpp")),
            ("gork", Some("xai")),
            ("anthropi", Some("anthropic")),
            ("bedrok", Some("bedrock")),
            ("azure", None),
            ("zz", None),
        ] {
            let Err(ProviderError::UnknownProvider {
                suggestion: got, ..
            }) = Vendor::named(given)
            else {
                panic!("{given}");
            };
            assert_eq!(got.as_deref(), suggestion, "{given}");
        }
    }
}
