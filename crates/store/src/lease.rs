//! The right of one writer per session: a lock file for each session that is being written, with a lock of
//! the operating system.
//!
//! A lock ends with the process that holds it, however it ends. A process that stands still keeps its
//! sessions. Before each write, the holder checks that its lock file is still the one at its path, so
//! that a person who removes lock files cannot make two writers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_core::{SessionId, StoreError};

use crate::connection::{make_folder, refuse_link};
use crate::fault;

/// How often a lock file may vanish between opening and locking it, because its holder ends at that
/// moment, before the session counts as busy.
const LOCK_TRIES: u32 = 16;

/// The right to write to one session: its locked file. A lease has one, and so has each running write, so
/// the session stays locked until both have ended.
#[derive(Debug, Clone)]
pub(crate) struct Right(Arc<Lock>);

#[derive(Debug)]
struct Lock {
    session: SessionId,
    file: File,
    path: PathBuf,
}

impl Right {
    /// Becomes the only writer of a session, by its lock file in `folder`. Blocks for the time of some file
    /// operations.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the session has a writer already.
    pub(crate) fn acquire(folder: &Path, session: &SessionId) -> Result<Self, StoreError> {
        make_folder(folder)?;
        let path = folder.join(format!("{session}.lock"));
        for _ in 0..LOCK_TRIES {
            refuse_link(&path)?;
            let mut options = OpenOptions::new();
            // It is never written to: only the lock matters.
            options.create(true).truncate(false).write(true);
            let file = options.open(&path).map_err(fault::io(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => return Err(fault::io(&path)(error)),
            }
            let (session, path) = (session.clone(), path.clone());
            let lock = Lock {
                session,
                file,
                path,
            };
            // Its last holder may have removed it between opening and locking it here.
            if lock.is_in_place() {
                return Ok(Self(Arc::new(lock)));
            }
        }
        let session = session.clone();
        Err(StoreError::Busy { session })
    }

    /// Returns the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.0.session
    }

    /// Checks whether its lock file is in `folder`.
    pub(crate) fn is_of(&self, folder: &Path) -> bool {
        self.0.path.parent() == Some(folder)
    }

    /// Returns an error if the lock file was removed or replaced, so that somebody else may write.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.0.is_in_place() {
            return Ok(());
        }
        let session = self.session().clone();
        Err(StoreError::LeaseLost { session })
    }
}

impl Lock {
    /// Checks whether this is still the file that other processes try to lock.
    #[cfg(unix)]
    fn is_in_place(&self) -> bool {
        use std::os::unix::fs::MetadataExt;

        let (Ok(ours), Ok(there)) = (self.file.metadata(), fs::metadata(&self.path)) else {
            return false;
        };
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }

    /// On other systems, lock files are never removed.
    #[cfg(not(unix))]
    fn is_in_place(&self) -> bool {
        true
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the file is locked and in its place, nobody else may remove it. If it stays, the
        // next writer reuses it.
        if cfg!(unix) && self.is_in_place() {
            let _ = fs::remove_file(&self.path);
        }
        // Explicitly, because a child process that was forked just now may still hold a copy of the
        // file.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[test]
    fn a_session_has_one_writer_and_its_lock_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let acquire = |name| Right::acquire(folder.path(), &id(name));
        let (held, other) = (acquire("a").unwrap(), acquire("b").unwrap());
        let under_way = held.clone();
        drop(held);
        let session = id("a");
        assert_eq!(acquire("a").unwrap_err(), StoreError::Busy { session });
        drop(under_way);
        drop(acquire("a").unwrap());
        drop(other);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn who_removes_a_lock_file_makes_no_second_writer() {
        let folder = tempfile::tempdir().unwrap();
        let acquire = || Right::acquire(folder.path(), &id("a")).unwrap();
        let held = acquire();
        held.check().unwrap();
        fs::remove_file(folder.path().join("a.lock")).unwrap();
        let other = acquire();
        let session = id("a");
        assert_eq!(held.check(), Err(StoreError::LeaseLost { session }));
        drop(held);
        other.check().unwrap();
    }

    #[test]
    fn a_lock_file_that_a_dead_process_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.lock"), "").unwrap();
        Right::acquire(folder.path(), &id("a")).unwrap();
    }

    #[test]
    fn however_many_try_at_once_never_do_two_hold_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let (holders, won) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if let Ok(held) = Right::acquire(folder.path(), &id("a")) {
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            won.fetch_add(1, Ordering::SeqCst);
                            holders.fetch_sub(1, Ordering::SeqCst);
                            drop(held);
                        }
                    }
                });
            }
        });
        assert!(won.into_inner() > 0);
    }
}
