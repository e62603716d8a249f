//! [`ConfigError`]: all faults of a configuration, each with its place in the file.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A fault or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The place in the file. `None` if it belongs to no place, such as a flag.
    pub place: Option<Place>,
    /// The fault and its cure, as a sentence for a person.
    pub text: String,
}

/// The faults that make a configuration unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, if there is one.
    pub path: Option<PathBuf>,
    /// The faults, from the top of the file.
    pub faults: Vec<ConfigFault>,
}

/// Faults while they are collected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Faults(pub(crate) Vec<ConfigFault>);

impl Place {
    /// The beginning of a text.
    pub(crate) const START: Self = Self::line(1);

    /// Returns the beginning of a line.
    pub(crate) const fn line(line: usize) -> Self {
        Self { line, column: 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Faults {
    pub(crate) fn push(&mut self, place: impl Into<Option<Place>>, text: impl Into<String>) {
        let place = place.into();
        let text = text.into();
        let fault = ConfigFault { place, text };
        // One setting can be at fault for two agents; it is reported once.
        if !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Returns an error if there are faults.
    pub(crate) fn check(self, path: Option<&Path>) -> Result<(), ConfigError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(self.error(path))
    }

    pub(crate) fn error(mut self, path: Option<&Path>) -> ConfigError {
        self.0.sort_by_key(|fault| fault.place);
        let path = path.map(Path::to_owned);
        let faults = self.0;
        ConfigError { path, faults }
    }
}

impl ConfigError {
    /// Creates an error of one fault.
    pub(crate) fn of(
        path: Option<&Path>,
        place: impl Into<Option<Place>>,
        text: impl Into<String>,
    ) -> Self {
        let mut faults = Faults::default();
        faults.push(place, text);
        faults.error(path)
    }
}

impl ConfigFault {
    /// Returns the fault with its place: `plimsoll.toml:3:1: …`.
    #[must_use]
    pub fn in_file(&self, path: Option<&Path>) -> String {
        match (path, self.place) {
            (Some(path), Some(place)) => format!("{}:{place}: {}", path.display(), self.text),
            // A flag has no place in the file.
            (_, None) => self.text.clone(),
            (None, Some(place)) => format!("line {}: {}", place.line, self.text),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_deref();
        if let [one] = self.faults.as_slice() {
            return f.write_str(&one.in_file(path));
        }
        let count = self.faults.len();
        match path {
            Some(path) => write!(f, "{}: {count} settings are faulty", path.display())?,
            None => write!(f, "{count} settings are faulty")?,
        }
        for fault in &self.faults {
            write!(f, "\n- {}", fault.in_file(path))?;
        }
        Ok(())
    }
}
