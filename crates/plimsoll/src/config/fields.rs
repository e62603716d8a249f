//! [`Field`]: a setting within a table of its own, such as `[[mcp]]` or `[providers.NAME]`. The
//! keys of an agent are in `keys/`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_context::nearest;

use super::document::{Table, WrittenValue};
use super::fault::Faults;
use super::kind::{text, texts, time};

/// One setting of such a table.
#[derive(Debug)]
pub struct Field {
    /// The name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: FieldKind,
    /// The description, in one line.
    pub doc: &'static str,
}

/// Creates a field.
pub(crate) const fn field(name: &'static str, kind: FieldKind, doc: &'static str) -> Field {
    Field { name, kind, doc }
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// True or false.
    Flag,
    /// A text.
    Text,
    /// A text or a list of them.
    Texts,
    /// Texts by name.
    Map,
    /// A time above zero.
    Time,
    /// A whole number, 1 or more.
    Whole,
    /// One of these names.
    Choice(&'static [&'static str]),
}

/// A field's value.
#[derive(Debug, Clone, PartialEq)]
enum FieldValue {
    Flag(bool),
    Texts(Vec<String>),
    Map(Vec<(String, String)>),
    Time(Duration),
    Whole(u64),
}

/// The parsed fields of one table.
#[derive(Debug)]
pub(crate) struct Fields {
    /// The first line of the table.
    pub(crate) line: usize,
    values: BTreeMap<&'static str, (FieldValue, usize)>,
    /// Fields whose values are invalid and have been reported.
    failed: Vec<&'static str>,
}

impl Fields {
    /// Parses a table. `place` is its name in faults, such as `[[mcp]]`.
    pub(crate) fn read(
        fields: &'static [Field],
        place: &str,
        line: usize,
        given: WrittenValue,
        faults: &mut Faults,
    ) -> Self {
        let mut read = Self {
            line,
            values: BTreeMap::new(),
            failed: Vec::new(),
        };
        let WrittenValue::Table(Table(entries)) = given else {
            faults.at(
                line,
                format!("{place} is {given}; give a table of settings"),
            );
            return read;
        };
        for entry in entries {
            let Some(field) = fields.iter().find(|field| field.name == entry.key) else {
                let names = || fields.iter().map(|field| field.name);
                let near = nearest(&entry.key, names());
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                let known: Vec<&str> = names().collect();
                let known = known.join(", ");
                let text = format!(
                    "there is no `{}` in {place}; {near}known are: {known}",
                    entry.key
                );
                faults.at(entry.line, text);
                continue;
            };
            let Some(value) = field.kind.read(&entry.node.value) else {
                read.failed.push(field.name);
                let expected = field.kind.expects();
                // The value of a field that holds a key is never printed.
                let text = if field.kind == FieldKind::Map || field.name == "api_key" {
                    format!("`{}` is wrong; give {expected}", entry.key)
                } else {
                    format!("`{}` is {}; give {expected}", entry.key, entry.node.value)
                };
                faults.at(entry.line, text);
                continue;
            };
            read.values.insert(field.name, (value, entry.line));
        }
        read
    }

    /// Returns the line of a field, or else that of its table.
    pub(crate) fn line_of(&self, name: &str) -> usize {
        self.values.get(name).map_or(self.line, |(_, line)| *line)
    }

    /// Returns `true` if a field is present and invalid.
    pub(crate) fn failed(&self, name: &str) -> bool {
        self.failed.contains(&name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.texts(name)?.into_iter().next()
    }

    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        match self.values.get(name) {
            Some((FieldValue::Texts(texts), _)) => Some(texts.clone()),
            _ => None,
        }
    }

    pub(crate) fn map(&self, name: &str) -> Vec<(String, String)> {
        match self.values.get(name) {
            Some((FieldValue::Map(map), _)) => map.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        match self.values.get(name) {
            Some((FieldValue::Time(time), _)) => Some(*time),
            _ => None,
        }
    }

    pub(crate) fn whole(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some((FieldValue::Whole(whole), _)) => Some(*whole),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name) {
            Some((FieldValue::Flag(flag), _)) => Some(*flag),
            _ => None,
        }
    }
}

impl FieldKind {
    fn read(self, given: &WrittenValue) -> Option<FieldValue> {
        match self {
            Self::Flag => match given {
                WrittenValue::Flag(flag) => Some(FieldValue::Flag(*flag)),
                _ => None,
            },
            Self::Text => text(given)
                .filter(|text| !text.trim().is_empty())
                .map(|text| FieldValue::Texts(vec![text])),
            Self::Texts => texts(given).map(FieldValue::Texts),
            Self::Map => {
                let WrittenValue::Table(Table(entries)) = given else {
                    return None;
                };
                let map = entries
                    .iter()
                    .map(|entry| Some((entry.key.clone(), text(&entry.node.value)?)));
                map.collect::<Option<_>>().map(FieldValue::Map)
            }
            Self::Time => time(given).map(FieldValue::Time),
            Self::Whole => match given {
                WrittenValue::Whole(Some(whole @ 1..)) => {
                    u64::try_from(*whole).ok().map(FieldValue::Whole)
                }
                _ => None,
            },
            Self::Choice(names) => {
                let name = text(given)?;
                names
                    .contains(&name.as_str())
                    .then_some(FieldValue::Texts(vec![name]))
            }
        }
    }

    /// Describes the expected value.
    #[must_use]
    pub fn expects(self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Texts => "a text, or a list of texts".to_owned(),
            Self::Map => "a table of texts".to_owned(),
            Self::Whole => "a whole number, 1 or more".to_owned(),
            Self::Time => "seconds, or a text such as \"10s\"; more than 0".to_owned(),
            Self::Choice(names) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                format!("one of {}", quoted.join(", "))
            }
        }
    }
}
