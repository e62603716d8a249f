//! The archive: what has left a session's view, whole, so that it can be had back. These are its
//! types, the words it is searched by, and the tools that a model calls.
//!
//! Not the log, which is the truth and has everything anyway: the archive is a copy beside it that
//! can be searched, that may expire, and that a run can do without.

mod bounds;
mod item;
mod key;
mod page;
mod search;
mod shelf;
mod tools;
mod word_index;
mod words;

pub use bounds::ArchiveBounds;
pub use item::{ArchiveRow, Archived, Hit, Kind, Recalled, recall_text};
pub use key::{BadRecallId, MAX_KEY, RecallError, RecallId, RecallKey, resolve};
pub use page::{Piece, RECALL_MATCHES, matches, page};
pub use search::{SearchIndex, SearchItem, Wanted, search};
pub(crate) use shelf::Shelf;
pub use tools::{RECALL_PAGE, RECALL_PAGE_MAX, RecallTools, recall_tools};
pub use words::{
    Found, INDEXED_BYTES, QUERY_BYTES, QUERY_TERMS, SNIPPET, SearchQuery, Term, snippet,
    spaced_words,
};
