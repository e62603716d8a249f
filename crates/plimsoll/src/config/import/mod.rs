//! Translates the configuration of another system to a `plimsoll.toml`, for
//! `plimsoll config import`.
//!
//! It reads files in TOML, YAML and JSON, and no program code. The settings of other systems are
//! data ([`rows`]). The result is checked with Plimsoll's own parser before it is returned.

mod lines;
mod models;
mod rows;
#[cfg(test)]
mod tests;
mod translate;
mod yaml;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use plimsoll_context::snake_case as snake;
use toml::Value;

use super::document::Located;
use super::fault::{ConfigError, Faults, Origin};
use super::file::{self, Config, MAX_CONFIG_FILE};
use rows::{ImportRow, OF_MODELS, ROWS};
use translate::Translation;

/// Maximum nesting depth of tables in an imported file.
const MAX_DEPTH: usize = 64;

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
    /// The line of the setting.
    pub line: usize,
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
        let wrong = |text: String| ConfigError::of(Origin::file(path), text);
        if text.len() as u64 > MAX_CONFIG_FILE {
            let most = MAX_CONFIG_FILE / (1024 * 1024);
            return Err(wrong(format!("it is larger than {most} MiB; {GIVE}")));
        }
        if text.trim().is_empty() {
            return Err(wrong(format!("it is empty; {GIVE}")));
        }
        if text.contains('\0') {
            return Err(wrong(format!("it is not text; {GIVE}")));
        }
        if from.is_none() && Config::parse(text).is_ok_and(|config| config.warnings().is_empty()) {
            let text = "it is already a plimsoll.toml and needs no import; if it belongs to \
                        another system, name that with --from";
            return Err(wrong(text.to_owned()));
        }
        let document = parse(text, path)?;
        let system = from.or_else(|| detect(&document));
        let Some(system) = system else {
            let names: Vec<String> = System::ALL.iter().map(ToString::to_string).collect();
            let text = format!(
                "its system is not recognised ({}); name it with --from, or {GIVE}",
                names.join(", ")
            );
            return Err(wrong(text));
        };
        Translation::of(system, &document).finish(path)
    }
}

/// The advice at the end of an error.
const GIVE: &str = "give a configuration file in TOML, YAML or JSON";

/// Parses a text by the extension of its file. Without a known one, it is TOML if it parses as
/// such, otherwise YAML, of which JSON is a part.
fn parse(text: &str, path: Option<&Path>) -> Result<Located, ConfigError> {
    let extension = path.and_then(Path::extension).and_then(|it| it.to_str());
    let mut faults = Faults::of_file(path);
    let in_yaml = |faults: &mut Faults| match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        // A text in JSON contains tabs only between its values, where YAML refuses them.
        Ok(_) => yaml::read(&text.replace('\t', " "), faults),
        Err(_) => yaml::read(text, faults),
    };
    let parsed = match extension {
        Some("toml") => Located::parse(text, &mut faults),
        Some("yaml" | "yml" | "json") => in_yaml(&mut faults),
        _ => {
            let table = Located::parse(text, &mut faults).or_else(|| in_yaml(&mut faults));
            return table.filter(|it| it.entries().is_some()).ok_or_else(|| {
                let text = format!(
                    "it is not TOML, YAML or JSON; {GIVE} (docs/coming-from.md translates \
                     settings in program code)"
                );
                ConfigError::of(Origin::file(path), text)
            });
        }
    };
    parsed.ok_or_else(|| faults.into())
}

/// Returns the system that most of the settings belong to, the first one of several. Returns `None`
/// if no setting is known.
fn detect(document: &Located) -> Option<System> {
    let known = System::ALL.map(|system| (translate::known(system, document), system));
    let most = known.iter().map(|(count, _)| *count).max()?;
    let mut first = known.iter().filter(|(count, _)| *count == most && most > 0);
    first.next().map(|(_, system)| *system)
}

/// Returns a value that no setting accepts.
fn unusable() -> Value {
    Value::Float(f64::NAN)
}

/// Returns the counterpart of an unknown name of another system, with the system's name, and
/// whether it names a setting rather than a table.
pub(super) fn hint(path: &str) -> Option<(String, bool)> {
    let path = snake(path);
    let is_it = |system: System, row: &str| {
        let rest = row.strip_suffix(wrapped(system, &path).as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_table = |system: System, row: &str| {
        let rest = row.strip_prefix(wrapped(system, &path).as_str());
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let ours = |row: &ImportRow| !row.ours.is_empty() && !OF_MODELS.contains(&row.how);
    let setting = ROWS
        .iter()
        .find(|((system, path), row)| ours(row) && is_it(*system, path));
    let table = || {
        let mut rows = ROWS.iter();
        rows.find(|((system, row), _)| is_table(*system, row) || is_it(*system, row))
    };
    let ((system, _), row) = setting.or_else(table)?;
    let what = match setting {
        Some(_) => format!("this setting of {system} is `{}` here", row.ours),
        None => format!("it is of {system}"),
    };
    let text = format!("{what}, and `plimsoll config import` translates a whole file");
    Some((text, setting.is_some()))
}

/// Names of phi-core's types, and the tables of its files with the same settings.
const TYPES: [(&str, &str); 9] = [
    ("agent_loop_config.", ""),
    ("context_config.compaction.", "compaction."),
    ("compaction.compaction.", "compaction."),
    ("context_config.", "compaction."),
    ("compaction_config.", "compaction."),
    ("execution_limits.", "execution."),
    ("retry_config.", "execution.retry."),
    ("cache_config.", "execution.cache."),
    ("model_config.", "provider."),
];

/// Returns a path without names of wrapping types.
fn wrapped(system: System, path: &str) -> String {
    let mut path = format!("{path}.");
    while system == System::PhiCore
        && let Some((name, table)) = TYPES.iter().find(|(name, _)| path.starts_with(name))
    {
        path = path.replacen(name, table, 1);
    }
    path.pop();
    path
}

impl System {
    /// All systems.
    pub const ALL: [Self; 2] = [Self::PhiCore, Self::Heartbit];

    /// Returns the name used by `--from`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PhiCore => "phi-core",
            Self::Heartbit => "heartbit",
        }
    }
}

impl FromStr for System {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|system| system.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no system `{name}`; known are: {names}")
        })
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PhiCore => "phi-core",
            Self::Heartbit => "Heartbit",
        })
    }
}
