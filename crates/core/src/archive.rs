//! The archive: complete copies of the messages that were removed from a session's view.
//!
//! This module contains its types, its search and the tools that a model calls. The log remains the
//! source of truth and contains every message anyway. The archive is a searchable copy beside it
//! that may expire and that a run can do without.

mod bounds;
mod in_memory;
mod item;
mod key;
mod page;
mod search;
mod tools;
mod word_index;
mod words;

pub use bounds::ArchiveBounds;
pub(crate) use in_memory::InMemoryArchive;
pub use item::{ArchiveRow, ArchivedItem, ArchivedKind, Hit, RecalledItem, recall_text};
pub use key::{BadRecallId, MAX_KEY, RecallError, RecallId, RecallKey, resolve};
pub use page::{RECALL_MATCHES, TextExcerpt, matches, page};
pub use search::{MatchedTerm, SearchIndex, SearchItem, search};
pub use tools::{RECALL_PAGE, RECALL_PAGE_MAX, RecallTools, recall_tools};
pub use words::{
    BestMatch, INDEXED_BYTES, QUERY_BYTES, QUERY_TERMS, SNIPPET, SearchQuery, Term, snippet,
    spaced_words,
};
