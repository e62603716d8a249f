//! The file that effects append to, one line for each time that one happens. Plimsoll does not read
//! it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file that effects append to.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(PathBuf);

impl Ledger {
    /// Creates the file in a folder.
    pub(crate) fn create(folder: &Path) -> std::io::Result<Self> {
        let path = folder.join("ledger");
        std::fs::write(&path, "")?;
        Ok(Self(path))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the number of occurrences of each line.
    pub(crate) fn lines(&self) -> std::io::Result<BTreeMap<String, u64>> {
        let mut lines = BTreeMap::new();
        for line in std::fs::read_to_string(&self.0)?.lines() {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        Ok(lines)
    }
}
