//! [`ToolsError`]: the reasons why a toolbox cannot be created.
//!
//! Failed tool calls have another error type, `ToolError` of `core`, with a text for the model.

use std::io;
use std::path::PathBuf;

/// The reason why a toolbox cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// The directory does not exist, or cannot be read.
    #[error("cannot use {path} as the workspace root: {source}; name a folder that you may read", path = path.display())]
    Root {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No tool has this name.
    #[error("there is no tool `{name}`; {advice}")]
    UnknownTool {
        /// The name.
        name: String,
        /// A suggestion.
        advice: String,
    },
}
