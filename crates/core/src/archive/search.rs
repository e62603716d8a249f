//! Ranks the items that a search finds, within bounds that do not depend on the archive's size.
//!
//! A store only answers which of its newest items have some terms ([`SearchIndex`]), so every store
//! returns the same hits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::archive::item::{Hit, Kind};
use crate::archive::key::{RecallError, RecallId};
use crate::archive::words::{Found, SearchQuery, Term};

/// Items that are read and ranked in one search, unless more hits are asked for.
const RANKED: usize = 64;
/// Text that is read in one search. Hits beyond it are returned unranked, with the beginning of
/// their text.
const RANKED_BYTES: usize = 1 << 20;
/// The newest items that one term alone contributes if no item has all of them.
const TERM_ITEMS: usize = 128;

/// Longer words that the last words of a query stand for, all its terms together.
const PREFIX_WORDS: usize = 64;
/// And of one term at least.
const PREFIX_WORDS_MIN: usize = 8;

/// A term of a query, and the words of the index that its last word stands for.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The term.
    pub term: &'a Term,
    /// The word itself, or those that begin with it.
    pub last: Vec<String>,
}

/// An index of words over archived items.
pub trait SearchIndex {
    /// Names one item. A newer item has a greater key.
    type Key: Copy + Ord;

    /// Returns words of the index that begin with `prefix`, in the order of their bytes, at most
    /// `most`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError>;

    /// Returns the newest items that have all of `terms`, the newest first, at most `most`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest(&self, terms: &[Wanted<'_>], most: usize) -> Result<Vec<Self::Key>, RecallError>;

    /// Reads an item. Returns `None` if it has expired.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn item(&self, key: Self::Key) -> Result<Option<SearchItem>, RecallError>;
}

/// An item that an index has found.
#[derive(Debug, Clone)]
pub struct SearchItem {
    /// Its id.
    pub id: RecallId,
    /// Whose words it is.
    pub kind: Kind,
    /// The tool, if it is a result.
    pub tool: Option<String>,
    /// Its whole text.
    pub text: String,
}

/// Returns the best `limit` items: those with all terms of the query or, if there are none, those
/// with the most and the rarest of them. Among equals the one whose terms stand closest together
/// comes first, then the newest.
///
/// # Errors
/// If the query has no word, or if the store cannot be read.
pub fn search<I: SearchIndex>(
    index: &I,
    query: &str,
    limit: usize,
) -> Result<Vec<Hit>, RecallError> {
    let query = SearchQuery::parse(query).ok_or(RecallError::NoWords)?;
    let all = query.terms().len();
    let prefix_words = (PREFIX_WORDS / all).max(PREFIX_WORDS_MIN);
    let mut terms = Vec::new();
    for term in query.terms() {
        let last = match term.words.last() {
            Some(prefix) if term.open => index.words(prefix, prefix_words)?,
            last => last.cloned().into_iter().collect(),
        };
        // The archive has no item with a word that it does not know.
        if !last.is_empty() {
            terms.push(Wanted { term, last });
        }
    }
    let ranked = RANKED.max(limit);
    if terms.len() == all {
        let keys = index.newest(&terms, ranked)?;
        let keys = keys.into_iter().map(|key| (key, all)).collect();
        let hits = read(index, &query, keys, limit)?;
        if !hits.is_empty() {
            return Ok(hits);
        }
    }
    // Each term counts for more the fewer items have it.
    let mut scores: BTreeMap<I::Key, (usize, usize)> = BTreeMap::new();
    for term in &terms {
        let keys = index.newest(std::slice::from_ref(term), TERM_ITEMS)?;
        let score = TERM_ITEMS / keys.len().max(1);
        for key in keys {
            let (had, terms) = scores.entry(key).or_default();
            (*had, *terms) = (*had + score, *terms + 1);
        }
    }
    let mut some: Vec<(I::Key, (usize, usize))> = scores.into_iter().collect();
    some.sort_by_key(|(key, (score, _))| (Reverse(*score), Reverse(*key)));
    some.truncate(ranked);
    let some = some.into_iter().map(|(key, (_, terms))| (key, terms));
    read(index, &query, some.collect(), limit)
}

/// Reads the items and ranks them: the most terms first, then the closest together. Equal ones stay
/// in the order in which they came. `candidates` are keys, each with the number of terms that the
/// index knows it has.
fn read<I: SearchIndex>(
    index: &I,
    query: &SearchQuery,
    candidates: Vec<(I::Key, usize)>,
    limit: usize,
) -> Result<Vec<Hit>, RecallError> {
    let mut hits: Vec<(usize, Hit)> = Vec::new();
    let mut ids = HashSet::new();
    let mut bytes = 0;
    for (key, terms) in candidates {
        if bytes >= RANKED_BYTES && hits.len() >= limit {
            break;
        }
        // A fork may have archived an item that its parent has archived too.
        let Some(item) = index.item(key)?.filter(|item| ids.insert(item.id)) else {
            continue;
        };
        // The index folds a few letters that we do not: such a text is shown from its beginning.
        let unread = Found {
            terms,
            together: 0,
            at: 0,
        };
        let found = if bytes < RANKED_BYTES {
            query.find(&item.text).unwrap_or(unread)
        } else {
            unread
        };
        bytes = bytes.saturating_add(item.text.len());
        let hit = Hit::new(item.id, item.kind, item.tool, &item.text, found);
        hits.push((found.together, hit));
    }
    hits.sort_by_key(|(together, hit)| Reverse((hit.terms, *together)));
    Ok(hits.into_iter().map(|(_, hit)| hit).take(limit).collect())
}
