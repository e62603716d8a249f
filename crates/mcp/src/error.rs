//! [`McpError`]: the reason why an MCP server is not available.
//!
//! Errors of tools are results, not errors of this type.

use std::fmt::Display;

use plimsoll_context::{Bytes, head_tail};

/// Maximum size of a server's own text in an error.
pub const MCP_ERROR_MAX: Bytes = Bytes(4 * 1024);

/// The reason why a server is not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` is not there: {why}")]
pub struct McpError {
    /// The server's name.
    pub server: String,
    /// The cause, with the server's last output.
    pub why: String,
}

/// Returns an error with all its causes, shortened to the limit.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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

/// Returns a text, shortened to the limit.
pub(crate) fn short(text: impl Display) -> String {
    let text = text.to_string();
    head_tail(&text, MCP_ERROR_MAX).unwrap_or(text)
}
