//! [`FileEdit`]: the record of a change that a tool is about to make to a file.

use std::path::PathBuf;

use plimsoll_context::{Bytes, CallId};

/// Maximum size of a stored file, before or after a change.
pub const MAX_KEPT_FILE: Bytes = Bytes(16 * 1024 * 1024);

/// The complete contents of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The tool call that makes the change; `None` if a user restores the file.
    pub call: Option<CallId>,
    /// The workspace root, absolute and without links.
    pub root: PathBuf,
    /// The file, relative to the root.
    pub path: PathBuf,
    /// The contents before the change; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// The contents after the change; `None` if the file is removed.
    pub after: Option<Vec<u8>>,
}
