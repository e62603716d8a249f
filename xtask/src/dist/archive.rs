//! Writes files from memory as a `.tar.gz`, an npm package or a Python wheel.
//!
//! Equal contents give equal bytes: no times, users or file system orders are stored.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

use crate::error::Error;

/// A file of a package: its path there, its contents, and whether it is a program.
#[derive(Clone, Debug)]
pub(crate) struct PackageFile {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) program: bool,
}

impl PackageFile {
    /// Creates a file that is not executable.
    pub(crate) fn text(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let (path, bytes) = (path.into(), bytes.into());
        Self {
            path,
            bytes,
            program: false,
        }
    }

    /// Creates an executable file.
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let (path, bytes) = (path.into(), bytes.into());
        Self {
            path,
            bytes,
            program: true,
        }
    }

    fn mode(&self) -> u32 {
        if self.program { 0o755 } else { 0o644 }
    }
}

/// Writes the entries below `root` as a `.tar.gz`, which is also the format of npm packages (with
/// the root `package`).
pub(crate) fn tar_gz(
    to: &Path,
    root: &str,
    entries: &[PackageFile],
    level: Compression,
) -> Result<(), Error> {
    let write = || {
        let mut tar = tar::Builder::new(GzEncoder::new(File::create(to)?, level));
        for entry in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(entry.bytes.len() as u64);
            header.set_mode(entry.mode());
            let path = format!("{root}/{}", entry.path);
            tar.append_data(&mut header, path, entry.bytes.as_slice())?;
        }
        tar.into_inner()?.finish()?.flush()
    };
    write().map_err(Error::file(to))
}

/// Writes the entries as a wheel, followed by its list of files (`RECORD`).
pub(crate) fn wheel(
    to: &Path,
    info: &str,
    entries: &[PackageFile],
    level: Compression,
) -> Result<(), Error> {
    let mut record = String::new();
    for entry in entries {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        let (path, size) = (&entry.path, entry.bytes.len());
        record.push_str(&format!("{path},sha256={digest},{size}\n"));
    }
    let path = format!("{info}/RECORD");
    record.push_str(&format!("{path},,\n"));
    let record = PackageFile::text(path, record);
    let file = File::create(to).map_err(Error::file(to))?;
    let written = zip(file, entries.iter().chain([&record]), level);
    written.map_err(|error| Error::file(to)(error.into()))
}

fn zip<'a>(
    to: impl Write + Seek,
    entries: impl Iterator<Item = &'a PackageFile>,
    level: Compression,
) -> zip::result::ZipResult<()> {
    let mut zip = zip::ZipWriter::new(to);
    for entry in entries {
        // The executable bit makes pip install the program as executable.
        let options = SimpleFileOptions::default()
            .compression_level(Some(level.level().into()))
            .unix_permissions(entry.mode());
        zip.start_file(&entry.path, options)?;
        zip.write_all(&entry.bytes)?;
    }
    zip.finish()?;
    Ok(())
}

/// Returns the SHA-256 of a file in hexadecimal digits.
pub(crate) fn sha256(file: &Path) -> Result<String, Error> {
    let bytes = std::fs::read(file).map_err(Error::file(file))?;
    let digest = Sha256::digest(bytes);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}
