//! [`Leases`]: the right of one writer per session: a lock file for each session that is being written,
//! with a lock of the operating system.
//!
//! A lock ends with the process that holds it, however it ends. A process that stands still keeps its
//! sessions. Before each write, the holder checks that its lock file is still the one at its path, so
//! that a person who removes lock files cannot make two writers.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::{SessionId, StoreError};

use crate::connection::{make_folder, refuse_link};
use crate::fault;

/// How often a lock file may vanish between opening and locking it, because its holder ends at that
/// moment, before the session counts as busy.
const LOCK_TRIES: u32 = 16;

/// The locks of one store. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    folder: Arc<Path>,
    held: Arc<Mutex<BTreeMap<SessionId, Arc<Lock>>>>,
}

/// The right to write to one session, valid while it is held.
#[derive(Debug, Clone)]
pub(crate) struct Right {
    session: SessionId,
    /// Keeps the session locked for others.
    lock: Arc<Lock>,
}

/// A session that is held until this is dropped. A running write keeps the lock until it is finished.
#[derive(Debug)]
pub(crate) struct HeldLease {
    session: SessionId,
    leases: Leases,
}

/// A locked file of one session.
#[derive(Debug)]
struct Lock {
    file: File,
    path: PathBuf,
}

impl Leases {
    /// Creates leases with lock files in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            held: Arc::default(),
        }
    }

    /// Becomes the only writer of a session. Blocks for the time of some file operations.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the session has a writer already.
    pub(crate) fn acquire(&self, session: &SessionId) -> Result<HeldLease, StoreError> {
        let lock = self.try_lock(session)?.ok_or_else(|| StoreError::Busy {
            session: session.clone(),
        })?;
        self.map().insert(session.clone(), Arc::new(lock));
        Ok(HeldLease {
            session: session.clone(),
            leases: self.clone(),
        })
    }

    /// Returns the right to write to a session, if this store has a lease on it.
    pub(crate) fn right(&self, session: &SessionId) -> Option<Right> {
        let lock = Arc::clone(self.map().get(session)?);
        Some(Right {
            session: session.clone(),
            lock,
        })
    }

    /// Locks the file of a session. Returns `None` if somebody has locked it.
    fn try_lock(&self, session: &SessionId) -> Result<Option<Lock>, StoreError> {
        make_folder(&self.folder)?;
        let path = self.folder.join(format!("{session}.lock"));
        for _ in 0..LOCK_TRIES {
            refuse_link(&path)?;
            let mut options = OpenOptions::new();
            // It is never written to: only the lock matters.
            options.create(true).truncate(false).write(true);
            let file = options.open(&path).map_err(fault::io(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(fault::io(&path)(error)),
            }
            let path = path.clone();
            let lock = Lock { file, path };
            // Its last holder may have removed it between opening and locking it here.
            if lock.is_in_place() {
                return Ok(Some(lock));
            }
        }
        Ok(None)
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Lock>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Right {
    /// Returns the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns an error if the lock file was removed or replaced, so that somebody else may write.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.lock.is_in_place() {
            return Ok(());
        }
        let session = self.session.clone();
        Err(StoreError::LeaseLost { session })
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        let lock = self.leases.map().remove(&self.session);
        // Released only after the map is free again.
        drop(lock);
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
        // Two stores in one process stand for two processes.
        let (ours, theirs) = (Leases::new(folder.path()), Leases::new(folder.path()));
        let held = ours.acquire(&id("a")).unwrap();
        let other = theirs.acquire(&id("b")).unwrap();
        for locks in [&ours, &theirs] {
            assert!(locks.acquire(&id("a")).is_err());
        }
        drop(held);
        assert!(ours.right(&id("a")).is_none());
        drop(theirs.acquire(&id("a")).unwrap());
        drop(other);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_append_under_way_keeps_the_session_after_its_lease_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Leases::new(folder.path());
        let held = locks.acquire(&id("a")).unwrap();
        let under_way = locks.right(&id("a")).unwrap();
        drop(held);
        assert!(locks.acquire(&id("a")).is_err());
        drop(under_way);
        assert!(locks.acquire(&id("a")).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn who_removes_a_lock_file_makes_no_second_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (Leases::new(folder.path()), Leases::new(folder.path()));
        let held = ours.acquire(&id("a")).unwrap();
        ours.right(&id("a")).unwrap().check().unwrap();
        fs::remove_file(folder.path().join("a.lock")).unwrap();
        let other = theirs.acquire(&id("a")).unwrap();
        let lost = ours.right(&id("a")).unwrap().check().unwrap_err();
        let session = id("a");
        assert_eq!(lost, StoreError::LeaseLost { session });
        drop(held);
        theirs.right(&id("a")).unwrap().check().unwrap();
        drop(other);
    }

    #[test]
    fn a_lock_file_that_a_dead_process_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.lock"), "").unwrap();
        assert!(Leases::new(folder.path()).acquire(&id("a")).is_ok());
    }

    #[test]
    fn however_many_try_at_once_never_do_two_hold_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let (holders, won) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let locks = Leases::new(folder.path());
                    for _ in 0..2_000 {
                        if let Ok(held) = locks.acquire(&id("a")) {
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
