//! [`ToolsError`]: why a toolbox cannot be made. Not why a tool call fails; that is a text for
//! the model, `ToolError` of `core`.

use std::io;
use std::path::PathBuf;

/// Why a toolbox cannot be made as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// There is no such folder, or it may not be read.
    #[error("cannot use {path} as the workspace root: {source}; name a folder that you may read", path = path.display())]
    Root {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No tool has this name.
    #[error("there is no tool `{name}`; {advice}")]
    UnknownTool {
        /// The name.
        name: String,
        /// What to write instead.
        advice: String,
    },
}
