//! [`Queue`]: the pending output, in order. A writer never waits: if the queue is full, the output is
//! dropped and counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Maximum number of pending operations. The editor accepts no output while it shows completions or
/// searches the history, and a run must not wait for that.
pub(crate) const MAX_WAITING: usize = 16_384;
/// The pause before a full queue is tried again at the end.
const PAUSE: Duration = Duration::from_millis(10);

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
    /// Answered once all earlier operations are written.
    Flush(SyncSender<()>),
}

/// The writing end of a queue. Dropping it closes the queue.
pub(crate) struct Queue {
    ops: SyncSender<Op>,
    /// The number of operations that were dropped since the last one that fitted.
    lost: AtomicUsize,
}

impl Queue {
    /// Creates a queue. Returns its writing end and its reading end.
    pub(crate) fn new() -> (Self, Receiver<Op>) {
        let (ops, pending) = sync_channel(MAX_WAITING);
        let lost = AtomicUsize::new(0);
        (Self { ops, lost }, pending)
    }

    /// Adds an operation, or drops and counts it if the queue is full.
    pub(crate) fn push(&self, op: Op) {
        let lost = self.lost.swap(0, Ordering::SeqCst);
        let note = format!("({lost} pieces of output were dropped here: the terminal is too slow)");
        if lost > 0 && self.ops.try_send(Op::Lines(note)).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::SeqCst);
        } else if self.ops.try_send(op).is_err() {
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Waits until all operations are done, at most for the limit.
    pub(crate) fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let (done, is_done) = sync_channel(1);
        while self.ops.try_send(Op::Flush(done.clone())).is_err() {
            if Instant::now() > end {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        let _ = is_done.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}
