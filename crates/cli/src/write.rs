//! Writes whole files: new ones, and replacements that take the place of a file at once.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Writes a new file. An existing file stays as it is, and the error ends with the advice.
pub(crate) fn create(path: &Path, text: &str, advice: &str) -> Result<(), CliError> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::usage(format!("{shown} is there already{advice}")),
        _ => CliError::failed(format!("{shown} cannot be written: {error}")),
    })
}

/// Replaces a file at once by one that only the user may read.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
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
