//! [`Queue`]: the pending output, in order. A writer never waits: if the queue is full, the text is
//! dropped and counted.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock;

/// Maximum size of the pending output, in bytes. The editor accepts no output while it shows
/// completions or searches the history, and a run must not wait for that.
pub(crate) const MAX_WAITING: usize = 2 * 1024 * 1024;
/// Size of an entry without its text, in bytes.
const ENTRY: usize = 64;

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

/// The operations that are not yet written.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<QueueState>,
    changed: Condvar,
}

/// The writing end of a queue. Dropping it closes the queue.
pub(crate) struct Sender(Arc<Queue>);

#[derive(Default)]
struct QueueState {
    ops: VecDeque<Op>,
    bytes: usize,
    /// The number of dropped texts since the last one that fitted.
    lost: usize,
    closed: bool,
}

impl Op {
    fn text(&self) -> &str {
        match self {
            Self::Lines(text) | Self::Markdown(text) | Self::Ask(text, _) => text,
            Self::Status(text) => text.as_deref().unwrap_or_default(),
            Self::End | Self::Flush(_) => "",
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        lock(&self.0.waiting).closed = true;
        self.0.changed.notify_one();
    }
}

impl Sender {
    /// Creates a queue. Returns its writing end and its reading end.
    pub(crate) fn new() -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue::default());
        (Self(Arc::clone(&queue)), queue)
    }

    /// Adds an operation. Returns `false` if it is dropped because the queue is full.
    pub(crate) fn push(&self, op: Op) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let size = ENTRY + op.text().len();
        // Operations without text always fit: there are few of them.
        if waiting.bytes + size > MAX_WAITING && !op.text().is_empty() {
            waiting.lost += 1;
            return false;
        }
        let lost = std::mem::take(&mut waiting.lost);
        if lost > 0 {
            let text = format!(
                "({lost} pieces of output were dropped here: the terminal is too \
                                slow)"
            );
            waiting.ops.push_back(Op::Lines(text));
        }
        waiting.bytes += size;
        // If pieces arrive faster than they are written, they are joined.
        match (op, waiting.ops.back_mut()) {
            (Op::Markdown(more), Some(Op::Markdown(text))) => text.push_str(&more),
            (Op::Status(new), Some(Op::Status(status))) => *status = new,
            (Op::End, Some(Op::End)) => {}
            (op, _) => waiting.ops.push_back(op),
        }
        self.0.changed.notify_one();
        true
    }
}

impl Queue {
    /// Waits, at most for the timeout if there is one, and takes all operations. Returns `None`
    /// once the queue is closed and empty.
    pub(crate) fn take(&self, timeout: Option<Duration>) -> Option<VecDeque<Op>> {
        let mut waiting = lock(&self.waiting);
        if let Some(timeout) = timeout {
            let is_empty = |waiting: &mut QueueState| waiting.ops.is_empty() && !waiting.closed;
            let waited = self.changed.wait_timeout_while(waiting, timeout, is_empty);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            let is_empty = |waiting: &mut QueueState| waiting.ops.is_empty() && !waiting.closed;
            let waited = self.changed.wait_while(waiting, is_empty);
            waiting = waited.unwrap_or_else(PoisonError::into_inner);
        }
        waiting.bytes = 0;
        let ops = std::mem::take(&mut waiting.ops);
        (!ops.is_empty() || !waiting.closed).then_some(ops)
    }
}
