//! What is known of models: by us, by what `plimsoll models update` has fetched, by the user's own
//! `models.toml` and by the configuration, each before the one before it. Fetches nothing.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use plimsoll::providers::{ModelBook, ModelFacts, ModelRef, Origin};

use crate::exit::Stop;
use crate::paths;

/// What a user knows of models, beside other settings; and its name of old.
pub(crate) const FILE: &str = "models.toml";
const OLD_FILE: &str = "prices.toml";
/// What was fetched, beside the sessions.
const PUBLISHED: &str = "models-published.toml";
/// All models there are take less than a quarter of it.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What is known of a model; what is `configured` goes before all else.
pub(crate) fn facts(model: &ModelRef, configured: &ModelBook) -> Result<ModelFacts, Stop> {
    Ok(book(configured)?.facts(model))
}

/// What is known of all models.
pub(crate) fn book(configured: &ModelBook) -> Result<ModelBook, Stop> {
    let book = without_user()?.overlay(own()?);
    Ok(book.overlay(configured.clone()))
}

/// What is known of them without the user.
pub(crate) fn without_user() -> Result<ModelBook, Stop> {
    let path = published_path()?;
    let text = read(&path)?.unwrap_or_default();
    let published = ModelBook::parse(&text, Origin::Published).map_err(|error| {
        let cure = "fetch it again with `plimsoll models update`, or remove it";
        Stop::failed(format!("{}: {error}; {cure}", path.display()))
    })?;
    Ok(ModelBook::built_in().clone().overlay(published))
}

/// Where what was fetched is kept.
pub(crate) fn published_path() -> Result<PathBuf, Stop> {
    Ok(paths::data()?.join(PUBLISHED))
}

/// What was fetched, as it stands in its file.
pub(crate) fn published_text() -> Result<Option<String>, Stop> {
    read(&published_path()?)
}

/// Where the user's own figures stand, or may stand.
pub(crate) fn own_path() -> Result<PathBuf, Stop> {
    let directory = paths::config()?;
    let (path, old) = (directory.join(FILE), directory.join(OLD_FILE));
    match (path.exists(), old.exists()) {
        (true, true) => Err(Stop::usage(format!(
            "{} and {} are two files for one thing; keep {FILE}",
            path.display(),
            old.display()
        ))),
        (false, true) => Ok(old),
        _ => Ok(path),
    }
}

/// What the user says.
fn own() -> Result<ModelBook, Stop> {
    let path = own_path()?;
    let text = read(&path)?.unwrap_or_default();
    ModelBook::parse(&text, Origin::User)
        .map_err(|error| Stop::usage(format!("{}: {error}", path.display())))
}

/// A file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, Stop> {
    let at = |what: &dyn std::fmt::Display| Stop::usage(format!("{}: {what}", path.display()));
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&error)),
        Ok(file) => file,
    };
    let mut text = String::new();
    let mut bounded = file.take(MAX_FILE + 1);
    bounded
        .read_to_string(&mut text)
        .map_err(|error| at(&error))?;
    match text.len() as u64 > MAX_FILE {
        true => Err(at(&format!(
            "larger than {MAX_FILE} bytes; keep only the models that you use"
        ))),
        false => Ok(Some(text)),
    }
}
