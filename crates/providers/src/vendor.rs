//! [`Vendor`]: data about each provider of models: its address, key and dialect. The models are not
//! listed here: servers report them, and `models.rs` contains the known facts about some.

use plimsoll_wire::openai_chat::Dialect;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::Serialize;

use crate::error::ProviderError;
use crate::key::ApiKey;

/// The largest edit distance of a suggested name.
const MAX_DISTANCE: usize = 3;

/// A provider of models behind an API.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The name: the part of a model's name before the first slash.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: &'static [&'static str],
    /// The location of its servers.
    pub place: ServerLocation,
    /// The usual address, if there is one.
    pub base_url: Option<&'static str>,
    /// The parts of the address that the environment fills in.
    pub blanks: &'static [Blank],
    /// The environment variable for another address.
    pub base_variable: Option<&'static str>,
    /// The environment variables for the key. Messages mention the first one.
    pub key_variables: &'static [&'static str],
    /// The header in which its servers expect the key.
    pub key_header: KeyHeader,
    /// The protocol of its servers.
    pub wire: Wire,
    /// The vendor with the same models, windows and prices, if this one only differs in the
    /// protocol.
    pub same_as: Option<&'static str>,
    /// The name of its dialect of Chat Completions.
    pub dialect: &'static str,
    /// The way in which its servers report the window of a model.
    pub tells: WindowReport,
    /// The model if none is given, for servers that run only one.
    pub only_model: Option<&'static str>,
}

/// The protocol of a vendor's servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
    /// `generateContent` at Vertex AI.
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
    /// [`ProviderError::BadKey`] if the key contains characters that a header may not contain.
    pub(crate) fn with(
        self,
        key: &ApiKey,
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
    /// The placeholder in the address, with braces.
    pub name: &'static str,
    /// The environment variables for the value.
    pub variables: &'static [&'static str],
    /// The default value. `None` if a variable must be set.
    pub usual: Option<&'static str>,
}

/// The location of a vendor's servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLocation {
    /// On the internet. The usual address requires a key.
    Hosted,
    /// On this machine, started by the user.
    ThisMachine,
    /// On this machine, started by Plimsoll for the run.
    Ours,
    /// At an address that the user gives.
    Anywhere,
}

/// The way in which a server reports the window of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowReport {
    /// It does not report the window.
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
    /// A server that imitates Anthropic's: in the model's own entry, or as llama.cpp does.
    LikeAnthropic,
    /// Google: in the model's own entry.
    Google,
    /// It reports no window and has no list of models.
    Silent,
    /// Any server: all ways are tried.
    Perhaps,
}

/// The common values of a hosted API.
const HOSTED: Vendor = Vendor {
    name: "",
    aliases: &[],
    place: ServerLocation::Hosted,
    base_url: None,
    blanks: &[],
    base_variable: None,
    key_variables: &[],
    key_header: KeyHeader::Bearer,
    wire: Wire::Chat,
    same_as: None,
    dialect: "compatible",
    tells: WindowReport::Models,
    only_model: None,
};

