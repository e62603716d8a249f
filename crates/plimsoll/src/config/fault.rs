//! [`ConfigError`]: all faults of a configuration, each with its origin.

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
    File(PathBuf, Place),
}

/// A fault or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The place.
    pub origin: Origin,
    /// The fault and its cure, as a sentence for a person. It names a flag or a variable.
    pub text: String,
}

/// The faults that make a configuration unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The faults, from the top of each file.
    pub faults: Vec<ConfigFault>,
}

/// Faults while they are collected.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// The source that is being read.
    pub(crate) source: Origin,
    pub(crate) list: Vec<ConfigFault>,
}

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

impl Origin {
    /// Returns the beginning of a file.
    pub(crate) fn file(path: Option<&Path>) -> Self {
        Self::File(path.map(Path::to_owned).unwrap_or_default(), Place::START)
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

    /// Returns the name of a setting from here for a fault that is at `other`: the flag or the
    /// variable, or `name` with its line.
    pub(crate) fn named(&self, name: &str, other: &Self) -> String {
        match self {
            Self::Flag(name) | Self::Variable(name) => format!("`{name}`"),
            Self::File(..) => format!("{name} ({})", self.beside(other)),
            Self::Default => name.to_owned(),
        }
    }

    /// Returns the beginning of a fault of a flag or a variable, which have no place.
    pub(crate) fn prefix(&self) -> String {
        match self {
            Self::Flag(name) | Self::Variable(name) => format!("{name}: "),
            Self::File(..) | Self::Default => String::new(),
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
            Self::File(path, place) => write!(f, "{}:{place}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

impl Faults {
    /// Returns an empty list for the text of a file.
    pub(crate) fn of_file(path: Option<&Path>) -> Self {
        let source = Origin::file(path);
        Self {
            source,
            list: Vec::new(),
        }
    }

    /// Returns the origin of a place in the source that is being read.
    pub(crate) fn origin(&self, place: Place) -> Origin {
        match &self.source {
            Origin::File(path, _) => Origin::File(path.clone(), place),
            other => other.clone(),
        }
    }

    /// Adds a fault at a place in the source that is being read.
    pub(crate) fn push(&mut self, place: Place, text: impl Into<String>) {
        self.at(self.origin(place), text);
    }

    /// Adds a fault.
    pub(crate) fn at(&mut self, origin: Origin, text: impl Into<String>) {
        let text = text.into();
        self.add([ConfigFault { origin, text }]);
    }

    /// Adds faults. One setting can be at fault for two agents; it is reported once.
    pub(crate) fn add(&mut self, faults: impl IntoIterator<Item = ConfigFault>) {
        for fault in faults {
            if !self.list.contains(&fault) {
                self.list.push(fault);
            }
        }
    }

    /// Returns an error if there are faults.
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        if self.list.is_empty() {
            return Ok(());
        }
        Err(self.into())
    }
}

impl From<Faults> for ConfigError {
    fn from(faults: Faults) -> Self {
        let mut faults = faults.list;
        faults.sort_by(|one, other| {
            let key = |fault: &ConfigFault| {
                (
                    fault.origin.path().map(Path::to_owned),
                    fault.origin.place(),
                )
            };
            key(one).cmp(&key(other))
        });
        Self { faults }
    }
}

impl ConfigError {
    /// Creates an error of one fault.
    pub(crate) fn of(origin: Origin, text: impl Into<String>) -> Self {
        let text = text.into();
        let faults = vec![ConfigFault { origin, text }];
        Self { faults }
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(..) => write!(f, "{}: {}", self.origin, self.text),
            _ => f.write_str(&self.text),
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
