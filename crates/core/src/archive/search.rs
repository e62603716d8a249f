//! Ranks the items that a search finds, with a cost that does not depend on the size of the
//! archive.
//!
//! A store only reports its newest items with certain terms ([`SearchIndex`]), so every store
//! returns the same hits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use crate::archive::item::{ArchivedKind, Hit};
use crate::archive::key::{RecallError, RecallId};
use crate::archive::words::{BestMatch, SearchQuery, Term};

/// Number of items that one search reads and ranks, unless more hits are requested.
const RANKED: usize = 64;
/// Maximum text that one search reads, in bytes. Later hits are returned unranked, with the
/// beginning of their text.
const RANKED_BYTES: usize = 1 << 20;
/// The newest items taken for each term if no item has all of them.
const TERM_ITEMS: usize = 128;

/// Maximum number of index words that prefixes may expand to, for all terms of a query together.
const PREFIX_WORDS: usize = 64;
/// The minimum for each term.
const PREFIX_WORDS_MIN: usize = 8;

/// A query term and the index words that its last word matches.
#[derive(Debug, Clone)]
pub struct MatchedTerm<'a> {
    /// The query term.
    pub term: &'a Term,
    /// The last word itself, or the index words that begin with it.
    pub last: Vec<String>,
}

/// An index of words over archived items.
pub trait SearchIndex {
    /// Key of an item. Newer items have greater keys.
    type Key: Copy + Ord;

    /// Returns at most `most` words of the index that begin with `prefix`, in byte order.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError>;

    /// Returns at most `most` items that have all of `terms`, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest(&self, terms: &[MatchedTerm<'_>], most: usize)
    -> Result<Vec<Self::Key>, RecallError>;

    /// Reads an item. Returns `None` if it has expired.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn item(&self, key: Self::Key) -> Result<Option<SearchItem>, RecallError>;
}

/// An item found by an index.
#[derive(Debug, Clone)]
pub struct SearchItem {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: ArchivedKind,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// The complete text.
    pub text: String,
}

/// Returns the best `limit` items: those with all terms of the query or, if there are none, those
/// with the most and the rarest terms. Ties are ordered by how close the terms are together, then
/// newest first.
///
/// # Errors
/// If the query has no word, or the store cannot be read.
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
        // If the index does not know the word, no item has it.
        if !last.is_empty() {
            terms.push(MatchedTerm { term, last });
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
    // A term scores higher if fewer items have it.
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

/// Reads the items and ranks them by the number of terms, then by how close these are together.
/// Equal items keep their order. Each candidate is a key and the number of its terms according to
/// the index.
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
        // A fork and its parent may both have archived the same item.
        let Some(item) = index.item(key)?.filter(|item| ids.insert(item.id)) else {
            continue;
        };
        // The index may match letters that `find` does not. Such a text is shown from its
        // beginning.
        let unread = BestMatch {
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
