//! [`Words`]: the sentences of a server that are not those of a row: refusals of rules that are code, failures,
//! and the codes of refusals.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::rules::fault::{Fault, SHAPE};

/// The sentences of a server, from the last groups of its file.
#[derive(Default)]
pub(crate) struct Words {
    /// The rules and the words of refusals by code.
    refusals: BTreeMap<&'static str, (&'static str, &'static str)>,
    failures: Vec<(&'static str, &'static str)>,
    codes: Vec<(&'static str, &'static str)>,
}

impl Words {
    /// Reads a line of a group. Returns `None` if it cannot be read.
    pub(super) fn line(&mut self, group: &str, line: &'static str) -> Option<()> {
        let (head, words) = line.split_once(" => ")?;
        match group {
            "failures" => self.failures.push((head, words)),
            "codes" => self.codes.push((words, head)),
            _ => {
                let (name, rule) = head.split_once(' ').unwrap_or((head, SHAPE));
                self.refusals.insert(name, (rule, words));
            }
        }
        Some(())
    }

    /// Returns a refusal of `[refusals]` with the values of its words.
    pub(crate) fn fault(
        &self,
        name: &'static str,
        place: impl Into<String>,
        values: &[&dyn Display],
    ) -> Fault {
        let place = place.into();
        let refusal = self.refusals.get(name).copied();
        let (rule, words) = refusal.unwrap_or((SHAPE, name));
        let value = |letter: &str| {
            let mut named = ["a", "b", "c", "d", "e", "f"].iter().zip(values);
            named.find_map(|(known, value)| (*known == letter).then(|| value.to_string()))
        };
        let words = filled(words, |name| match name {
            "place" => place.clone(),
            letter => value(letter).unwrap_or_default(),
        });
        Fault { rule, place, words }
    }

    /// Returns the type, the code and the message of a failure with this status.
    pub(crate) fn failure(
        &self,
        status: u16,
    ) -> (&'static str, Option<&'static str>, &'static str) {
        let status = status.to_string();
        let line = self.failures.iter().find_map(|(head, message)| {
            let mut head = head.split(' ');
            let pattern = head.next()?;
            let applies = match pattern.strip_suffix('*') {
                Some(beginning) => status.starts_with(beginning),
                None => pattern == status,
            };
            applies.then_some((head.next()?, head.next(), *message))
        });
        line.unwrap_or_default()
    }

    /// Returns the code of a refusal with these words.
    pub(crate) fn code(&self, words: &str) -> Option<&'static str> {
        let applies = |part: &str| match part.strip_prefix('^') {
            Some(beginning) => words.starts_with(beginning),
            None => words.contains(part),
        };
        let line = self.codes.iter().find(|(part, _)| applies(part));
        line.map(|(_, code)| *code)
    }

    /// Returns the status, the type, the code and the message of a failure with a name. If there is none for
    /// `name+case`, it is that of `name`.
    pub(crate) fn named(
        &self,
        name: &str,
        values: &[(&str, &dyn Display)],
    ) -> Option<(u16, &'static str, Option<&'static str>, String)> {
        let value = |key: &str| {
            let value = values.iter().find(|(known, _)| *known == key);
            value
                .map(|(_, value)| value.to_string())
                .unwrap_or_default()
        };
        let found = self.failures.iter().find_map(|(head, words)| {
            let mut head = head.strip_prefix(name)?.strip_prefix(' ')?.split(' ');
            let status = head.next()?.parse().ok()?;
            Some((status, head.next()?, head.next(), filled(words, value)))
        });
        found.or_else(|| self.named(name.split_once('+')?.0, values))
    }
}

/// Fills in the names in braces. Braces of patterns, which begin with a digit, stay.
pub(crate) fn filled(words: &str, value: impl Fn(&str) -> String) -> String {
    let mut text = String::with_capacity(words.len() * 2);
    let mut rest = words;
    while let Some((before, inner)) = rest.split_once('{') {
        let (name, after) = inner.split_once('}').unwrap_or((inner, ""));
        rest = after;
        text.push_str(before);
        match name {
            "newline" => text.push('\n'),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => {
                text.push_str(&format!("{{{name}}}"));
            }
            _ => text.push_str(&value(name)),
        }
    }
    text + rest
}