/// All vendors, in the order in which they are shown to users.
pub static VENDORS: [Vendor; 20] = [
    Vendor {
        name: "openai",
        base_url: Some("https://api.openai.com/v1"),
        base_variable: Some("OPENAI_BASE_URL"),
        key_variables: &["OPENAI_API_KEY"],
        dialect: "openai",
        tells: WindowReport::Nothing,
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
        tells: WindowReport::Nothing,
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
        tells: WindowReport::Anthropic,
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
        tells: WindowReport::Google,
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
        // An access token, valid for one hour.
        key_variables: &["VERTEX_API_KEY"],
        wire: Wire::Vertex,
        same_as: Some("gemini"),
        tells: WindowReport::Silent,
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
        tells: WindowReport::Silent,
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
        tells: WindowReport::Nothing,
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
        tells: WindowReport::Nothing,
        ..HOSTED
    },
    Vendor {
        name: "ollama",
        place: ServerLocation::ThisMachine,
        base_url: Some("http://127.0.0.1:11434/v1"),
        base_variable: Some("OLLAMA_HOST"),
        key_variables: &["OLLAMA_API_KEY"],
        dialect: "ollama",
        tells: WindowReport::Ollama,
        ..HOSTED
    },
    Vendor {
        name: "llama.cpp",
        aliases: &["llamacpp", "llama-cpp", "llama-server"],
        place: ServerLocation::ThisMachine,
        base_url: Some("http://127.0.0.1:8080/v1"),
        key_variables: &["LLAMA_API_KEY"],
        dialect: "llama.cpp",
        tells: WindowReport::Props,
        only_model: Some("default"),
        ..HOSTED
    },
    Vendor {
        name: "lmstudio",
        aliases: &["lm-studio", "lm_studio"],
        place: ServerLocation::ThisMachine,
        base_url: Some("http://127.0.0.1:1234/v1"),
        key_variables: &["LMSTUDIO_API_KEY", "LM_API_TOKEN"],
        dialect: "lmstudio",
        tells: WindowReport::LmStudio,
        ..HOSTED
    },
    Vendor {
        name: "vllm",
        place: ServerLocation::ThisMachine,
        base_url: Some("http://127.0.0.1:8000/v1"),
        key_variables: &["VLLM_API_KEY"],
        dialect: "vllm",
        ..HOSTED
    },
    Vendor {
        name: "openai-compatible",
        aliases: &["compatible", "custom"],
        place: ServerLocation::Anywhere,
        // Not `OPENAI_API_KEY`, which must not be sent to other servers.
        key_variables: &["OPENAI_COMPATIBLE_API_KEY"],
        tells: WindowReport::Perhaps,
        ..HOSTED
    },
    Vendor {
        name: "local",
        place: ServerLocation::Ours,
        dialect: "llama.cpp",
        tells: WindowReport::Props,
        only_model: Some("default"),
        ..HOSTED
    },
];

impl Vendor {
    /// Finds a vendor by its name or an alias, ignoring case.
    ///
    /// # Errors
    /// [`ProviderError::UnknownProvider`] with the most similar name, if one is similar enough.
    pub fn named(name: &str) -> Result<&'static Self, ProviderError> {
        let lower = name.trim().to_ascii_lowercase();
        let known = VENDORS.iter().find(|vendor| vendor.is_called(&lower));
        known.ok_or_else(|| ProviderError::UnknownProvider {
            given: name.trim().to_owned(),
            suggestion: nearest(&lower).map(str::to_owned),
        })
    }

    /// Returns the dialect of Chat Completions that its servers expect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        Dialect::named(self.dialect).unwrap_or_default()
    }

    fn is_called(&self, lower: &str) -> bool {
        self.name == lower || self.aliases.contains(&lower)
    }
}

/// Returns the names of all vendors, separated by commas.
pub(crate) fn names() -> String {
    let names: Vec<&str> = VENDORS.iter().map(|vendor| vendor.name).collect();
    names.join(", ")
}

/// Returns the vendor with the most similar name or alias, if one is similar enough.
fn nearest(lower: &str) -> Option<&'static str> {
    let named = |vendor: &'static Vendor| {
        let names = vendor.aliases.iter().copied().chain([vendor.name]);
        names.map(move |name| (strsim::damerau_levenshtein(name, lower), name, vendor.name))
    };
    // `ollama-native` begins with `ollama`.
    let begins = |vendor: &&Vendor| {
        { lower.strip_prefix(vendor.name) }.is_some_and(|rest| rest.starts_with(['-', '_']))
    };
    if let Some(vendor) = VENDORS.iter().find(begins) {
        return Some(vendor.name);
    }
    let near = VENDORS.iter().flat_map(named);
    // Many words are close to a short name, so at most a third of it may differ.
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
            let usual = matches!(
                vendor.place,
                ServerLocation::Hosted | ServerLocation::ThisMachine
            );
            assert_eq!(vendor.base_url.is_some(), usual, "{}", vendor.name);
            if vendor.place == ServerLocation::Hosted {
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
