//! Where recorded sessions are: the files of a folder, for the chores that read them.
//! Not the reading; `money` and `judge` want different things of a line.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder beside the workspace, from its root.
pub(crate) const DATA: &str = "../shared/data/normalized";

/// The `.jsonl` and `.jsonl.gz` files of a folder, by name.
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
