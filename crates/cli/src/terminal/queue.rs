//! [`Queue`]: the pending output, in order. A writer never waits: if the queue is full, the text is
//! dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::time::Duration;

/// Maximum size of the pending output, in bytes. The editor accepts no output while it shows
/// completions or searches the history, and a run must not wait for that.
pub(crate) const MAX_WAITING: usize = 2 * 1024 * 1024;
/// Size of an entry without its text, in bytes.
const ENTRY: usize = 64;
/// Maximum number of operations that are taken at once.
const MAX_TAKEN: usize = 4_096;

/// An operation on the terminal.
pub(crate) enum Op {
    /// Whole lines.
    Lines(String),
    /// A piece of Markdown.
    Markdown(String),
    /// The Markdown ends here.
    End,
    /// The status line; `None` removes it.
    Status(Option<String>),
    /// A question. The cursor stays behind it, and nothing more is written until the question is
    /// answered or dropped.
    Ask(String, Receiver<()>),
    /// Answered once all earlier operations are written.
    Flush(SyncSender<()>),
}

/// The writing end of a queue. Dropping it closes the queue.
pub(crate) struct Queue {
    ops: Sender<Op>,
    /// The size of the operations that are not yet taken.
    bytes: Arc<AtomicUsize>,
    /// The number of dropped texts since the last one that fitted.
    lost: AtomicUsize,
}

/// The reading end of a queue.
pub(crate) struct PendingOps {
    ops: Receiver<Op>,
    bytes: Arc<AtomicUsize>,
}

impl Queue {
    /// Creates a queue. Returns its writing end and its reading end.
    pub(crate) fn new() -> (Self, PendingOps) {
        let (sender, ops) = channel();
        let bytes = Arc::<AtomicUsize>::default();
        let pending = PendingOps {
            ops,
            bytes: Arc::clone(&bytes),
        };
        let queue = Self {
            ops: sender,
            bytes,
            lost: AtomicUsize::new(0),
        };
        (queue, pending)
    }

    /// Adds an operation, or drops and counts it if the queue is full.
    pub(crate) fn push(&self, op: Op) {
        let waiting = self.bytes.load(Ordering::SeqCst);
        // Operations without text always fit: there are few of them.
        if waiting + op.size() > MAX_WAITING && op.size() > ENTRY {
            self.lost.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let lost = self.lost.swap(0, Ordering::SeqCst);
        if lost > 0 {
            self.send(Op::Lines(format!(
                "({lost} pieces of output were dropped here: the terminal is too slow)"
            )));
        }
        self.send(op);
    }

    fn send(&self, op: Op) {
        self.bytes.fetch_add(op.size(), Ordering::SeqCst);
        // An error means that the screen's thread has ended.
        let _ = self.ops.send(op);
    }
}

impl PendingOps {
    /// Waits, at most for the timeout if there is one, and takes the pending operations. Returns
    /// `None` once the queue is closed and empty.
    pub(crate) fn take(&self, timeout: Option<Duration>) -> Option<Vec<Op>> {
        let first = match timeout {
            None => Some(self.ops.recv().ok()?),
            Some(timeout) => match self.ops.recv_timeout(timeout) {
                Ok(op) => Some(op),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return None,
            },
        };
        let mut taken: Vec<Op> = Vec::new();
        let more = self.ops.try_iter().take(MAX_TAKEN);
        for op in first.into_iter().chain(more) {
            self.bytes.fetch_sub(op.size(), Ordering::SeqCst);
            // If pieces arrive faster than they are written, they are joined.
            match (taken.last_mut(), op) {
                (Some(Op::Markdown(text)), Op::Markdown(more)) => text.push_str(&more),
                (_, op) => taken.push(op),
            }
        }
        Some(taken)
    }
}

impl Op {
    fn size(&self) -> usize {
        let text = match self {
            Self::Lines(text) | Self::Markdown(text) | Self::Ask(text, _) => text,
            Self::Status(text) => text.as_deref().unwrap_or_default(),
            Self::End | Self::Flush(_) => "",
        };
        ENTRY + text.len()
    }
}
