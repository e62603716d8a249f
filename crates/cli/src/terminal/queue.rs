//! [`Queue`]: what waits to be written, in order. Who writes into it never waits; what there is no room
//! for is lost, and counted.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that wait, at most: the editor takes none while it shows completions or searches the history,
/// and a run must not wait for that.
pub(crate) const MAX_WAITING: usize = 2 * 1024 * 1024;
/// What an entry takes besides its text.
const ENTRY: usize = 64;

/// What is to be written.
pub(crate) enum Op {
    /// Whole lines.
    Lines(String),
    /// A piece of Markdown.
    Markdown(String),
    /// The Markdown ends here.
    End,
    /// What is under way; `None` if nothing is.
    Status(Option<String>),
    /// A question, the cursor staying behind it; nothing more is written until it is answered or
    /// dropped.
    Ask(String, Receiver<()>),
    /// Answered once all before it is written.
    Flush(SyncSender<()>),
}

/// What waits.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// The end of a queue that is written into; no more follow once it is dropped.
pub(crate) struct Sender(Arc<Queue>);

#[derive(Default)]
struct Waiting {
    ops: VecDeque<Op>,
    bytes: usize,
    /// Pieces that there was no room for since the last that there was room for.
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
        self.0.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Sender {
    /// The end of a new queue that is written into, and the one that is read.
    pub(crate) fn new() -> (Self, Arc<Queue>) {
        let queue = Arc::new(Queue::default());
        (Self(Arc::clone(&queue)), queue)
    }

    /// Adds one. Returns `false` if it is lost.
    pub(crate) fn push(&self, op: Op) -> bool {
        let mut waiting = self.0.lock();
        let size = ENTRY + op.text().len();
        // What says nothing always has room: there is little of it.
        if waiting.bytes + size > MAX_WAITING && !op.text().is_empty() {
            waiting.lost += 1;
            return false;
        }
        let lost = std::mem::take(&mut waiting.lost);
        if lost > 0 {
            let text = format!("(there was no room for {lost} pieces of what was said here)");
            waiting.ops.push_back(Op::Lines(text));
        }
        waiting.bytes += size;
        // Pieces that come faster than they are written are written together.
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
    /// Waits, for so long at most if that is said, and takes all; `None` if no more follow.
    pub(crate) fn take(&self, timeout: Option<Duration>) -> Option<VecDeque<Op>> {
        let mut waiting = self.lock();
        if let Some(timeout) = timeout {
            let is_empty = |waiting: &mut Waiting| waiting.ops.is_empty() && !waiting.closed;
            let waited = self.changed.wait_timeout_while(waiting, timeout, is_empty);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        } else {
            let is_empty = |waiting: &mut Waiting| waiting.ops.is_empty() && !waiting.closed;
            let waited = self.changed.wait_while(waiting, is_empty);
            waiting = waited.unwrap_or_else(PoisonError::into_inner);
        }
        waiting.bytes = 0;
        let ops = std::mem::take(&mut waiting.ops);
        (!ops.is_empty() || !waiting.closed).then_some(ops)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
