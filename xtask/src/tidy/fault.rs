//! One place where a rule is broken, and the sentence that says how to mend it.

use std::fmt;

/// A broken rule. Line 0 means the file as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    text: String,
}

impl Fault {
    /// A fault in one line.
    pub(crate) fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        let (path, text) = (path.to_owned(), text.into());
        Self { path, line, text }
    }

    /// A fault of the file as a whole.
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

/// `path:line` of each fault, for the tests of the rules.
#[cfg(test)]
pub(crate) fn places(faults: &[Fault]) -> Vec<String> {
    let place = |fault: &Fault| format!("{}:{}", fault.path, fault.line);
    faults.iter().map(place).collect()
}
