//! Reads and restores files that a session stores, without following links below the root.
//!
//! The caller decides which files, and when.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use plimsoll_core::MAX_KEPT_FILE;

use crate::safe_open;

/// Returns the content of a file, or `None` if it does not exist.
///
/// Blocks.
///
/// # Errors
/// If it cannot be read, is not a regular file or is larger than
/// [`MAX_KEPT_FILE`].
pub fn content(root: &Path, relative: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match safe_open::open(root, relative) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let most = MAX_KEPT_FILE.0;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let why = format!("it has more than the {most} bytes that can be kept");
        return Err(io::Error::other(why));
    }
    Ok(Some(bytes))
}

/// Writes this content to a file, or removes the file if there is none, with the directories in which it
/// was the last file. Missing directories are created.
///
/// Blocks.
///
/// # Errors
/// If the file cannot be written or removed; it is unchanged then.
pub fn restore(root: &Path, relative: &Path, content: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = content else {
        safe_open::remove(root, relative)?;
        let mut folders = relative.ancestors().skip(1);
        // A directory with other files is not removed, and neither is the root.
        let is_removed = |folder: &Path| {
            !folder.as_os_str().is_empty() && fs::remove_dir(root.join(folder)).is_ok()
        };
        while folders.next().is_some_and(is_removed) {}
        return Ok(());
    };
    safe_open::replace(root, relative, bytes)
}
