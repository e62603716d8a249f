//! [`Gate`]: where an answer waits until a test lets it go on, so that a test need not sleep. Not a
//! part of a script that is read; only one that is made.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Where an answer waits. See [`Turn::gated`](crate::Turn::gated).
#[derive(Debug, Clone)]
pub struct Gate {
    /// Before which piece.
    pub(crate) at: usize,
    shut: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

/// What opens a gate; dropped, it opens it too.
#[derive(Debug)]
pub struct Opener(oneshot::Sender<()>);

impl Gate {
    pub(crate) fn new(at: usize) -> (Self, Opener) {
        let (opener, shut) = oneshot::channel();
        let shut = Arc::new(Mutex::new(Some(shut)));
        (Self { at, shut }, Opener(opener))
    }

    /// Its lock. Only the first answer with this gate waits.
    pub(crate) fn take(&self) -> Option<oneshot::Receiver<()>> {
        self.shut
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shut, &other.shut)
    }
}

impl Opener {
    /// The answer goes on.
    pub fn open(self) {
        // Where nobody waits any more, there is nothing to open.
        let _ = self.0.send(());
    }

    /// Comes back once the server has let go of the answer, because its client went away.
    pub async fn abandoned(&mut self) {
        self.0.closed().await;
    }
}
