//! [`Frames`]: the frames of one stream as they came, taken while the library cuts them out of the
//! bytes and handed on when it returns. What is in a frame is not looked at here.
//!
//! The library holds a frame until it is whole and has no bound for it. So a frame that is not
//! whole in time counts as silence (`hearing.rs`), and what is queued here is bounded twice: one
//! frame by the bound of an event, all of them by [`MAX_STREAM`].

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use tracing::instrument::WithSubscriber;

use crate::receive::MAX_STREAM;
use crate::sse::MAX_EVENT;

/// One frame.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its name, where its stream has names.
    pub(super) event: Option<String>,
    /// What it holds; empty for a sign of life.
    pub(super) data: String,
}

/// What was taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) frames: VecDeque<Frame>,
    /// What was exceeded, if anything was; nothing is queued from then on.
    pub(super) too_large: Option<&'static str>,
}

/// The frames that were not handed on yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    taken: Taken,
    /// Of all frames so far.
    bytes: u64,
}

impl Frames {
    /// The frames that came since this was last asked.
    pub(super) fn take(&self) -> Taken {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queue.taken)
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.bytes = queue.bytes.saturating_add(frame.data.len() as u64);
        if frame.data.len() > MAX_EVENT {
            queue.taken.too_large = Some("one event of the stream");
        } else if queue.bytes > MAX_STREAM.0 {
            queue.taken.too_large = Some("the answer");
        }
        if queue.taken.too_large.is_none() {
            queue.taken.frames.push_back(Frame {
                event: frame.event.map(str::to_owned),
                data: frame.data.to_owned(),
            });
        }
    }
}

/// Runs the library without its log: it writes errors of a provider into it, which may hold what
/// nobody may read.
pub(super) fn unlogged<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future.with_subscriber(tracing::Dispatch::none())
}
