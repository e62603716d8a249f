//! Translates the configuration of another system to a `plimsoll.toml`, for
//! `plimsoll config import`.
//!
//! It reads files in TOML, YAML and JSON, and no program code. The settings of other systems are
//! data ([`rows`]). The result is checked with Plimsoll's own parser before it is returned.

mod rows;
#[cfg(test)]
mod tests;
mod translate;

use std::path::Path;

use serde_json::Value as Json;

use super::document::Located;
use super::fault::{ConfigError, Faults, Origin};
use super::file::{self, Config};
pub(super) use translate::own_tools;

/// The translated configuration of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// A `plimsoll.toml` with the same meaning, as far as possible. [`Config::parse`] reads it
    /// without warnings.
    pub toml: String,
    /// The translation of each setting, from the top of the file.
    pub settings: Vec<ImportedSetting>,
}

/// The translation of one setting of another system.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ImportedSetting {
    /// The name as written, with the names of its tables.
    pub name: String,
    /// The resulting settings; empty if it is not translated.
    pub became: Vec<String>,
    /// The difference in meaning, or the reason why it is not translated.
    pub note: Option<String>,
}

impl Import {
    /// Reads and translates a file of Heartbit or phi-core.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than [`MAX_CONFIG_FILE`](super::MAX_CONFIG_FILE), or
    /// is an error for [`Import::of`].
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::translated(&file::config_text(path)?, Some(path))
    }

    /// Translates a text in TOML, YAML or JSON.
    ///
    /// ```
    /// use plimsoll::config::{Config, Import};
    ///
    /// let text = "[provider]\nmodel = \"gpt-4o\"\n[compaction]\nkeep_recent_turns = 4";
    /// let import = Import::of(text)?;
    /// assert!(import.toml.contains("keep_recent_turns = 4"));
    /// Config::parse(&import.toml)?;
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If it is no text of these, has no setting that is known, or has settings that contradict each
    /// other. A value is never part of an error: it may be a secret.
    pub fn of(text: &str) -> Result<Self, ConfigError> {
        Self::translated(text, None)
    }

    fn translated(text: &str, path: Option<&Path>) -> Result<Self, ConfigError> {
        let wrong = |text: &str| ConfigError::of(&Origin::start(path), text);
        let Some(import) = translate::translated(&parse(text, path)?) else {
            return Err(wrong(&format!(
                "it has no setting of Heartbit or phi-core; {GIVE}"
            )));
        };
        if let Err(error) = Config::parse(&import.toml) {
            let faults = error.faults.into_iter().map(|fault| fault.text);
            let faults = faults.collect::<Vec<_>>().join("; ");
            return Err(wrong(&format!(
                "it cannot become a plimsoll.toml: {faults}"
            )));
        }
        Ok(import)
    }
}

/// The advice at the end of an error.
const GIVE: &str = "give a configuration file in TOML, YAML or JSON";

/// Parses a text by the extension of its file. Without a known one, it is what it parses as.
fn parse(text: &str, path: Option<&Path>) -> Result<Json, ConfigError> {
    let extension = path.and_then(Path::extension).and_then(|it| it.to_str());
    let toml = || {
        let mut faults = Faults::default();
        let document = Located::parse(text, path, &mut faults);
        let document = document.map(|it| it.value);
        faults.check().map(|_| document.unwrap_or_default())
    };
    let wrong = |text| ConfigError::of(&Origin::start(path), text);
    let json = || serde_json::from_str(text).map_err(|it| wrong(format!("this is no JSON: {it}")));
    let yaml = || plimsoll_tools::yaml(text).map_err(|it| wrong(format!("this is no YAML: {it}")));
    match extension {
        Some("toml") => toml(),
        Some("json") => json(),
        Some("yaml" | "yml") => yaml(),
        _ => {
            let parsed = toml().or_else(|_| json()).or_else(|_| yaml()).ok();
            parsed.filter(Json::is_object).ok_or_else(|| {
                wrong(format!(
                    "it is not TOML, YAML or JSON; {GIVE} (docs/coming-from.md translates settings in program code)"
                ))
            })
        }
    }
}
