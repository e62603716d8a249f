//! [`RecallId`], which names an archived item, [`RecallKey`], which a model or a person writes in
//! its place, and [`RecallError`]. A key that could mean two items means none.

use std::fmt;
use std::str::FromStr;

use plimsoll_context::Seq;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// A key is cut to so many bytes where it is shown; a longer one names nothing.
pub const MAX_KEY: usize = 512;

/// Names what left the view: `m` and its number in the session, `m12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecallId(pub Seq);

/// What is asked for: an id, or another name that must mean exactly one item of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallKey {
    /// The id itself.
    Id(RecallId),
    /// A bare number, which is an id without its letter, or the id of a tool call. Where they are
    /// of two items, it means neither.
    Named(String),
}

/// Why nothing is recalled.
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
    /// It was archived, and the archive has let go of it since.
    #[error(
        "expired: the archive no longer holds {0}; do again what gave it, for example call the tool again"
    )]
    Expired(
        /// What it was.
        RecallId,
    ),
    /// A call's id is not the id of one call only.
    #[error("`{asked}` may mean {}; ask for one of them by its own id", list(.candidates))]
    Ambiguous {
        /// The key.
        asked: String,
        /// The items that it may mean, 10 at most.
        candidates: Vec<RecallId>,
    },
    /// A search for nothing.
    #[error("the query has no word in it; give one or more words that the text has")]
    NoWords,
    /// The archive itself fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of something archived; they look like m12")]
pub struct BadRecallId(String);

/// Which of the items that a name may mean is meant. For stores: `candidates` are all items of
/// the session, held or expired, that the name fits, without repeats; `forgotten` says that there
/// were items of which not even that they expired is known any more, so that a call's id cannot
/// be told to be the only one.
///
/// # Errors
/// Where there is none, or more than one.
pub fn resolve(
    asked: &str,
    candidates: &[RecallId],
    forgotten: Forgotten,
) -> Result<RecallId, RecallError> {
    match (candidates, forgotten) {
        ([], _) => Err(RecallError::Unknown(shown(asked))),
        ([one], Forgotten::None) => Ok(*one),
        (several, _) => Err(RecallError::Ambiguous {
            asked: shown(asked),
            candidates: several.iter().copied().take(10).collect(),
        }),
    }
}

/// Whether an archive knows of all that was ever in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// It does.
    None,
    /// The oldest were forgotten.
    Some,
}

impl RecallKey {
    /// The number that it names, where it is an id or a bare number.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Id(id) => Some(id.0),
            Self::Named(name) => digits(name).map(Seq),
        }
    }
}

impl From<&str> for RecallKey {
    /// Reads what a model wrote: quotes and backticks around it are not part of it.
    fn from(text: &str) -> Self {
        let text = text.trim().trim_matches(['`', '"', '\'']);
        match text.parse() {
            Ok(id) => Self::Id(id),
            Err(BadRecallId(_)) => Self::Named(text.to_owned()),
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

    /// Reads `m12`, and `#12`, as people are shown it.
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

/// A number without sign, spaces or leading zeros.
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
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    match ids.as_slice() {
        [one] => format!("{one}, or something older that is forgotten"),
        ids => ids.join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_models_write_it() {
        let id = |number| RecallKey::Id(RecallId(Seq(number)));
        let named = |name: &str| RecallKey::Named(name.to_owned());
        let table = [
            ("m12", id(12)),
            ("#12", id(12)),
            (" `m12` ", id(12)),
            ("\"m0\"", id(0)),
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
        assert_eq!(RecallKey::from("12").seq(), Some(Seq(12)));
        assert_eq!(RecallKey::from("call_7").seq(), None);
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
        let ids = [RecallId(Seq(3)), RecallId(Seq(9))];
        assert_eq!(resolve("c1", &ids[..1], Forgotten::None).unwrap(), ids[0]);
        let said = resolve("c1", &ids, Forgotten::None)
            .unwrap_err()
            .to_string();
        assert_eq!(
            said,
            "`c1` may mean m3 or m9; ask for one of them by its own id"
        );
        let said = resolve("c1", &ids[..1], Forgotten::Some)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("m3, or something older that is forgotten"),
            "{said}"
        );
        assert!(matches!(
            resolve("c1", &[], Forgotten::None),
            Err(RecallError::Unknown(_))
        ));
    }

    #[test]
    fn a_giant_key_is_shown_in_part() {
        let giant = "é".repeat(10_000);
        let said = resolve(&giant, &[], Forgotten::None)
            .unwrap_err()
            .to_string();
        assert!(said.len() < 800, "{}", said.len());
        assert!(RecallKey::from(giant.as_str()).to_string().len() <= MAX_KEY);
    }
}
