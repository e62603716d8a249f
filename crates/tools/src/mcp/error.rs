//! [`McpError`]: why a server of tools is not there. Not what a tool answers; that is a result,
//! good or bad.

use std::fmt::Display;

use plimsoll_context::{Bytes, head_tail};

/// What is told of a server's own words when something went wrong, at most.
pub const MCP_ERROR_MAX: Bytes = Bytes(4 * 1024);

/// Why a server is not there.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// It could not be started or reached, or would not begin.
    #[error("the MCP server `{server}` is not there: {why}")]
    Absent {
        /// Its name.
        server: String,
        /// What happened, with its last words.
        why: String,
    },
    /// It was not ready in time.
    #[error(
        "the MCP server `{server}` was not ready within {secs} s{words}; set `timeout` to wait longer"
    )]
    Late {
        /// Its name.
        server: String,
        /// How long it was waited for.
        secs: f32,
        /// Its last words, if it had any.
        words: String,
    },
    /// It has ended so often that it is left alone for a while.
    #[error(
        "the MCP server `{server}` has ended {times} times without an answer; it is started again by a \
         call in {secs} s or later. The last time: {why}"
    )]
    Resting {
        /// Its name.
        server: String,
        /// How often.
        times: u32,
        /// How long it rests.
        secs: u64,
        /// What happened last.
        why: String,
    },
}

/// An error with all that caused it, in bounds.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    short(text)
}

/// A text in bounds.
pub(super) fn short(text: impl Display) -> String {
    let text = text.to_string();
    head_tail(&text, MCP_ERROR_MAX).unwrap_or(text)
}
