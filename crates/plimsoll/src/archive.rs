//! The archive of a session: all that has left its view, to be searched and recalled.
//!
//! A session that has a store has an archive, and its agent has tools to search it and to recall from it.
//! [`ArchiveBounds`] says how much is kept and for how long.

pub use plimsoll_core::archive::*;
pub use plimsoll_core::{Archive, RECALL_LEAST_WINDOW};
