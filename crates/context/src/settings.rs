//! [`Settings`]: one table of a configuration, read key by key: by any of a key's names, each fault
//! collected, so that all are said at once. Not any one configuration; that is a type of its own.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::tokens::{Ppm, Tokens};

/// Names further away than this from what was written are no suggestion.
const MAX_DISTANCE: usize = 3;

/// A value as a configuration has it, whatever its format.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// Nothing: JSON's null.
    Nothing,
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Fraction(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Given>),
    /// A table, in the order in which it is written; a key may stand in it twice.
    Table(Vec<(String, Given)>),
}

/// One table of a configuration while it is read.
#[derive(Debug)]
pub struct Settings {
    place: String,
    entries: Vec<(String, Given)>,
    known: Vec<&'static str>,
    faults: Vec<String>,
    warnings: Vec<String>,
}

/// What is wrong with a configuration: all of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct SettingsError(
    /// One sentence a fault.
    pub Vec<String>,
);

/// What was read, and what to tell whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What was read.
    pub value: T,
    /// Keys that are still read but have a better name, and settings without effect.
    pub warnings: Vec<String>,
}

impl Settings {
    /// The table at `place` (`[context]`, say), which faults name.
    #[must_use]
    pub fn new(place: impl Into<String>, given: Given) -> Self {
        let mut settings = Self {
            place: place.into(),
            entries: Vec::new(),
            known: Vec::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        match given {
            Given::Table(entries) => settings.entries = entries,
            other => {
                let place = &settings.place;
                let fault = format!("{place} is {other}; give a table of settings");
                settings.faults.push(fault);
            }
        }
        settings
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Takes the setting of these names, of which the first is ours: how it was written, and its
    /// value. Two of them are a fault. Names are in snake case; camel case is read as well.
    pub fn take(&mut self, names: &[&'static str]) -> Option<(String, Given)> {
        self.known.extend(names);
        let is_it = |key: &str| names.contains(&snake(key).as_str());
        let (found, rest) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|(key, _)| is_it(key));
        self.entries = rest;
        let found: Vec<(String, Given)> = found;
        if let [(first, _), (second, _), ..] = found.as_slice() {
            self.both(&format!("`{first}`"), &format!("`{second}`"));
        }
        found.into_iter().next()
    }

    /// Takes a whole number from 0.
    pub fn whole(&mut self, names: &[&'static str]) -> Option<u64> {
        let (key, given) = self.take(names)?;
        let whole = match given {
            Given::Whole(whole) => u64::try_from(whole).ok(),
            _ => None,
        };
        if whole.is_none() {
            self.wrong(&key, &given, "a whole number from 0");
        }
        whole
    }

    /// Takes a number of tokens.
    pub fn tokens(&mut self, names: &[&'static str]) -> Option<Tokens> {
        self.whole(names).map(Tokens)
    }

    /// Takes a whole number that counts things.
    pub fn count(&mut self, names: &[&'static str]) -> Option<usize> {
        let whole = self.whole(names)?;
        Some(usize::try_from(whole).unwrap_or(usize::MAX))
    }

    /// Takes a fraction of 1, which is from here on parts per million.
    pub fn fraction(&mut self, names: &[&'static str]) -> Option<Ppm> {
        let (key, given) = self.take(names)?;
        let fraction = match given {
            Given::Fraction(fraction) => Ppm::from_fraction(fraction),
            Given::Whole(0) => Some(Ppm(0)),
            Given::Whole(1) => Some(Ppm::ONE),
            _ => None,
        };
        if fraction.is_none() {
            self.wrong(&key, &given, "a fraction from 0 to 1, such as 0.9");
        }
        fraction
    }

    /// Takes true or false.
    pub fn flag(&mut self, names: &[&'static str]) -> Option<bool> {
        let (key, given) = self.take(names)?;
        if let Given::Flag(flag) = given {
            return Some(flag);
        }
        self.wrong(&key, &given, "true or false");
        None
    }

    /// Takes a table within this one. Hand it back to [`Settings::absorb`] when it is read.
    pub fn table(&mut self, names: &[&'static str]) -> Option<Settings> {
        let (key, given) = self.take(names)?;
        let outer = self.place.trim_matches(['[', ']']);
        let place = match outer.is_empty() {
            true => format!("[{key}]"),
            false => format!("[{outer}.{key}]"),
        };
        Some(Self::new(place, given))
    }

    /// Takes over what is wrong in a table within this one, its unknown keys too.
    pub fn absorb(&mut self, inner: Settings) {
        let (faults, warnings) = inner.close();
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }

    /// Notes that a value is not what it should be.
    pub fn wrong(&mut self, key: &str, given: &Given, expected: &str) {
        let place = self.at();
        self.fault(format!("`{key}`{place} is {given}; give {expected}"));
    }

    /// Notes that one thing is set twice; both are named with where they stand.
    pub fn both(&mut self, first: &str, second: &str) {
        let place = self.at();
        self.fault(format!(
            "{first} and {second}{place} are two settings of one thing; keep the one you mean"
        ));
    }

    /// Notes a fault.
    pub fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    /// Notes something to tell whoever wrote it.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// What was read, unless something is wrong: a key that nobody asked for is.
    ///
    /// # Errors
    /// Every fault.
    pub fn finish<T>(self, value: T) -> Result<Loaded<T>, SettingsError> {
        let (faults, warnings) = self.close();
        match faults.is_empty() {
            true => Ok(Loaded { value, warnings }),
            false => Err(SettingsError(faults)),
        }
    }

    fn close(mut self) -> (Vec<String>, Vec<String>) {
        for (key, _) in std::mem::take(&mut self.entries) {
            let known = self.known.join(", ");
            let near = nearest(&key, self.known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let place = self.at();
            self.fault(format!(
                "there is no `{key}`{place}; {near}known are: {known}"
            ));
        }
        (self.faults, self.warnings)
    }

    fn at(&self) -> String {
        match self.place.is_empty() {
            true => String::new(),
            false => format!(" in {}", self.place),
        }
    }
}

/// The name that is most like the one given, if any is near.
#[must_use]
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = snake(given);
    let near = names
        .into_iter()
        .map(|name| (strsim::levenshtein(&given, name), name));
    near.filter(|(distance, name)| *distance <= MAX_DISTANCE.min(name.len() / 2))
        .min()
        .map(|(_, name)| name)
}

/// `maxContextTokens` as `max_context_tokens`.
fn snake(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(match c {
            '-' => '_',
            c => c.to_ascii_lowercase(),
        });
    }
    snake
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(whole) => whole.fmt(f),
            Self::Fraction(fraction) => fraction.fmt(f),
            Self::Text(text) => write!(f, "{:?}", crate::truncate::clip(text, crate::Bytes(64))),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a setting")
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Given, E> {
        Ok(Given::Flag(flag))
    }
    fn visit_i64<E>(self, whole: i64) -> Result<Given, E> {
        Ok(Given::Whole(whole.into()))
    }
    fn visit_u64<E>(self, whole: u64) -> Result<Given, E> {
        Ok(Given::Whole(whole.into()))
    }
    fn visit_f64<E>(self, fraction: f64) -> Result<Given, E> {
        Ok(Given::Fraction(fraction))
    }
    fn visit_str<E>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Given, E> {
        Ok(Given::Nothing)
    }
    fn visit_none<E>(self) -> Result<Given, E> {
        Ok(Given::Nothing)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Given, D::Error> {
        Given::deserialize(deserializer)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Given, A::Error> {
        let mut given = Vec::new();
        while let Some(item) = list.next_element()? {
            given.push(item);
        }
        Ok(Given::List(given))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        let mut given = Vec::new();
        while let Some(entry) = map.next_entry()? {
            given.push(entry);
        }
        Ok(Given::Table(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> Settings {
        Settings::new("[x]", serde_json::from_str(json).unwrap())
    }

    fn faults(settings: Settings) -> Vec<String> {
        settings.finish(()).unwrap_err().0
    }

    #[test]
    fn a_key_is_read_by_any_of_its_names() {
        for json in [
            r#"{"max_turns": 3}"#,
            r#"{"maxTurns": 3}"#,
            r#"{"max-turns": 3}"#,
            r#"{"max_steps": 3}"#,
            r#"{"maxSteps": 3}"#,
        ] {
            let mut settings = settings(json);
            assert_eq!(
                settings.whole(&["max_turns", "max_steps"]),
                Some(3),
                "{json}"
            );
            assert!(settings.finish(()).is_ok());
        }
    }

    #[test]
    fn two_names_of_one_thing_and_all_other_faults_are_said_at_once() {
        let mut settings =
            settings(r#"{"max_turns": 3, "maxSteps": 4, "pct": 1.5, "on": "yes", "pctt": 1}"#);
        settings.whole(&["max_turns", "max_steps"]);
        settings.fraction(&["pct"]);
        settings.flag(&["on"]);
        assert_eq!(
            faults(settings),
            [
                "`max_turns` and `maxSteps` in [x] are two settings of one thing; keep the one you mean",
                "`pct` in [x] is 1.5; give a fraction from 0 to 1, such as 0.9",
                "`on` in [x] is \"yes\"; give true or false",
                "there is no `pctt` in [x]; did you mean `pct`? known are: max_turns, max_steps, pct, on",
            ]
        );
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for (json, key) in [
            ("-1", "whole"),
            ("1.5", "whole"),
            ("\"3\"", "whole"),
            ("null", "whole"),
            ("-0.1", "fraction"),
            ("1.01", "fraction"),
            ("2", "fraction"),
            ("[0.5]", "fraction"),
        ] {
            let mut settings = settings(&format!("{{\"k\": {json}}}"));
            let read = match key {
                "whole" => settings.whole(&["k"]),
                _ => settings.fraction(&["k"]).map(|ppm| ppm.0),
            };
            assert_eq!(read, None, "{json}");
            assert_eq!(faults(settings).len(), 1, "{json}");
        }
        for nan in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let given = Given::Table(vec![("k".to_owned(), Given::Fraction(nan))]);
            let mut settings = Settings::new("", given);
            assert_eq!(settings.fraction(&["k"]), None);
            assert!(faults(settings)[0].starts_with("`k` is "));
        }
    }

    #[test]
    fn tables_within_name_their_place() {
        let mut outer = settings(r#"{"inner": {"a": -1}, "other": 3}"#);
        let mut inner = outer.table(&["inner"]).unwrap();
        inner.whole(&["a"]);
        outer.absorb(inner);
        let other = outer.table(&["other"]).unwrap();
        outer.absorb(other);
        assert_eq!(
            faults(outer),
            [
                "`a` in [x.inner] is -1; give a whole number from 0",
                "[x.other] is 3; give a table of settings"
            ]
        );
    }
}
