//! [`Vendor`]: data about each provider of models: its address, key and dialect. The providers are in
//! `data/vendors.toml`. The models are not listed there: servers report them, and `models.rs` contains
//! the known facts about some.

use std::sync::LazyLock;

use plimsoll_core::Secret;
use plimsoll_wire::openai_chat::Dialect;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::error::ProviderError;

/// A provider of models behind an API.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vendor {
    /// The name: the part of a model's name before the first slash.
    pub name: &'static str,
    /// Other accepted names.
    pub aliases: Vec<&'static str>,
    /// The location of its servers.
    pub place: ServerLocation,
    /// The usual address, if there is one.
    pub base_url: Option<&'static str>,
    /// The parts of the address that the environment fills in.
    pub blanks: Vec<UrlPlaceholder>,
    /// The environment variable for another address.
    pub base_variable: Option<&'static str>,
    /// The environment variables for the key. Messages mention the first one.
    pub key_variables: Vec<&'static str>,
    /// The header in which its servers expect the key, in lower case. In `authorization`, it follows the
    /// word `Bearer`.
    pub key_header: &'static str,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrlPlaceholder {
    /// The placeholder in the address, with braces.
    pub name: &'static str,
    /// The environment variables for the value.
    pub variables: Vec<&'static str>,
    /// The default value. `None` if a variable must be set.
    pub usual: Option<&'static str>,
}

/// The location of a vendor's servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Any server: all ways are tried.
    Perhaps,
}

/// The file with all vendors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct VendorFile {
    vendors: Vec<Vendor>,
}

/// All vendors, in the order in which they are shown to users. Empty if the file cannot be parsed,
/// which a test excludes.
pub static VENDORS: LazyLock<Vec<Vendor>> = LazyLock::new(|| {
    let file: VendorFile = toml::from_str(include_str!("../data/vendors.toml")).unwrap_or_default();
    file.vendors
});

/// The values of a hosted API.
impl Default for Vendor {
    fn default() -> Self {
        Self {
            name: "",
            aliases: Vec::new(),
            place: ServerLocation::Hosted,
            base_url: None,
            blanks: Vec::new(),
            base_variable: None,
            key_variables: Vec::new(),
            key_header: "authorization",
            wire: Wire::Chat,
            same_as: None,
            dialect: "compatible",
            tells: WindowReport::Models,
            only_model: None,
        }
    }
}

impl Vendor {
    /// Finds a vendor by its name or an alias, ignoring case.
    ///
    /// # Errors
    /// [`ProviderError::UnknownProvider`] with the most similar name, if one is similar enough.
    pub fn named(name: &str) -> Result<&'static Self, ProviderError> {
        Self::find(name).map_err(|nearest| ProviderError::UnknownProvider {
            given: name.trim().to_owned(),
            suggestion: nearest.map(str::to_owned),
        })
    }

    /// Like [`Vendor::named`]. The error is the most similar name, if one is similar enough.
    pub(crate) fn find(name: &str) -> Result<&'static Self, Option<&'static str>> {
        let lower = name.trim().to_ascii_lowercase();
        let known = VENDORS.iter().find(|vendor| vendor.is_called(&lower));
        known.ok_or_else(|| nearest(&lower))
    }

    /// Returns the header with this key.
    ///
    /// # Errors
    /// [`ProviderError::BadKey`] if the key contains characters that a header may not contain.
    pub(crate) fn header(&self, key: &Secret) -> Result<(HeaderName, HeaderValue), ProviderError> {
        let name = HeaderName::from_static(self.key_header);
        let scheme = if name == AUTHORIZATION { "Bearer " } else { "" };
        let value = HeaderValue::try_from(format!("{scheme}{}", key.expose()));
        let provider = self.name;
        let value = value.map_err(|_| ProviderError::BadKey { provider })?;
        Ok((name, value))
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
    let names = VENDORS.iter();
    let names = names.flat_map(|vendor| vendor.aliases.iter().copied().chain([vendor.name]));
    let name = plimsoll_context::nearest(lower, names)?;
    let vendor = VENDORS.iter().find(|vendor| vendor.is_called(name));
    vendor.map(|vendor| vendor.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read() {
        let file: Result<VendorFile, _> = toml::from_str(include_str!("../data/vendors.toml"));
        assert_eq!(file.map(|file| file.vendors.len()), Ok(20));
    }

    #[test]
    fn every_vendor_is_found_by_all_its_names() {
        for vendor in VENDORS.iter() {
            for name in vendor.aliases.iter().chain([&vendor.name]) {
                assert_eq!(Vendor::named(name), Ok(vendor));
                assert_eq!(Vendor::named(&name.to_uppercase()), Ok(vendor));
            }
        }
    }

    #[test]
    fn every_vendor_has_what_its_place_asks_for() {
        for vendor in VENDORS.iter() {
            assert!(Dialect::named(vendor.dialect).is_some(), "{}", vendor.name);
            assert!(
                vendor.header(&Secret::new("sk-1")).is_ok(),
                "{}",
                vendor.name
            );
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
