//! Translates the configuration of another system to a `plimsoll.toml`, for
//! `plimsoll config import`.
//!
//! It reads files in TOML, YAML and JSON, and no program code. The settings of other systems are
//! data ([`rows`]). The result is checked with Plimsoll's own parser before it is returned.

mod models;
mod rows;
#[cfg(test)]
mod tests;
mod translate;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value as Json;

use super::document::Located;
use super::fault::{ConfigError, Faults, Origin};
use super::file::{self, Config, MAX_CONFIG_FILE};
pub(super) use rows::setting_hint;
use translate::Translation;
pub(super) use translate::own_tools;

/// A system whose configuration can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum System {
    /// phi-core (Rust).
    PhiCore,
    /// Heartbit (Rust).
    Heartbit,
}

/// The translated configuration of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The system that it came from.
    pub system: System,
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
    /// Reads and translates a file. Without `from`, the system is detected from the content.
    ///
    /// # Errors
    /// If the file cannot be read, is larger than [`MAX_CONFIG_FILE`](super::MAX_CONFIG_FILE), or
    /// is an error for [`Import::of`].
    pub fn read(path: &Path, from: Option<System>) -> Result<Self, ConfigError> {
        let text = file::config_text(path)?;
        Self::translated(&text, from, Some(path))
    }

    /// Translates a text in TOML, YAML or JSON.
    ///
    /// ```
    /// use plimsoll::config::{Config, Import, System};
    ///
    /// let text = "[provider]\nmodel = \"gpt-4o\"\n[compaction]\nkeep_recent_turns = 4";
    /// let import = Import::of(text, None)?;
    /// assert_eq!(import.system, System::PhiCore);
    /// assert!(import.toml.contains("keep_recent_turns = 4"));
    /// Config::parse(&import.toml)?;
    /// # Ok::<(), plimsoll::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If it is empty, is no text of these, is a `plimsoll.toml` already, has no setting that is known, or
    /// has settings that contradict each other. A value is never part of an error: it may be a secret.
    pub fn of(text: &str, from: Option<System>) -> Result<Self, ConfigError> {
        Self::translated(text, from, None)
    }

    fn translated(
        text: &str,
        from: Option<System>,
        path: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let wrong = |text: &str| ConfigError::of(&Origin::start(path), text);
        if text.len() as u64 > MAX_CONFIG_FILE {
            let most = MAX_CONFIG_FILE / (1024 * 1024);
            return Err(wrong(&format!("it is larger than {most} MiB; {GIVE}")));
        }
        if text.trim().is_empty() {
            return Err(wrong(&format!("it is empty; {GIVE}")));
        }
        if from.is_none() && Config::parse(text).is_ok_and(|config| config.warnings().is_empty()) {
            return Err(wrong(
                "it is already a plimsoll.toml and needs no import; if it belongs to another \
                 system, name that with --from",
            ));
        }
        let document = parse(text, path)?;
        let systems = from.map_or(System::ALL.to_vec(), |system| vec![system]);
        let known = |system: &System| translate::known(*system, &document);
        // Of several with as many settings, the first one.
        let system = systems.into_iter().rev().max_by_key(known);
        let system = system.filter(|system| from.is_some() || known(system) > 0);
        let Some(system) = system else {
            let names = System::ALL.map(System::name).join(", ");
            return Err(wrong(&format!(
                "its system is not recognised ({names}); name it with --from, or {GIVE}"
            )));
        };
        let translation = Translation::of(system, &document);
        let toml = translation.toml();
        if let Err(error) = Config::parse(&toml) {
            let faults = error.faults.into_iter().map(|fault| fault.text);
            let faults = faults.collect::<Vec<_>>().join("; ");
            return Err(wrong(&format!(
                "it cannot become a plimsoll.toml: {faults}"
            )));
        }
        let settings = translation.settings.into_iter();
        Ok(Self {
            system,
            toml,
            settings: settings.map(|setting| setting.report).collect(),
        })
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
        let document = document.map(|it| it.json());
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

impl System {
    /// All systems.
    pub const ALL: [Self; 2] = [Self::PhiCore, Self::Heartbit];

    /// Returns the name, which `--from` takes in any case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PhiCore => "phi-core",
            Self::Heartbit => "Heartbit",
        }
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut systems = Self::ALL.into_iter();
        let found = systems.find(|system| system.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no system `{name}`; known are: {names}")
        })
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
