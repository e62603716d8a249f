//! Writes new files.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

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
