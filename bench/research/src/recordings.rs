//! The files of recorded sessions in a folder, for the chores that read them. `money` and `judge`
//! parse them differently.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The default folder beside the workspace, relative to its root.
pub(crate) const DATA: &str = "../shared/data/normalized";

/// Returns the `.jsonl` and `.jsonl.gz` files of a folder, sorted by name.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
        })
        .collect();
    files.sort();
    Ok(files)
}
