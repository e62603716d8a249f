//! [`Gate`]: pauses an answer until a test continues it, so that tests need no sleeps. Available
//! for turns in code, not in parsed scripts.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// A position at which an answer waits. See [`Turn::gated`](crate::Turn::gated).
#[derive(Debug, Clone)]
pub struct Gate {
    /// The index of the piece before which the answer waits.
    pub(crate) at: usize,
    shut: Arc<Mutex<Option<oneshot::Receiver<()>>>>,
}

/// Opens a gate, also when it is dropped.
#[derive(Debug)]
pub struct Opener(oneshot::Sender<()>);

impl Gate {
    pub(crate) fn new(at: usize) -> (Self, Opener) {
        let (opener, shut) = oneshot::channel();
        let shut = Arc::new(Mutex::new(Some(shut)));
        (Self { at, shut }, Opener(opener))
    }

    /// Takes the receiver of the gate. Only the first answer with this gate waits.
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
    /// Continues the answer.
    pub fn open(self) {
        // If no answer waits any more, there is nothing to open.
        let _ = self.0.send(());
    }
}
