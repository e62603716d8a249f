//! [`HookReply`]: the return types of hooks, and their execution with a timeout and contained
//! panics.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::Messages;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::error::panic_message;
use crate::remote::UserMessage;

/// Maximum number of calls of one hook that have timed out and are still running. Each occupies a
/// thread. Further calls are skipped until one returns.
pub const MAX_STUCK: usize = 8;

/// The answer of one hook.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HookOutput {
    /// Nothing is changed.
    Nothing,
    /// A refusal with its reason, which may be empty.
    Deny(String),
    /// Other arguments of a tool call.
    Arguments(Value),
    /// Another text of a result.
    Result(String),
    /// Other messages of a request.
    Request(Messages),
    /// Messages to the model.
    Send(Vec<UserMessage>),
}

/// Marks a hook that returns a value.
#[derive(Debug)]
pub enum Now {}

/// Marks a hook that returns a future.
#[derive(Debug)]
pub enum Later {}

/// The return type of a hook: a `T`, or a future of a `T`.
///
/// A closure that returns a value runs on its own thread and may block. A returned future runs as a
/// task and must not block. `M` is [`Now`] or [`Later`], and is inferred.
pub trait HookReply<T, M>: Send + Sized + 'static {
    #[doc(hidden)]
    fn begin(
        call: Box<dyn FnOnce() -> Self + Send>,
        lane: HookSlot,
    ) -> BoxFuture<'static, HookResult<T>>;
}

/// The result of a hook call.
#[doc(hidden)]
pub(crate) type HookResult<T> = Result<T, HookFault>;

/// The reason why a hook call failed.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookFault {
    /// The hook panicked or returned an error.
    Broke(String),
    /// The hook timed out.
    Slow(Duration),
    /// Too many earlier calls of the hook are still running.
    Stuck,
}

/// The timeout of a hook and the number of its stuck calls.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct HookSlot {
    pub(crate) timeout: Duration,
    pub(crate) stuck: Arc<AtomicUsize>,
}

impl<T: Send + 'static> HookReply<T, Now> for T {
    fn begin(
        call: Box<dyn FnOnce() -> T + Send>,
        lane: HookSlot,
    ) -> BoxFuture<'static, HookResult<T>> {
        Box::pin(async move {
            let (sent, got) = mpsc::channel();
            let _given_up = GiveUp(sent.clone());
            let waits = tokio::task::spawn_blocking(move || lane.wait(call, sent, &got));
            waits
                .await
                .unwrap_or_else(|error| Err(HookFault::broke(error)))
        })
    }
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> HookReply<T, Later> for F {
    fn begin(
        call: Box<dyn FnOnce() -> F + Send>,
        lane: HookSlot,
    ) -> BoxFuture<'static, HookResult<T>> {
        Box::pin(async move {
            let mut task = JoinSet::new();
            task.spawn(async move { call().await }.in_current_span());
            match tokio::time::timeout(lane.timeout, task.join_next()).await {
                Ok(Some(Ok(had))) => Ok(had),
                Ok(Some(Err(error))) if error.is_panic() => {
                    Err(HookFault::Broke(panic_message(&*error.into_panic())))
                }
                Ok(_) => Err(HookFault::Broke("it was stopped".to_owned())),
                Err(_) => Err(HookFault::Slow(lane.timeout)),
            }
        })
    }
}

/// The end of a wait: the result of a hook or the text of its panic, or nothing.
type HookEnd<T> = Option<Result<T, String>>;

/// Ends the wait when it is dropped with its future, so that the runtime can shut down.
struct GiveUp<T>(Sender<HookEnd<T>>);

impl<T> Drop for GiveUp<T> {
    fn drop(&mut self) {
        // The wait may already be over.
        let _ = self.0.send(None);
    }
}

impl HookSlot {
    /// Calls a closure that may block on a thread of its own, and waits for it up to the timeout.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> HookResult<T> {
        let (sent, got) = mpsc::channel();
        self.wait(call, sent, &got)
    }

    fn wait<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
        sent: Sender<HookEnd<T>>,
        got: &Receiver<HookEnd<T>>,
    ) -> HookResult<T> {
        if self.stuck.load(Ordering::SeqCst) >= MAX_STUCK {
            return Err(HookFault::Stuck);
        }
        let runtime = Handle::try_current();
        // The later of the two, the call or the timeout, sees that it is set.
        let over = Arc::new(AtomicBool::new(false));
        let (ended, stuck) = (Arc::clone(&over), Arc::clone(&self.stuck));
        let body = move || {
            let _entered = runtime.as_ref().map(Handle::enter);
            let had = std::panic::catch_unwind(AssertUnwindSafe(call));
            // After a timeout nobody receives this.
            let _ = sent.send(Some(had.map_err(|panic| panic_message(&*panic))));
            if ended.swap(true, Ordering::SeqCst) {
                stuck.fetch_sub(1, Ordering::SeqCst);
            }
        };
        let thread = thread::Builder::new().name("plimsoll-hook".to_owned());
        thread.spawn(body).map_err(HookFault::broke)?;
        if let Ok(Some(had)) = got.recv_timeout(self.timeout) {
            return had.map_err(HookFault::Broke);
        }
        self.stuck.fetch_add(1, Ordering::SeqCst);
        if over.swap(true, Ordering::SeqCst) {
            self.stuck.fetch_sub(1, Ordering::SeqCst);
        }
        Err(HookFault::Slow(self.timeout))
    }
}

impl HookFault {
    fn broke(error: impl ToString) -> Self {
        Self::Broke(error.to_string())
    }

    /// Describes the failure, as the end of a sentence that begins with the hook's name.
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
