//! The archive of a session: its evicted messages, which can be searched and recalled.
//!
//! A session with a store has an archive, and its agent has tools to search it and to recall from
//! it. [`ArchiveBounds`] limits the size and the age of the archived messages.

pub use plimsoll_core::archive::*;
pub use plimsoll_core::{Archive, RECALL_LEAST_WINDOW};
