//! [`Leases`]: who writes to which session, held by the system's own file locks. They end with the
//! process that holds them, however it ends; a row in the database would outlive a killed one.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::{SessionId, StoreError};

use crate::fault;
use crate::sqlite::make_folder;

/// How often a lock file may vanish between its opening and its locking, because its holder ends
/// just then, before the session counts as busy.
const LOCK_TRIES: u32 = 16;

/// The sessions that this store may write to.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    folder: Arc<Path>,
    held: Arc<Mutex<BTreeMap<SessionId, Arc<Lock>>>>,
}

/// The right to write to one session, as long as anyone holds it.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// What a lease holds: dropped, the store forgets the session. An append that is under way keeps
/// the lock itself until it is done.
#[derive(Debug)]
pub(crate) struct Held {
    session: SessionId,
    leases: Leases,
}

impl Leases {
    /// Leases whose lock files are in that folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            held: Arc::default(),
        }
    }

    /// Becomes the one writer of a session. Blocks for the time of some file operations.
    pub(crate) fn acquire(&self, session: &SessionId) -> Result<Held, StoreError> {
        make_folder(&self.folder)?;
        let path = self.folder.join(format!("{session}.lock"));
        let fault = fault::io(&path);
        for _ in 0..LOCK_TRIES {
            // Never written to: the lock is all that it is for.
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(&path)
                .map_err(&fault)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => return Err(fault(error)),
            }
            if is_at(&file, &path) {
                let path = path.clone();
                let lock = Arc::new(Lock { file, path });
                self.map().insert(session.clone(), lock);
                return Ok(Held {
                    session: session.clone(),
                    leases: self.clone(),
                });
            }
        }
        Err(StoreError::Busy {
            session: session.clone(),
        })
    }

    /// The lock of a session that this store may write to.
    pub(crate) fn lock_of(&self, session: &SessionId) -> Option<Arc<Lock>> {
        self.map().get(session).cloned()
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Lock>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let lock = self.leases.map().remove(&self.session);
        // Released only after the map is free again.
        drop(lock);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked nobody else has the right to remove it. Where it stays, the next
        // writer takes it as it is.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
        // Said aloud: a child process that was forked just now may still hold a copy of the file.
        let _ = self.file.unlock();
    }
}

/// Whether a locked file is still the one at its path: its last holder may have removed it
/// between our opening and our locking it, and then the lock excludes nobody.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let (Ok(ours), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// Elsewhere lock files are never removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
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
        for leases in [&ours, &theirs] {
            assert_eq!(
                leases.acquire(&id("a")).unwrap_err(),
                StoreError::Busy { session: id("a") }
            );
        }
        drop(held);
        assert!(ours.lock_of(&id("a")).is_none());
        drop(theirs.acquire(&id("a")).unwrap());
        drop(other);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_append_under_way_keeps_the_session_after_its_lease_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let leases = Leases::new(folder.path());
        let held = leases.acquire(&id("a")).unwrap();
        let under_way = leases.lock_of(&id("a")).unwrap();
        drop(held);
        assert!(leases.acquire(&id("a")).is_err());
        drop(under_way);
        assert!(leases.acquire(&id("a")).is_ok());
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
                    let leases = Leases::new(folder.path());
                    for _ in 0..2_000 {
                        if let Ok(held) = leases.acquire(&id("a")) {
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
