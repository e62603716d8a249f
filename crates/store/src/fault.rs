//! Converts errors of SQLite and the system to sentences that name the file and the cure.

use std::io;
use std::path::Path;

use plimsoll_core::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

/// An error of work on a database file. The connection that runs the work adds the name of the file.
#[derive(Debug)]
pub(crate) enum WorkError {
    Sqlite(Error),
    /// An error that is complete as it is.
    Store(StoreError),
}

impl WorkError {
    /// Names the file.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => sqlite(path)(error),
            Self::Store(error) => error,
        }
    }
}

impl From<Error> for WorkError {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Converts an error of SQLite about the file.
pub(crate) fn sqlite(path: &Path) -> impl Fn(Error) -> StoreError + '_ {
    move |error| {
        let why = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                return corrupt(path, "it is not a SQLite database");
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                return StoreError::Damaged { path: text(path) };
            }
            Some(ErrorCode::DiskFull) => return full(path),
            // The index of the write-ahead log cannot be enlarged.
            Some(ErrorCode::SystemIoFailure) if extended(&error) == ffi::SQLITE_IOERR_SHMSIZE => {
                return full(path);
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another process has kept it locked; end that process, or try again when it is done"
                    .to_owned()
            }
            Some(ErrorCode::ReadOnly) => {
                "it is read-only; make it and its folder writable, or choose another data folder with PLIMSOLL_HOME"
                    .to_owned()
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                "it cannot be opened; make it and its folder readable and writable, or choose \
                 another data folder with PLIMSOLL_HOME"
                    .to_owned()
            }
            Some(ErrorCode::SystemIoFailure) => format!(
                "the disk fails ({error}); check it, or choose a data folder on another one with PLIMSOLL_HOME"
            ),
            _ => error.to_string(),
        };
        other(path, why)
    }
}

/// Converts an error of the system about a file or folder.
pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    move |error| {
        let why = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => return full(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "it may not be written; make the folder writable, or choose another data folder with PLIMSOLL_HOME"
                    .to_owned()
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "a file stands where a folder is needed; move it away, or choose another data \
                 folder with PLIMSOLL_HOME"
                    .to_owned()
            }
            io::ErrorKind::Unsupported => {
                "its file system has no locks; choose a data folder on a local disk with PLIMSOLL_HOME".to_owned()
            }
            _ => format!("{error}; check the folder, or choose another data folder with PLIMSOLL_HOME"),
        };
        other(path, why)
    }
}

pub(crate) fn corrupt(path: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Corrupt {
        path: text(path),
        why: why.into(),
    }
}

pub(crate) fn full(path: &Path) -> StoreError {
    StoreError::Full { path: text(path) }
}

pub(crate) fn other(path: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Io {
        path: text(path),
        why: why.into(),
    }
}

/// Returns a path as text for people.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}

fn extended(error: &Error) -> i32 {
    error
        .sqlite_error()
        .map_or(ffi::SQLITE_OK, |error| error.extended_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_names_the_file_and_a_cure() {
        let path = Path::new("/data/sessions.db");
        let table = [
            (ffi::SQLITE_FULL, "no space is left at /data/sessions.db"),
            (
                ffi::SQLITE_IOERR_SHMSIZE,
                "no space is left at /data/sessions.db",
            ),
            (
                ffi::SQLITE_NOTADB,
                "/data/sessions.db cannot be read as a session store: it is not a SQLite \
                 database; move it away",
            ),
            (
                ffi::SQLITE_CORRUPT,
                "/data/sessions.db is damaged inside; save its readable sessions with",
            ),
            (
                ffi::SQLITE_BUSY,
                "/data/sessions.db: another process has kept it locked; end",
            ),
            (
                ffi::SQLITE_READONLY,
                "/data/sessions.db: it is read-only; make",
            ),
            (
                ffi::SQLITE_READONLY_DIRECTORY,
                "/data/sessions.db: it is read-only; make",
            ),
            (
                ffi::SQLITE_CANTOPEN,
                "/data/sessions.db: it cannot be opened; make",
            ),
            (ffi::SQLITE_IOERR, "/data/sessions.db: the disk fails"),
        ];
        for (code, beginning) in table {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            let said = sqlite(path)(error).to_string();
            assert!(said.starts_with(beginning), "{code}: {said}");
        }
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_faults_of_the_system() {
        let path = Path::new("/data/locks");
        let table = [
            (
                io::ErrorKind::StorageFull,
                "no space is left at /data/locks",
            ),
            (
                io::ErrorKind::PermissionDenied,
                "/data/locks: it may not be written; make",
            ),
            (
                io::ErrorKind::NotADirectory,
                "/data/locks: a file stands where",
            ),
            (
                io::ErrorKind::Unsupported,
                "/data/locks: its file system has no locks; choose",
            ),
            (io::ErrorKind::NotFound, "/data/locks: entity not found; "),
        ];
        for (kind, beginning) in table {
            let said = io(path)(kind.into()).to_string();
            assert!(said.starts_with(beginning), "{kind:?}: {said}");
        }
    }
}
