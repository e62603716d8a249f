//! [`Locks`]: a lock file for each session that is being written, with the locks of the operating
//! system. They end with the process that holds them, however it ends. Processes that stand still
//! are handled in `lease`.

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

/// The lock files of a store, and the locks that it holds. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Locks {
    folder: Arc<Path>,
    held: Arc<Mutex<HeldLocks>>,
}

/// The locks of sessions, and the numbers of their leases.
type HeldLocks = BTreeMap<SessionId, (Arc<Lock>, i64)>;

/// A locked file of one session.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

/// When it is dropped, the store forgets the session. A running append keeps the lock until it is
/// finished.
#[derive(Debug)]
pub(crate) struct HeldLock {
    session: SessionId,
    locks: Locks,
}

impl Locks {
    /// Creates locks with files in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
            held: Arc::default(),
        }
    }

    /// Locks the file of a session. Returns `None` if another process has locked it.
    pub(crate) fn try_lock(&self, session: &SessionId) -> Result<Option<Lock>, StoreError> {
        make_folder(&self.folder)?;
        let path = self.folder.join(format!("{session}.lock"));
        let fault = fault::io(&path);
        for _ in 0..LOCK_TRIES {
            let file = lock_file(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(fault(error)),
            }
            if is_at(&file, &path) {
                let path = path.clone();
                return Ok(Some(Lock { file, path }));
            }
        }
        Ok(None)
    }

    /// Locks a new file that may replace a session's file, which another process has locked.
    pub(crate) fn spare(&self, session: &SessionId) -> Result<Lock, StoreError> {
        make_folder(&self.folder)?;
        let path = self.folder.join(format!("{session}.lock"));
        let spare = sibling_path(&path);
        let fault = fault::io(&spare);
        let file = lock_file(&spare)?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { file, path }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Busy {
                session: session.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(fault(error)),
        }
    }

    /// Remembers a lock and the number of its lease until the returned value is dropped.
    pub(crate) fn hold(&self, session: &SessionId, lock: Lock, token: i64) -> HeldLock {
        self.map().insert(session.clone(), (Arc::new(lock), token));
        HeldLock {
            session: session.clone(),
            locks: self.clone(),
        }
    }

    /// Checks whether this store holds the lock of a session.
    pub(crate) fn holds(&self, session: &SessionId) -> bool {
        self.map().contains_key(session)
    }

    /// Returns the lock of a session that this store may write to, and the number of its lease.
    pub(crate) fn of(&self, session: &SessionId) -> Option<(Arc<Lock>, i64)> {
        self.map().get(session).cloned()
    }

    fn map(&self) -> MutexGuard<'_, HeldLocks> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let lock = self.locks.map().remove(&self.session);
        // Released only after the map is free again.
        drop(lock);
    }
}

impl Lock {
    /// Checks whether this is still the file that other processes try to lock.
    pub(crate) fn is_in_place(&self) -> bool {
        is_at(&self.file, &self.path)
    }

    /// Replaces the file that another process has locked by the spare file. If the system does not
    /// allow that, the next process that finds the other file unlocked takes the session over in
    /// turn.
    pub(crate) fn put_in_place(&self) {
        let _ = fs::rename(sibling_path(&self.path), &self.path);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While the file is locked and in its place, nobody else may remove it. If it stays, the
        // next writer reuses it.
        for path in [&self.path, &sibling_path(&self.path)] {
            if cfg!(unix) && is_at(&self.file, path) {
                let _ = fs::remove_file(path);
            }
        }
        // Explicitly, because a child process that was forked just now may still hold a copy of the
        // file.
        let _ = self.file.unlock();
    }
}

/// Opens a lock file. It is never written to: only the lock matters.
fn lock_file(path: &Path) -> Result<File, StoreError> {
    refuse_link(path)?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    options.open(path).map_err(fault::io(path))
}

/// Returns the path of a spare lock file.
fn sibling_path(path: &Path) -> PathBuf {
    path.with_extension("lock-new")
}

/// Returns `true` if a locked file is still the one at its path. Its last holder may have removed
/// it between opening and locking it here, and then the lock excludes nobody.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let (Ok(ours), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

/// On other systems, lock files are never removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    impl Locks {
        fn acquire(&self, session: &SessionId) -> Option<HeldLock> {
            let lock = self.try_lock(session).unwrap()?;
            Some(self.hold(session, lock, 1))
        }
    }

    fn id(name: &str) -> SessionId {
        SessionId::new(name).unwrap()
    }

    #[test]
    fn a_session_has_one_writer_and_its_lock_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        // Two stores in one process stand for two processes.
        let (ours, theirs) = (Locks::new(folder.path()), Locks::new(folder.path()));
        let held = ours.acquire(&id("a")).unwrap();
        let other = theirs.acquire(&id("b")).unwrap();
        for locks in [&ours, &theirs] {
            assert!(locks.acquire(&id("a")).is_none());
        }
        drop(held);
        assert!(!ours.holds(&id("a")));
        drop(theirs.acquire(&id("a")).unwrap());
        drop(other);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_append_under_way_keeps_the_session_after_its_lease_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let locks = Locks::new(folder.path());
        let held = locks.acquire(&id("a")).unwrap();
        let under_way = locks.of(&id("a")).unwrap();
        drop(held);
        assert!(locks.acquire(&id("a")).is_none());
        drop(under_way);
        assert!(locks.acquire(&id("a")).is_some());
    }

    #[test]
    fn a_lock_file_that_a_dead_process_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.lock"), "").unwrap();
        assert!(Locks::new(folder.path()).acquire(&id("a")).is_some());
    }

    #[test]
    fn however_many_try_at_once_never_do_two_hold_a_session() {
        let folder = tempfile::tempdir().unwrap();
        let (holders, won) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let locks = Locks::new(folder.path());
                    for _ in 0..2_000 {
                        if let Some(held) = locks.acquire(&id("a")) {
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
