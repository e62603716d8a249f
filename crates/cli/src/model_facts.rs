//! The known facts about models. There are three sources, each overriding the one before it: the
//! built-in table, the user's `models.toml` and the configuration.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use plimsoll::providers::{ModelBook, ModelFacts, ModelRef, Origin};

use crate::error::CliError;
use crate::paths;

/// The user's file of model facts in the configuration directory.
const FILE: &str = "models.toml";
/// Maximum size of this file, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Returns the facts about a model. `configured` overrides all other sources.
pub(crate) fn facts(model: &ModelRef, configured: &ModelBook) -> Result<ModelFacts, CliError> {
    Ok(book(configured)?.facts(model))
}

/// Returns the facts about all models.
pub(crate) fn book(configured: &ModelBook) -> Result<ModelBook, CliError> {
    Ok(unconfigured()?.overlay(configured.clone()))
}

/// Returns the facts about all models without a configuration.
pub(crate) fn unconfigured() -> Result<ModelBook, CliError> {
    let path = own_path()?;
    let text = read(&path)?.unwrap_or_default();
    let own = ModelBook::parse(&text, Origin::User)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))?;
    Ok(ModelBook::built_in().clone().overlay(own))
}

/// Returns the path of the user's file, which need not exist.
pub(crate) fn own_path() -> Result<PathBuf, CliError> {
    Ok(paths::config()?.join(FILE))
}

/// Reads a file. Returns `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, CliError> {
    let at = |what: &dyn std::fmt::Display| CliError::usage(format!("{}: {what}", path.display()));
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&error)),
        Ok(file) => file,
    };
    let text = io::read_to_string(file.take(MAX_FILE + 1)).map_err(|error| at(&error))?;
    if text.len() as u64 > MAX_FILE {
        Err(at(&format!(
            "larger than {MAX_FILE} bytes; keep only the models that you use"
        )))
    } else {
        Ok(Some(text))
    }
}
