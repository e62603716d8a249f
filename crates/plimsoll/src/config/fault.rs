//! [`ConfigError`]: all faults of a configuration, each with its place in the file.

use std::fmt;
use std::path::{Path, PathBuf};

/// A fault or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The line in the file, from 1. `None` if it belongs to no line, such as a flag.
    pub line: Option<usize>,
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

impl Faults {
    pub(crate) fn at(&mut self, line: usize, text: impl Into<String>) {
        self.push(Some(line), text);
    }

    pub(crate) fn push(&mut self, line: Option<usize>, text: impl Into<String>) {
        let fault = ConfigFault {
            line,
            text: text.into(),
        };
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
        self.0.sort_by_key(|fault| fault.line);
        ConfigError {
            path: path.map(Path::to_owned),
            faults: self.0,
        }
    }
}

impl ConfigFault {
    /// Returns the fault with its place: `plimsoll.toml:3: …`.
    #[must_use]
    pub fn in_file(&self, path: Option<&Path>) -> String {
        match (path, self.line) {
            (Some(path), Some(line)) => format!("{}:{line}: {}", path.display(), self.text),
            // A flag has no place in the file.
            (_, None) => self.text.clone(),
            (None, Some(line)) => format!("line {line}: {}", self.text),
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
