//! The local model: fetched once into a folder of the user's, started as a child process for a
//! run. It asks no questions and prints nothing; what there is to say goes to the caller's
//! `watch`. Nothing that it fetches is used before its sha256 has been checked.

mod catalogue;
mod error;
mod install;
mod official;
mod probe;
mod pull;
mod registry;
mod serve;
mod sum;
#[cfg(all(test, unix))]
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
pub use error::LocalError;
pub use official::{CONNECT_WAIT, MAX_TRIES, SILENCE};
pub use registry::PACKAGE_TIMEOUT;
pub use serve::{Running, START_TIMEOUT, Variant};

/// The local models of one user.
#[derive(Debug, Clone)]
pub struct LocalModels {
    home: PathBuf,
    catalogue: Catalogue,
    python: OsString,
    path: OsString,
    patience: Duration,
}

/// Where a model is fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Its makers, else the registry.
    Auto,
    /// Its makers only.
    Official,
    /// The registry only.
    Registry,
}

/// What there is to say while something is fetched or started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A sentence.
    Said(&'a str),
    /// How far a file is.
    At {
        /// Which.
        label: &'a str,
        /// Bytes that are here.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
}

/// Whoever wants to know about [`Progress`].
pub type Watch<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

/// One model and whether it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its licence.
    pub licence: String,
    /// Whether it is whole, in pieces or not here.
    pub fetched: Fetched,
    /// Where it is, or would be.
    pub path: PathBuf,
}

/// What has to be fetched before a model can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing<'a> {
    /// The model, unless it is here.
    pub model: Option<&'a LocalModel>,
    /// The server that runs it, unless it is here.
    pub server: Option<&'a Package>,
}

/// How much of a model is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// All, and checked.
    Whole,
    /// Some.
    Part,
    /// Nothing.
    Nothing,
}

impl LocalModels {
    /// The models below a folder; it is made when something is fetched.
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

    /// Another catalogue than the one that is built in.
    #[must_use]
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// Another Python than `python3`; its pip fetches from the registry.
    #[must_use]
    pub fn python(mut self, python: impl Into<OsString>) -> Self {
        self.python = python.into();
        self
    }

    /// Another `PATH` to look for `llama-server` in.
    #[must_use]
    pub fn path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// Another time to start in than [`START_TIMEOUT`].
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The model's row, or the default's.
    ///
    /// # Errors
    /// [`LocalError::UnknownModel`].
    pub fn model(&self, name: Option<&str>) -> Result<&LocalModel, LocalError> {
        let name = name.unwrap_or(&self.catalogue.default);
        self.catalogue.model(name).ok_or_else(|| {
            let names = self
                .catalogue
                .models
                .iter()
                .map(|model| model.name.as_str());
            LocalError::UnknownModel {
                given: name.to_owned(),
                known: names.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The name of the default model.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.catalogue.default
    }

    /// All models, and which are here.
    #[must_use]
    pub fn list(&self) -> Vec<Kept> {
        let models = self.catalogue.models.iter();
        models
            .map(|model| Kept {
                name: model.name.clone(),
                bytes: model.bytes,
                licence: model.licence.clone(),
                fetched: self.fetched(model),
                path: self.file(model),
            })
            .collect()
    }

    /// Returns what [`Self::start`] would fetch for a model, its server included; `None` if all of it
    /// is here.
    ///
    /// # Errors
    /// [`LocalError::UnknownModel`].
    pub fn missing(&self, name: Option<&str>) -> Result<Option<Missing<'_>>, LocalError> {
        let model = self.model(name)?;
        let file = Some(model).filter(|model| self.fetched(model) != Fetched::Whole);
        let program = self.catalogue.server().map(|build| &build.program);
        let program = program.filter(|program| !self.servers().join(program.place()).is_dir());
        Ok((file.is_some() || program.is_some()).then_some(Missing {
            model: file,
            server: program,
        }))
    }

    /// Removes a model, or what there is of it; says whether there was anything.
    ///
    /// # Errors
    /// The name is unknown or a file cannot be removed.
    pub fn remove(&self, name: &str) -> Result<Fetched, LocalError> {
        let model = self.model(Some(name))?;
        let was = self.fetched(model);
        let mut files = self.pieces(model).to_vec();
        files.push(self.file(model));
        for file in files {
            remove_file(&file)?;
        }
        Ok(was)
    }

    fn fetched(&self, model: &LocalModel) -> Fetched {
        if size(&self.file(model)) == Some(model.bytes) {
            Fetched::Whole
        } else if self.pieces(model).iter().any(|file| file.exists()) {
            Fetched::Part
        } else {
            Fetched::Nothing
        }
    }

    /// Where a checked model is.
    fn file(&self, model: &LocalModel) -> PathBuf {
        self.home.join("models").join(&model.file)
    }

    /// What is here of a fetch that is not over: from the makers, from the registry, and how far
    /// the latter is.
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

impl FromStr for Source {
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

/// A file's size, where there is one.
fn size(path: &Path) -> Option<u64> {
    let data = fs::metadata(path).ok()?;
    data.is_file().then_some(data.len())
}

/// Removes a file, if there is one.
fn remove_file(path: &Path) -> Result<(), LocalError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LocalError::file(path, error)),
        _ => Ok(()),
    }
}

/// Does what blocks where it may block.
async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, LocalError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(io::Error::other("interrupted")))
        .map_err(|error| LocalError::file(path, error))
}
