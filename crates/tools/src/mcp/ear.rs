//! [`Ear`]: stands between the SDK and a server's messages. It hands progress to the calls that
//! it is of, notes that the tools have changed, finds the request that an error is for where the
//! server does not say it, drops what nobody asked for, and counts. It answers nothing.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// How long a call has to wait to say something of its server's silence where it is given up; half
/// of its own limit where that is less. What is given up sooner was interrupted.
pub const MCP_SILENCE: Duration = Duration::from_secs(10);

/// What was heard of a server besides its answers.
#[derive(Default)]
pub(super) struct Heard {
    has_changed: AtomicBool,
    inner: Mutex<Inner>,
}

/// When a request began to be waited for, and what was known of its server's silence then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    since: Instant,
    limit: Duration,
    /// How many messages had come of it.
    messages: u64,
    silences: u32,
}

#[derive(Default)]
struct Inner {
    /// What it has said, ever.
    messages: u64,
    /// Waits in vain, one after the other, since it last said anything.
    silences: u32,
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

    /// It is waited for an answer from now on.
    pub(super) fn waits(&self, limit: Duration) -> Wait {
        let inner = self.lock();
        Wait {
            since: Instant::now(),
            limit,
            messages: inner.messages,
            silences: inner.silences,
        }
    }

    /// It is not waited for any more, and no answer has come. This is a silence where it was waited
    /// for long enough. Waits that overlap are one together: each adds to what it found.
    pub(super) fn was_in_vain(&self, wait: &Wait) {
        if wait.since.elapsed() < (wait.limit / 2).min(MCP_SILENCE) {
            return;
        }
        let mut inner = self.lock();
        let before = match inner.messages == wait.messages {
            true => wait.silences,
            false => 0,
        };
        inner.silences = inner.silences.max(before.saturating_add(1));
    }

    /// How often it was waited for in vain since it last said anything.
    pub(super) fn silences(&self) -> u32 {
        self.lock().silences
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
        let mut inner = self.lock();
        inner.messages = inner.messages.wrapping_add(1);
        inner.silences = 0;
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

impl Wait {
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether it has to be asked for a sign of life: it was silent the last time.
    pub(super) fn is_doubtful(&self) -> bool {
        self.silences > 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_was_waited_for_is_a_silence_and_what_overlaps_is_one() {
        // The limit, how long it was waited, and what is counted.
        for (limit, waited, silences) in [
            (300, 9, 0),
            (300, 10, 1),
            (30, 9, 0),
            (30, 30, 1),
            (4, 1, 0),
            (4, 2, 1),
        ] {
            let heard = Heard::default();
            for round in 1..=2 {
                let waits = [(); 3].map(|()| heard.waits(Duration::from_secs(limit)));
                tokio::time::advance(Duration::from_secs(waited)).await;
                for wait in &waits {
                    heard.was_in_vain(wait);
                }
                assert_eq!(heard.silences(), silences * round, "{waited} of {limit} s");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_word_that_was_heard_meanwhile_begins_the_count_anew() {
        let heard = Heard::default();
        let limit = Duration::from_secs(30);
        let word = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        for _ in 0..3 {
            let wait = heard.waits(limit);
            assert!(heard.hears(&mut serde_json::from_str(word).unwrap()));
            tokio::time::advance(limit).await;
            heard.was_in_vain(&wait);
            assert_eq!(heard.silences(), 1);
        }
    }
}
