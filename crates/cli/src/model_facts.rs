//! The known facts about models. There are four sources, each overriding the one before it: the
//! built-in table, the published table that `plimsoll models update` fetched, the user's
//! `models.toml` and the configuration. Fetches nothing.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Once;

use plimsoll::providers::{ModelBook, ModelFacts, ModelRef, Origin};

use crate::error::CliError;
use crate::paths;

/// The user's file of model facts in the configuration directory.
const FILE: &str = "models.toml";
/// The fetched table, in the data directory.
const PUBLISHED: &str = "models-published.toml";
/// Maximum size of such a file, in bytes. All known models take less than a quarter of it.
pub(crate) const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Ensures that an unusable fetched table is reported only once.
static WARNED: Once = Once::new();

/// Returns the facts about a model. `configured` overrides all other sources.
pub(crate) fn facts(model: &ModelRef, configured: &ModelBook) -> Result<ModelFacts, CliError> {
    Ok(book(configured)?.facts(model))
}

/// Returns the facts about all models.
pub(crate) fn book(configured: &ModelBook) -> Result<ModelBook, CliError> {
    Ok(unconfigured()?.overlay(configured.clone()))
}

/// Returns the facts about all models without a configuration. The fetched table is only a cache: if
/// it cannot be used, a message says so, and it is left out.
pub(crate) fn unconfigured() -> Result<ModelBook, CliError> {
    let path = published_path()?;
    let fetched = fetched(&path).unwrap_or_else(|what| {
        let path = path.display();
        WARNED.call_once(|| {
            say!(
                "{what}; it is ignored: download it again with `plimsoll models update`, or \
                 remove {path}"
            );
        });
        ModelBook::default()
    });
    let published = ModelBook::built_in().clone().overlay(fetched);
    Ok(published.overlay(own()?))
}

fn fetched(path: &Path) -> Result<ModelBook, String> {
    let text = read(path).map_err(|stop| stop.text)?.unwrap_or_default();
    ModelBook::parse(&text, Origin::Published)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the path of the fetched table.
pub(crate) fn published_path() -> Result<PathBuf, CliError> {
    Ok(paths::data()?.join(PUBLISHED))
}

/// Returns the text of the fetched table. `None` if it cannot be read.
pub(crate) fn published_text() -> Result<Option<String>, CliError> {
    Ok(read(&published_path()?).ok().flatten())
}

/// Returns the path of the user's file, which need not exist.
pub(crate) fn own_path() -> Result<PathBuf, CliError> {
    Ok(paths::config()?.join(FILE))
}

/// Reads the user's file.
fn own() -> Result<ModelBook, CliError> {
    let path = own_path()?;
    let text = read(&path)?.unwrap_or_default();
    ModelBook::parse(&text, Origin::User)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
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
