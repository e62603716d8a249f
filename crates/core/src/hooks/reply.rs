//! [`HookReply`]: the return types of hooks, and their execution with a timeout and contained
//! panics.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Messages, UserMessage};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::error::{in_own_task, panic_message};

/// Maximum number of calls of one hook at once. Each occupies a thread until it returns, after its
/// timeout as well. Further calls are skipped.
pub const MAX_HOOK_CALLS: usize = 64;

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
    /// Begins a call. An error completes a sentence that starts with the hook's name.
    #[doc(hidden)]
    fn begin(
        call: Box<dyn FnOnce() -> Self + Send>,
        slot: HookSlot,
    ) -> BoxFuture<'static, Result<T, String>>;
}

/// The timeout of a hook, and a permit for each thread that its calls may occupy.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct HookSlot {
    pub(crate) timeout: Duration,
    pub(crate) threads: Arc<Semaphore>,
}

impl<T: Send + 'static> HookReply<T, Now> for T {
    fn begin(
        call: Box<dyn FnOnce() -> T + Send>,
        slot: HookSlot,
    ) -> BoxFuture<'static, Result<T, String>> {
        Box::pin(async move {
            let (sent, got) = mpsc::channel();
            let _given_up = GiveUp(sent.clone());
            let waits = tokio::task::spawn_blocking(move || slot.wait(call, sent, &got));
            waits.await.unwrap_or_else(|error| Err(broke(error)))
        })
    }
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> HookReply<T, Later> for F {
    fn begin(
        call: Box<dyn FnOnce() -> F + Send>,
        slot: HookSlot,
    ) -> BoxFuture<'static, Result<T, String>> {
        Box::pin(async move {
            let ended = in_own_task(slot.timeout, async move { call().await }).await;
            ended.map_or_else(|| Err(slot.slow()), |ended| ended.map_err(broke))
        })
    }
}

/// The end of a wait: the result of a hook, or nothing.
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
    ) -> Result<T, String> {
        let (sent, got) = mpsc::channel();
        self.wait(call, sent, &got)
    }

    fn wait<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
        sent: Sender<HookEnd<T>>,
        got: &Receiver<HookEnd<T>>,
    ) -> Result<T, String> {
        let permit = Arc::clone(&self.threads).try_acquire_owned();
        let Ok(permit) = permit else {
            return Err("was not called: earlier calls of it have not come back".to_owned());
        };
        let runtime = Handle::try_current();
        let body = move || {
            let _permit = permit;
            let _entered = runtime.as_ref().map(Handle::enter);
            let had = std::panic::catch_unwind(AssertUnwindSafe(call));
            // After a timeout nobody receives this.
            let _ = sent.send(Some(had.map_err(|panic| broke(panic_message(&*panic)))));
        };
        let thread = thread::Builder::new().name("plimsoll-hook".to_owned());
        thread.spawn(body).map_err(broke)?;
        match got.recv_timeout(self.timeout) {
            Ok(Some(had)) => had,
            _ => Err(self.slow()),
        }
    }

    fn slow(&self) -> String {
        let timeout = self.timeout.as_secs_f32();
        format!("did not come back within {timeout} s")
    }
}

fn broke(why: impl ToString) -> String {
    match why.to_string().as_str() {
        "" => "broke down".to_owned(),
        why => format!("broke down: {why}"),
    }
}
