//! [`Ear`]: stands between the SDK and a server's messages. It hands progress to the calls that
//! it is of, notes that the tools have changed, finds the request that an error is for where the
//! server does not say it, drops what nobody asked for, and counts. It answers nothing.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::time::Instant;

/// What a server says unasked within [`MCP_NOTICES_IN`], at most: requests, notifications, answers to
/// nothing, lines that are no message. One that says more floods, and is ended.
pub const MCP_NOTICES: usize = 5_000;
/// The time in which they are counted.
pub const MCP_NOTICES_IN: Duration = Duration::from_secs(10);

/// What was heard of a server besides its answers.
#[derive(Default)]
pub(super) struct Heard {
    has_changed: AtomicBool,
    /// Calls that were given up since it last said anything.
    silences: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The calls that wait; one entry a call.
    calls: HashMap<ProgressToken, ToolContext>,
    /// The requests that have no answer yet; one entry each. As text: some servers make the number
    /// a string.
    asked: HashSet<String>,
    misuse: Option<Misuse>,
    began: Option<Instant>,
    /// What was said unasked since.
    count: usize,
    /// Lines that were read since and have not become a message, or not yet.
    lines: usize,
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

    /// A call was given up.
    pub(super) fn was_silent(&self) {
        self.silences.fetch_add(1, Ordering::AcqRel);
    }

    /// How many calls were given up since it last said anything.
    pub(super) fn silences(&self) -> u32 {
        self.silences.load(Ordering::Acquire)
    }

    /// So many lines were read of it: whether it may go on. Each that becomes a message is taken off
    /// again.
    pub(super) fn reads(&self, lines: usize) -> bool {
        let mut inner = self.lock();
        inner.renew();
        inner.lines = inner.lines.saturating_add(lines);
        inner.is_in_bounds()
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

    fn asks(&self, id: &RequestId) {
        self.lock().asked.insert(id.to_string());
    }

    /// Nobody waits for an answer to this any more, or it was never sent.
    pub(super) fn gives_up(&self, id: &RequestId) {
        self.lock().asked.remove(&id.to_string());
    }

    /// One more message has come: whether it may go on.
    fn hears(&self, message: &mut ServerJsonRpcMessage) -> bool {
        self.silences.store(0, Ordering::Release);
        let mut inner = self.lock();
        inner.renew();
        inner.lines = inner.lines.saturating_sub(1);
        let was_asked = match message {
            JsonRpcMessage::Response(response) => inner.asked.remove(&response.id.to_string()),
            JsonRpcMessage::Error(error) => {
                // Where it cannot say for which request an error is, and only one waits, it is that.
                if error.id.is_none()
                    && inner.asked.len() == 1
                    && let Some(only) = inner.asked.iter().next()
                {
                    error.id = Some(request_id(only));
                }
                let id = error.id.as_ref().map(RequestId::to_string);
                id.is_some_and(|id| inner.asked.remove(&id))
            }
            _ => false,
        };
        if !was_asked {
            inner.count = inner.count.saturating_add(1);
        }
        inner.is_in_bounds()
    }

    /// Nothing that panics is done under the lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Begins to count anew where the time is over.
    fn renew(&mut self) {
        let now = Instant::now();
        let fresh = |began: Instant| now.duration_since(began) < MCP_NOTICES_IN;
        if !self.began.is_some_and(fresh) {
            self.began = Some(now);
            (self.count, self.lines) = (0, 0);
        }
    }

    fn is_in_bounds(&self) -> bool {
        self.count.saturating_add(self.lines) <= MCP_NOTICES
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
        let asked = match &item {
            JsonRpcMessage::Request(request) => {
                self.heard.asks(&request.id);
                Some(request.id.clone())
            }
            _ => None,
        };
        if let JsonRpcMessage::Request(request) = &item
            && let Some(Listener(cx)) = request.request.extensions().get::<Listener>()
            && let Some(token) = request.request.get_meta().get_progress_token()
        {
            self.heard.listen(token, cx.clone());
        }
        let (sent, heard) = (self.transport.send(item), Arc::clone(&self.heard));
        async move {
            let sent = sent.await;
            if let (Err(_), Some(asked)) = (&sent, asked) {
                heard.gives_up(&asked);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let mut message = self.transport.receive().await?;
            if !self.heard.hears(&mut message) {
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

/// The id that was written as this.
fn request_id(text: &str) -> RequestId {
    match text.parse() {
        Ok(number) => RequestId::Number(number),
        Err(_) => RequestId::String(text.into()),
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
