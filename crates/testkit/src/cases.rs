//! Case files: many inputs with their expected outcomes in one text file, which one test runs.
//!
//! ```text
//! # A comment.
//! default model "m"
//!
//! ## the first message
//!
//! == a user begins
//! max_tokens 100
//! - {"role": "user", "content": "q"}
//! => accepted
//! ```
//!
//! `## ` begins a section. `== ` begins a case with its name, which is unique in its section. The lines
//! after it are its input: a key and a value; a key may stand several times. Lines that begin with `=> `
//! are the expected outcome. A line `default key value` is part of every case below it that does not have the key, until the next `default` of
//! this key; `without key` leaves it out of one case.
//!
//! `PLIMSOLL_BLESS=1` writes the actual outcomes into the file, to be read in the diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

/// One case of a file.
#[derive(Debug)]
pub struct Case {
    /// The section and the name, unique in the file.
    pub name: String,
    /// The line at which the case begins, from 1.
    pub line: usize,
    /// The lines of the expected outcome.
    pub expected: Vec<String>,
    input: Vec<(String, String)>,
    /// The number of the last line of its input, from 1.
    end: usize,
}

impl Case {
    /// Returns the keys and values of the input in their order, defaults first.
    pub fn input(&self) -> impl Iterator<Item = (&str, &str)> {
        let input = self.input.iter();
        input.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut input = self.input();
        input.find_map(|(known, value)| (known == key).then_some(value))
    }

    /// Returns all values of a key in their order.
    pub fn all<'c>(&'c self, key: &'c str) -> impl Iterator<Item = &'c str> {
        self.input()
            .filter(move |(known, _)| *known == key)
            .map(|(_, value)| value)
    }

    /// Returns all values of a key as JSON.
    ///
    /// # Panics
    /// If a value is not JSON.
    #[must_use]
    pub fn json(&self, key: &str) -> Vec<Value> {
        self.all(key).map(json).collect()
    }
}

/// Parses a value of a case.
///
/// # Panics
/// If the text is not JSON.
#[must_use]
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Reads the cases of a file.
///
/// # Panics
/// If the file cannot be read, or contains a name twice.
#[must_use]
pub fn read(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Checks that each case of a file has its expected outcome, or writes the outcomes into the file.
///
/// # Panics
/// If an outcome is not the expected one. The message names all such cases.
pub fn check(path: &Path, outcome: impl Fn(&Case) -> Vec<String>) {
    let cases = read(path);
    let outcomes = cases.iter().map(|case| {
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome(case)));
        let place = || format!("{}:{}: {}", path.display(), case.line, case.name);
        outcome.unwrap_or_else(|_| panic!("{} panics: see above", place()))
    });
    let outcomes: Vec<Vec<String>> = outcomes.collect();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        let text = fs::read_to_string(path).unwrap_or_default();
        let ends = cases.iter().map(|case| case.end).zip(&outcomes);
        fs::write(path, with_outcomes(&text, ends)).expect("the case file can be written");
        return;
    }
    let mut report = String::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        if case.expected != *outcome {
            let (name, line) = (&case.name, case.line);
            let _ = writeln!(report, "{}:{line}: {name}", path.display());
            for line in case.expected.iter().filter(|line| !outcome.contains(line)) {
                let _ = writeln!(report, "  expected {line}");
            }
            for line in outcome.iter().filter(|line| !case.expected.contains(line)) {
                let _ = writeln!(report, "  got      {line}");
            }
        }
    }
    assert!(
        report.is_empty(),
        "{report}To accept all outcomes, run this test with PLIMSOLL_BLESS=1."
    );
}

fn parse(text: &str) -> Result<Vec<Case>, String> {
    let mut cases: Vec<Case> = Vec::new();
    let mut defaults: Vec<(String, String)> = Vec::new();
    let mut without = BTreeSet::new();
    let mut section = "";
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let (key, value) = (key.to_owned(), value.to_owned());
        match (key.as_str(), cases.last_mut()) {
            ("default", _) => {
                if let Some(case) = cases.last_mut() {
                    fill(case, &defaults, &without);
                }
                without.clear();
                let (key, value) = value.split_once(' ').unwrap_or((&value, ""));
                defaults.retain(|(known, _)| known != key);
                if !value.is_empty() {
                    defaults.push((key.to_owned(), value.to_owned()));
                }
            }
            ("==", last) => {
                if let Some(case) = last {
                    fill(case, &defaults, &without);
                }
                without.clear();
                let name = match section {
                    "" => value,
                    section => format!("{section}: {value}"),
                };
                if cases.iter().any(|case| case.name == name) {
                    return Err(format!("line {number}: two cases have the name {name:?}"));
                }
                cases.push(Case {
                    name,
                    line: number,
                    expected: Vec::new(),
                    input: Vec::new(),
                    end: number,
                });
            }
            (_, None) => return Err(format!("line {number}: no case has begun")),
            ("=>", Some(case)) => case.expected.push(value),
            ("without", Some(case)) => {
                without.insert(value);
                case.end = number;
            }
            (_, Some(case)) => {
                case.input.push((key, value));
                case.end = number;
            }
        }
    }
    if let Some(case) = cases.last_mut() {
        fill(case, &defaults, &without);
    }
    Ok(cases)
}

/// Adds the defaults to a case whose lines are all read.
fn fill(case: &mut Case, defaults: &[(String, String)], without: &BTreeSet<String>) {
    let lacks = |key: &String| !without.contains(key) && case.get(key).is_none();
    let missing = defaults.iter().filter(|(key, _)| lacks(key));
    let missing: Vec<_> = missing.cloned().collect();
    case.input.splice(..0, missing);
}

/// Returns the text with these outcomes behind the inputs that end at these lines.
fn with_outcomes<'o>(text: &str, ends: impl Iterator<Item = (usize, &'o Vec<String>)>) -> String {
    let mut ends = ends.peekable();
    let mut written = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.starts_with("=> ") {
            written.push_str(line);
            written.push('\n');
        }
        if let Some((_, outcome)) = ends.next_if(|(end, _)| *end == number) {
            for line in outcome {
                let _ = writeln!(written, "=> {line}");
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Three cases.\ndefault model 1\n\n## numbers\n\n== one\n- a\n- b\n=> x\n\n== two\nmodel 2\n=> y\n=> z\n\n== three\nwithout model\n=> y\n";

    #[test]
    fn a_case_has_its_own_keys_and_the_defaults_that_it_lacks() {
        let cases = parse(TEXT).unwrap();
        let inputs = cases.iter().map(|case| case.input().collect::<Vec<_>>());
        let inputs: Vec<_> = inputs.collect();
        let one = vec![("model", "1"), ("-", "a"), ("-", "b")];
        assert_eq!(inputs, [one, vec![("model", "2")], vec![]]);
        assert_eq!(cases[1].expected, ["y", "z"]);
        assert_eq!(cases[1].name, "numbers: two");
        assert!(parse("== a\n== a\n").is_err());
        assert!(parse("model 1\n").is_err());
    }

    #[test]
    fn blessing_replaces_the_outcomes_and_nothing_else() {
        let cases = parse(TEXT).unwrap();
        let outcomes = [
            vec!["p".to_owned(), "q".to_owned()],
            vec![],
            vec!["y".to_owned()],
        ];
        let ends = cases.iter().map(|case| case.end).zip(&outcomes);
        let blessed = TEXT
            .replace("=> x", "=> p\n=> q")
            .replace("model 2\n=> y\n=> z\n", "model 2\n");
        assert_eq!(with_outcomes(TEXT, ends), blessed);
    }
}
