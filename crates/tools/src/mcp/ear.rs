//! [`Ear`]: stands between the SDK and a server's messages. It hands progress to the calls that
//! it is of, notes that the tools have changed, drops what nobody asked for, and counts. It answers
//! nothing.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::time::Instant;

/// Requests and notifications of a server within [`MCP_NOTICES_IN`], at most: one that says more
/// floods, and is ended.
pub const MCP_NOTICES: usize = 5_000;
/// The time in which they are counted.
pub const MCP_NOTICES_IN: Duration = Duration::from_secs(10);

/// What was heard of a server besides its answers.
#[derive(Default)]
pub(super) struct Heard {
    has_changed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The calls that wait; one entry a call.
    calls: HashMap<ProgressToken, ToolContext>,
    misuse: Option<Misuse>,
    began: Option<Instant>,
    count: usize,
}

/// Why we ended a connection ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misuse {
    /// A message larger than any may be.
    TooLong,
    /// More messages than anybody wants.
    Flood,
}

/// Put into a request's extensions, which are not sent: who is told of its progress.
#[derive(Clone)]
pub(super) struct Listener(pub(super) ToolContext);

/// A transport whose messages are heard first.
pub(super) struct Ear<T> {
    transport: T,
    heard: Arc<Heard>,
}

impl Heard {
    /// Whether the server has said that its tools are others now.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    pub(super) fn set_changed(&self, changed: bool) {
        self.has_changed.store(changed, Ordering::Release);
    }

    pub(super) fn misused(&self, misuse: Misuse) {
        self.lock().misuse.get_or_insert(misuse);
    }

    pub(super) fn misuse(&self) -> Option<Misuse> {
        self.lock().misuse
    }

    /// Nobody waits for this call any more.
    pub(super) fn forget(&self, token: &ProgressToken) {
        self.lock().calls.remove(token);
    }

    fn listen(&self, token: ProgressToken, cx: ToolContext) {
        self.lock().calls.insert(token, cx);
    }

    fn tell(&self, progress: &ProgressNotificationParam) {
        let cx = self.lock().calls.get(&progress.progress_token).cloned();
        if let Some(cx) = cx {
            cx.update(progress_text(progress));
        }
    }

    /// Whether one more message is within bounds.
    fn admits(&self) -> bool {
        let now = Instant::now();
        let mut inner = self.lock();
        let fresh = |began: Instant| now.duration_since(began) < MCP_NOTICES_IN;
        if !inner.began.is_some_and(fresh) {
            inner.began = Some(now);
            inner.count = 0;
        }
        inner.count += 1;
        inner.count <= MCP_NOTICES
    }

    /// Nothing that panics is done under the lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Ear<T> {
    pub(super) fn new(transport: T, heard: Arc<Heard>) -> Self {
        Self { transport, heard }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Ear<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item
            && let Some(Listener(cx)) = request.request.extensions().get::<Listener>()
            && let Some(token) = request.request.get_meta().get_progress_token()
        {
            self.heard.listen(token, cx.clone());
        }
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.transport.receive().await?;
            if matches!(
                message,
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)
            ) {
                return Some(message);
            }
            if !self.heard.admits() {
                self.heard.misused(Misuse::Flood);
                return None;
            }
            match message {
                JsonRpcMessage::Notification(said) => match said.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        self.heard.tell(&progress.params);
                    }
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.heard.set_changed(true);
                    }
                    // Logs and resources are nobody's concern here.
                    _ => {}
                },
                other => return Some(other),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await
    }
}

/// `3/10: reading`, as far as it is said.
fn progress_text(progress: &ProgressNotificationParam) -> String {
    let number = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref().filter(|text| !text.is_empty()) {
        Some(message) => format!("{number}: {message}"),
        None => number,
    }
}
