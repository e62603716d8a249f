//! [`RecallId`], the id of an archived item, [`RecallKey`], the name that a model or a user writes
//! for it, and [`RecallError`]. An ambiguous key is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use plimsoll_context::Seq;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// Maximum length of a displayed key in bytes. Longer keys are cut.
pub const MAX_KEY: usize = 512;

/// Id of an archived item: `m` followed by its sequence number in the session, for example `m12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecallId(pub Seq);

/// The requested item: an id, or another name that must match exactly one item of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallKey {
    /// The number of an item, written `#12`.
    Id(RecallId),
    /// The number of an item (`m12` or `12`) or the id of a tool call. Matches nothing if these are
    /// two different items.
    Named(String),
}

/// Why nothing was recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// No item of this session has that name.
    #[error(
        "nothing of this session is archived as `{0}`; ids look like m12 and stand where something left, and recall_search finds what left by its words"
    )]
    Unknown(
        /// The key.
        String,
    ),
    /// The item was archived but has expired.
    #[error(
        "expired: the archive no longer holds {0}; do again what gave it, for example call the tool again"
    )]
    Expired(
        /// The expired item.
        RecallId,
    ),
    /// The key is the id of several calls, or of a call and the number of another item.
    #[error("`{key}` is ambiguous: it may mean item {}; write it like that", list(.candidates))]
    Ambiguous {
        /// The key.
        key: String,
        /// The items that match the key, at most 10.
        candidates: Vec<RecallId>,
    },
    /// The query contains no word.
    #[error("the query has no word in it; give one or more words that the text has")]
    NoWords,
    /// The archive itself fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The error if a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of something archived; they look like m12")]
pub struct BadRecallId(String);

/// Resolves a name to an item, for stores.
///
/// `number` is the item with that number, if it exists or has existed. `calls` are the items with
/// that call id, each with a flag for whether it is still held. Expired items are ignored if
/// another one is still held.
///
/// # Errors
/// If no item matches, or more than one.
pub fn resolve(
    key: &str,
    number: Option<RecallId>,
    calls: &BTreeMap<RecallId, bool>,
) -> Result<RecallId, RecallError> {
    let held = calls.iter().filter(|(_, is_held)| **is_held);
    let mut candidates: Vec<RecallId> = held.map(|(id, _)| *id).collect();
    if candidates.is_empty() {
        candidates.extend(calls.keys().next_back());
    }
    candidates.extend(number);
    candidates.sort_unstable();
    candidates.dedup();
    match candidates.as_slice() {
        [] => Err(RecallError::Unknown(shown(key))),
        [one] => Ok(*one),
        several => Err(RecallError::Ambiguous {
            key: shown(key),
            candidates: several.iter().copied().take(10).collect(),
        }),
    }
}

impl RecallKey {
    /// Returns the sequence number that the key may stand for.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Id(id) => Some(id.0),
            Self::Named(name) => digits(name.strip_prefix('m').unwrap_or(name)).map(Seq),
        }
    }
}

impl From<&str> for RecallKey {
    /// Parses a key as written by a model. Removes surrounding quotes and backticks.
    fn from(text: &str) -> Self {
        let text = text.trim().trim_matches(['`', '"', '\'']);
        match text.parse() {
            Ok(id) if text.starts_with('#') => Self::Id(id),
            _ => Self::Named(text.to_owned()),
        }
    }
}

impl From<RecallId> for RecallKey {
    fn from(id: RecallId) -> Self {
        Self::Id(id)
    }
}

impl fmt::Display for RecallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Named(name) => f.write_str(&shown(name)),
        }
    }
}

impl FromStr for RecallId {
    type Err = BadRecallId;

    /// Parses `m12` and `#12`.
    fn from_str(text: &str) -> Result<Self, BadRecallId> {
        text.strip_prefix(['m', '#'])
            .and_then(digits)
            .map(|number| Self(Seq(number)))
            .ok_or_else(|| BadRecallId(shown(text)))
    }
}

