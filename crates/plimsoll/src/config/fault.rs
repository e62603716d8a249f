//! [`ConfigError`]: all faults of a configuration, each with its origin.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::nearest;

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The origin of a setting or of a fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default, or no place at all.
    #[default]
    Default,
    /// A command-line flag, as written.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A place in a file. The path is empty if the text is of no file.
    File(Arc<Path>, Place),
}

/// A fault or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The place, flag or variable.
    pub origin: Origin,
    /// The fault and its cure, as a sentence for a person.
    pub text: String,
}

/// The faults that make a configuration unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The faults, from the top of each file.
    pub faults: Vec<ConfigFault>,
}

/// Faults and warnings while they are collected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) faults: Vec<ConfigFault>,
    pub(crate) warnings: Vec<ConfigFault>,
}

impl Origin {
    /// Returns the beginning of a file, or of a text without one.
    pub(crate) fn start(path: Option<&Path>) -> Self {
        let path = path.unwrap_or(Path::new(""));
        Self::File(path.into(), Place { line: 1, column: 1 })
    }

    /// Returns the place in the file. `None` if it is in no file.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::File(_, place) => Some(*place),
            _ => None,
        }
    }

    /// Returns the file. `None` if it is in no file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path, _) => Some(path),
            _ => None,
        }
    }

    /// Returns a path that is relative to the folder of its file, if it is in one.
    pub(crate) fn beside_file(&self, path: &str) -> String {
        let folder = self.path().and_then(Path::parent);
        match folder.filter(|_| !path.trim().is_empty()) {
            Some(folder) => folder.join(path).display().to_string(),
            None => path.to_owned(),
        }
    }

    /// Returns the origin as a part of a fault that is at `other`: a line if both are in one file.
    pub(crate) fn beside(&self, other: &Self) -> String {
        match self.place() {
            Some(place) if self.path() == other.path() => format!("line {}", place.line),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(path, place) if path.as_os_str().is_empty() => {
                write!(f, "line {}", place.line)
            }
            Self::File(path, Place { line, column }) => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Default => f.write_str("default"),
        }
    }
}

impl ConfigFault {
    pub(crate) fn new(origin: &Origin, text: impl Into<String>) -> Self {
        let (origin, text) = (origin.clone(), text.into());
        Self { origin, text }
    }
}

impl Faults {
    /// Adds a fault.
    pub(crate) fn push(&mut self, origin: &Origin, text: impl Into<String>) {
        add(&mut self.faults, [ConfigFault::new(origin, text)]);
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, origin: &Origin, text: impl Into<String>) {
        add(&mut self.warnings, [ConfigFault::new(origin, text)]);
    }

    /// Adds the faults of an error.
    pub(crate) fn add(&mut self, error: ConfigError) {
        add(&mut self.faults, error.faults);
    }

    /// Adds the faults and warnings of another list.
    pub(crate) fn extend(&mut self, others: Self) {
        add(&mut self.faults, others.faults);
        add(&mut self.warnings, others.warnings);
    }

    /// Returns the warnings, or an error if there are faults.
    pub(crate) fn check(mut self) -> Result<Vec<ConfigFault>, ConfigError> {
        if self.faults.is_empty() {
            return Ok(self.warnings);
        }
        self.faults
            .sort_by_cached_key(|ConfigFault { origin, .. }| {
                (origin.path().map(Path::to_owned), origin.place())
            });
        Err(ConfigError {
            faults: self.faults,
        })
    }
}

impl ConfigError {
    /// Creates an error of one fault.
    pub(crate) fn of(origin: &Origin, text: impl Into<String>) -> Self {
        let faults = vec![ConfigFault::new(origin, text)];
        Self { faults }
    }
}

/// Adds faults to a list. One setting can be at fault for two agents; it is reported once.
fn add(list: &mut Vec<ConfigFault>, faults: impl IntoIterator<Item = ConfigFault>) {
    for fault in faults {
        if !list.contains(&fault) {
            list.push(fault);
        }
    }
}

/// Returns the fault of a name that nothing has, and the most similar name as its cure.
pub(crate) fn no_such(what: &str, name: &str, known: &[&str]) -> String {
    let there_is = match known {
        [] => "the configuration has none".to_owned(),
        known => format!("there is: {}", known.join(", ")),
    };
    let near = nearest(name, known.iter().copied());
    let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    format!("there is no {what} `{name}`; {near}{there_is}")
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => f.write_str(&self.text),
            origin => write!(f, "{origin}: {}", self.text),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.faults.as_slice() {
            return one.fmt(f);
        }
        write!(f, "{} settings are faulty", self.faults.len())?;
        for fault in &self.faults {
            write!(f, "\n- {fault}")?;
        }
        Ok(())
    }
}
