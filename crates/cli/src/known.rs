//! What is known of models: by us, by what `plimsoll models update` has fetched, by the user's own
//! `models.toml` and by the configuration, each before the one before it. Fetches nothing.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Once;

use plimsoll::providers::{ModelBook, ModelFacts, ModelRef, Origin};

use crate::exit::Stop;
use crate::paths;

/// What a user knows of models, beside other settings; and its name of old.
pub(crate) const FILE: &str = "models.toml";
const OLD_FILE: &str = "prices.toml";
/// What was fetched, beside the sessions.
const PUBLISHED: &str = "models-published.toml";
/// All models there are take less than a quarter of it.
pub(crate) const MAX_FILE: u64 = 4 * 1024 * 1024;

/// That what was fetched cannot be used is said once.
static WARNED: Once = Once::new();

/// What is known of a model; what is `configured` goes before all else.
pub(crate) fn facts(model: &ModelRef, configured: &ModelBook) -> Result<ModelFacts, Stop> {
    Ok(book(configured)?.facts(model))
}

/// What is known of all models.
pub(crate) fn book(configured: &ModelBook) -> Result<ModelBook, Stop> {
    Ok(unconfigured()?.overlay(configured.clone()))
}

/// What is known of them without a configuration.
pub(crate) fn unconfigured() -> Result<ModelBook, Stop> {
    Ok(without_user()?.overlay(own()?))
}

/// What is known of them without the user. What was fetched is only a cache: where it cannot be
/// used, that is said, and it is done without.
pub(crate) fn without_user() -> Result<ModelBook, Stop> {
    let path = published_path()?;
    let fetched = fetched(&path).unwrap_or_else(|what| {
        let path = path.display();
        WARNED.call_once(|| {
            crate::say(&format!(
                "{what}; going on without it: fetch it again with `plimsoll models update`, or remove {path}"
            ));
        });
        ModelBook::default()
    });
    Ok(ModelBook::built_in().clone().overlay(fetched))
}

/// The same before another table is put in the place of what was fetched: nothing is said of that.
pub(crate) fn before_update() -> Result<ModelBook, Stop> {
    let fetched = fetched(&published_path()?).unwrap_or_default();
    Ok(ModelBook::built_in().clone().overlay(fetched))
}

fn fetched(path: &Path) -> Result<ModelBook, String> {
    let text = read(path).map_err(|stop| stop.text)?.unwrap_or_default();
    ModelBook::parse(&text, Origin::Published)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Where what was fetched is kept.
pub(crate) fn published_path() -> Result<PathBuf, Stop> {
    Ok(paths::data()?.join(PUBLISHED))
}

/// What was fetched, as it stands in its file; `None` where it cannot be read.
pub(crate) fn published_text() -> Result<Option<String>, Stop> {
    Ok(read(&published_path()?).ok().flatten())
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
