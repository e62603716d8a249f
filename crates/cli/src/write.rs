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
        _ => failed(path, &error),
    })
}

/// Writes a file, or replaces it at once.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    replace_with(path, text, OpenOptions::new()).map_err(|error| failed(path, &error))
}

/// Like [`replace`]. Creates the folder if there is none.
pub(crate) fn replace_with_folder(path: &Path, text: &str) -> Result<(), CliError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(path, &error))?;
    }
    replace(path, text)
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("{} cannot be written: {error}", path.display()))
}

/// Like [`replace`], for a file that only the user may read.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    replace_with(path, text, options)
}

fn replace_with(path: &Path, text: &str, mut options: OpenOptions) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&beside);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}
