//! A violation of a rule, with its place and the remedy.

use std::fmt;

/// A violation of a rule. Line 0 stands for the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    text: String,
}

impl Fault {
    /// Creates a fault in one line.
    pub(crate) fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        let (path, text) = (path.to_owned(), text.into());
        Self { path, line, text }
    }

    /// Creates a fault of the whole file.
    pub(crate) fn of(path: &str, text: impl Into<String>) -> Self {
        Self::at(path, 0, text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, text } = self;
        match line {
            0 => write!(f, "{path}: {text}"),
            line => write!(f, "{path}:{line}: {text}"),
        }
    }
}

/// Returns `path:line` of each fault, for the tests of the rules.
#[cfg(test)]
pub(crate) fn places(faults: &[Fault]) -> Vec<String> {
    let place = |fault: &Fault| format!("{}:{}", fault.path, fault.line);
    faults.iter().map(place).collect()
}
