//! Recall: reads messages that were removed from a session's view, or shortened in it.
//!
//! They are read from the log, which contains every message whole. This module contains the messages
//! of a log, their ids, and the search for words. `recall_tools.rs` has the tools that a model calls.

mod item;
mod log_messages;
mod page;
mod scan;
mod search;

pub use item::{Hit, MAX_KEY, MessageKind, RecallError, RecallId, RecalledItem, recall_text};
pub use log_messages::LogMessages;
pub use page::{RECALL_MATCHES, TextExcerpt, matches, page};
pub use scan::scan;
pub use search::{
    BestMatch, QUERY_BYTES, QUERY_TERMS, SEARCHED_BYTES, SNIPPET, SearchQuery, Term, snippet,
    spaced_words,
};
