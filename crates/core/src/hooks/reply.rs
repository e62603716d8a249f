//! [`HookReply`]: what a hook gives back, at once or later, and how either is had without trusting
//! the hook: a panic is contained, and one that does not come back is given up. Not what is done with it.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::Instrument;

/// Calls of one hook that were given up and have not come back, at most: each holds a thread. Beyond
/// that it is not called, until one does.
pub const MAX_STUCK: usize = 8;

/// Marks a hook that gives back a value at once.
#[derive(Debug)]
pub enum Now {}

/// Marks a hook that gives back a future.
#[derive(Debug)]
pub enum Later {}

/// What a hook gives back: a `T`, or a future of one. A closure is called on a thread where it may
/// block, if it gives back a value; if it gives back a future, that is a task of its own, where it may
/// not. `M` is [`Now`] or [`Later`], and is inferred.
pub trait HookReply<T, M>: Send + Sized + 'static {
    #[doc(hidden)]
    fn begin(call: Box<dyn FnOnce() -> Self + Send>, lane: Lane) -> BoxFuture<'static, Had<T>>;
}

/// What was had of a hook.
#[doc(hidden)]
pub(crate) type Had<T> = Result<T, Fault>;

/// Why nothing was had of a hook.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It panicked, or said what is wrong.
    Broke(String),
    /// It did not come back in time.
    Slow(Duration),
    /// It has not come back from too many earlier calls.
    Stuck,
}

/// How long a hook may take, and how many of its calls are stuck.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Lane {
    pub(super) timeout: Duration,
    pub(super) stuck: Arc<AtomicUsize>,
}

impl<T: Send + 'static> HookReply<T, Now> for T {
    fn begin(call: Box<dyn FnOnce() -> T + Send>, lane: Lane) -> BoxFuture<'static, Had<T>> {
        Box::pin(async move {
            if lane.stuck.load(Ordering::SeqCst) >= MAX_STUCK {
                return Err(Fault::Stuck);
            }
            // Two threads: one that waits, and comes back in time for a runtime that shuts down,
            // and one that may be lost to the hook.
            let (sent, got) = mpsc::channel();
            let _given_up = GiveUp(sent.clone());
            let waits = tokio::task::spawn_blocking(move || on_a_thread(call, &lane, sent, &got));
            waits.await.unwrap_or_else(|error| Err(Fault::broke(error)))
        })
    }
}

/// What ends the wait for a hook on a thread.
enum Heard<T> {
    /// It came back, or panicked with these words.
    Hook(Result<T, String>),
    /// Nobody waits for it any more.
    GivenUp,
}

/// Ends the wait when the future that it is for is dropped: a hook that does not come back would hold
/// up the end of the runtime otherwise.
struct GiveUp<T>(Sender<Heard<T>>);

impl<T> Drop for GiveUp<T> {
    fn drop(&mut self) {
        // The wait may be over.
        let _ = self.0.send(Heard::GivenUp);
    }
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> HookReply<T, Later> for F {
    fn begin(call: Box<dyn FnOnce() -> F + Send>, lane: Lane) -> BoxFuture<'static, Had<T>> {
        Box::pin(async move {
            let mut task = JoinSet::new();
            task.spawn(async move { call().await }.in_current_span());
            match tokio::time::timeout(lane.timeout, task.join_next()).await {
                Ok(Some(Ok(had))) => Ok(had),
                Ok(Some(Err(error))) if error.is_panic() => {
                    Err(Fault::Broke(said_by(&*error.into_panic())))
                }
                Ok(_) => Err(Fault::Broke("it was stopped".to_owned())),
                Err(_) => Err(Fault::Slow(lane.timeout)),
            }
        })
    }
}

fn on_a_thread<T: Send + 'static>(
    call: Box<dyn FnOnce() -> T + Send>,
    lane: &Lane,
    sent: Sender<Heard<T>>,
    got: &Receiver<Heard<T>>,
) -> Result<T, Fault> {
    let runtime = tokio::runtime::Handle::current();
    // Whoever comes second, the hook or the end of the wait, finds it set.
    let over = Arc::new(AtomicBool::new(false));
    let (ended, stuck) = (Arc::clone(&over), Arc::clone(&lane.stuck));
    let body = move || {
        let _entered = runtime.enter();
        let had = std::panic::catch_unwind(AssertUnwindSafe(call));
        // Nobody listens where it took too long.
        let _ = sent.send(Heard::Hook(had.map_err(|panic| said_by(&*panic))));
        if ended.swap(true, Ordering::SeqCst) {
            stuck.fetch_sub(1, Ordering::SeqCst);
        }
    };
    let thread = thread::Builder::new().name("plimsoll-hook".to_owned());
    thread.spawn(body).map_err(Fault::broke)?;
    if let Ok(Heard::Hook(had)) = got.recv_timeout(lane.timeout) {
        return had.map_err(Fault::Broke);
    }
    lane.stuck.fetch_add(1, Ordering::SeqCst);
    if over.swap(true, Ordering::SeqCst) {
        lane.stuck.fetch_sub(1, Ordering::SeqCst);
    }
    Err(Fault::Slow(lane.timeout))
}

impl Fault {
    fn broke(error: impl ToString) -> Self {
        Self::Broke(error.to_string())
    }

    /// What became of the hook, as the end of a sentence that begins with its name.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Broke(text) if text.is_empty() => "broke down".to_owned(),
            Self::Broke(text) => format!("broke down: {text}"),
            Self::Slow(timeout) => {
                format!("did not come back within {} s", timeout.as_secs_f32())
            }
            Self::Stuck => "was not called: earlier calls of it have not come back".to_owned(),
        }
    }
}

/// What a panic said.
pub(crate) fn said_by(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}
