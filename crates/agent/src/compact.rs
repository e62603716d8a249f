//! [`RequestedCompaction`]: a compaction that the user asks for between two runs.
//!
//! The policy plans down to its target at once, regardless of the trigger. The plan is recorded,
//! archived and reported like any other.

use std::sync::Arc;

/// Maximum size of the focus of a summary, in bytes. The focus is part of every request to the summary
/// model.
pub const MAX_FOCUS: usize = 2_000;

/// The reason why nothing can be compacted now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A run is in progress.
    #[error("a run is in progress and compacts by itself; interrupt it first")]
    Running,
    /// The focus is too long.
    #[error("the focus has {bytes} bytes; the limit is {MAX_FOCUS}")]
    Focus {
        /// The length of the focus in bytes.
        bytes: usize,
    },
}

/// A requested compaction in progress.
#[derive(Debug, Default)]
pub(crate) struct RequestedCompaction {
    /// The focus: information that the summary must keep above all.
    pub(crate) focus: Option<Arc<str>>,
}

impl RequestedCompaction {
    /// Returns the system prompt of the summary model.
    pub(crate) fn prompt(&self, prompt: &str) -> Arc<str> {
        match &self.focus {
            Some(focus) => format!(
                "{}\n\nThe user has asked for this summary and wants it to keep above all: {focus}",
                prompt.trim_end()
            )
            .into(),
            None => prompt.into(),
        }
    }
}