impl TryFrom<String> for RecallId {
    type Error = BadRecallId;
    fn try_from(text: String) -> Result<Self, BadRecallId> {
        text.parse()
    }
}

impl From<RecallId> for String {
    fn from(id: RecallId) -> Self {
        id.to_string()
    }
}

impl From<Seq> for RecallId {
    fn from(seq: Seq) -> Self {
        Self(seq)
    }
}

impl fmt::Display for RecallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0.0)
    }
}

/// Parses a number without sign, spaces or leading zeros.
fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    (plain && !padded).then(|| text.parse().ok())?
}

fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_KEY);
    text.get(..end).unwrap_or_default().to_owned()
}

fn list(ids: &[RecallId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{}", id.0.0)).collect();
    ids.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_models_write_it() {
        let id = |number| RecallKey::Id(RecallId(Seq(number)));
        let named = |name: &str| RecallKey::Named(name.to_owned());
        let table = [
            ("m12", named("m12")),
            ("#12", id(12)),
            (" `m12` ", named("m12")),
            (" `#12` ", id(12)),
            ("\"m0\"", named("m0")),
            ("12", named("12")),
            ("m012", named("m012")),
            ("m-1", named("m-1")),
            ("m", named("m")),
            ("", named("")),
            ("call_7", named("call_7")),
            ("m99999999999999999999", named("m99999999999999999999")),
            ("m１２", named("m１２")),
        ];
        for (text, key) in table {
            assert_eq!(RecallKey::from(text), key, "{text:?}");
        }
        for text in ["12", "m12", "#12"] {
            assert_eq!(RecallKey::from(text).seq(), Some(Seq(12)), "{text}");
        }
        for text in ["call_7", "m", "m012", "mm1", "m#1"] {
            assert_eq!(RecallKey::from(text).seq(), None, "{text}");
        }
    }

    #[test]
    fn an_id_survives_json() {
        let id = RecallId(Seq(12));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"m12\"");
        assert_eq!(serde_json::from_str::<RecallId>("\"m12\"").unwrap(), id);
        assert!(serde_json::from_str::<RecallId>("\"12\"").is_err());
    }

    #[test]
    fn a_name_of_two_items_means_none_and_names_both() {
        let id = |number| RecallId(Seq(number));
        let calls = |of: &[(u64, bool)]| of.iter().map(|(seq, held)| (id(*seq), *held)).collect();
        let meant = |number: Option<u64>, of: &[(u64, bool)]| {
            let meant = resolve("m3", number.map(id), &calls(of));
            meant.map_err(|error| error.to_string())
        };
        let ambiguous = |items: &str| {
            Err(format!(
                "`m3` is ambiguous: it may mean item {items}; write it like that"
            ))
        };
        assert_eq!(meant(Some(3), &[]), Ok(id(3)));
        assert_eq!(meant(Some(3), &[(3, true)]), Ok(id(3)));
        assert_eq!(meant(None, &[(9, true)]), Ok(id(9)));
        assert_eq!(meant(Some(3), &[(9, true)]), ambiguous("#3 or #9"));
        assert_eq!(meant(None, &[(5, true), (9, true)]), ambiguous("#5 or #9"));
        // An expired item is ignored if another one is held.
        assert_eq!(meant(None, &[(5, false), (9, true)]), Ok(id(9)));
        assert_eq!(meant(None, &[(5, true), (9, false)]), Ok(id(5)));
        assert_eq!(meant(None, &[(5, false), (9, false)]), Ok(id(9)));
        assert!(matches!(
            resolve("m3", None, &BTreeMap::new()),
            Err(RecallError::Unknown(_))
        ));
    }

    #[test]
    fn a_giant_key_is_shown_in_part() {
        let giant = "é".repeat(10_000);
        let said = resolve(&giant, None, &BTreeMap::new())
            .unwrap_err()
            .to_string();
        assert!(said.len() < 800, "{}", said.len());
        assert!(RecallKey::from(giant.as_str()).to_string().len() <= MAX_KEY);
    }
}
