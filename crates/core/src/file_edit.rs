//! [`FileEdit`]: a change of a file that a tool is about to make, as a store keeps it. It changes nothing.

use std::path::PathBuf;

use plimsoll_context::{Bytes, CallId};

/// The largest file that is kept, before or after a change.
pub const MAX_KEPT_FILE: Bytes = Bytes(16 * 1024 * 1024);

/// A change of one file, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The tool call that makes it; `None` if a person restores the file.
    pub call: Option<CallId>,
    /// The workspace root, absolute and without links.
    pub root: PathBuf,
    /// The file, relative to the root.
    pub path: PathBuf,
    /// What it contains before; `None` if it does not exist.
    pub before: Option<Vec<u8>>,
    /// What it contains afterwards; `None` if it is removed.
    pub after: Option<Vec<u8>>,
}
