//! Reads and restores files that a session stores, without following links below the root, and replaces
//! files of the user.
//!
//! The caller decides which files, and when.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use plimsoll_context::Bytes;
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
    match read(root, relative, MAX_KEPT_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some),
    }
}

/// Reads a regular file of at most this size.
pub(crate) fn read(root: &Path, relative: &Path, max: Bytes) -> io::Result<Vec<u8>> {
    let file = safe_open::open(root, relative)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(max.0.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max.0 {
        let why = format!("it is larger than {} KiB", max.0 / 1024);
        return Err(io::Error::other(why));
    }
    Ok(bytes)
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

/// Replaces a file at once by one that only the user may read. Missing directories are created.
///
/// Blocks.
///
/// # Errors
/// If the file cannot be written; it is unchanged then.
pub fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut file = options.write(true).create_new(true).open(&beside)?;
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}
