//! [`TransportTap`]: a transport between the SDK and a server that inspects the messages.
//!
//! It forwards progress to the calls, notes changes of the tools, adds missing request ids to errors,
//! drops unrequested messages, and counts. It never answers.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_core::ToolContext;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::Transport;
use tokio::time::Instant;

use super::lock;

/// Maximum number of unrequested items from a server within [`MCP_NOTICES_IN`]: requests,
/// notifications, answers without a request, and lines that are not messages. A server that sends more
/// is stopped.
pub const MCP_NOTICES: usize = 5_000;
/// The period in which they are counted.
pub const MCP_NOTICES_IN: Duration = Duration::from_secs(10);

/// The minimum duration of a cancelled call that counts as a silence of its server; half of the call's
/// own limit if that is less. A call that is cancelled earlier was interrupted.
pub const MCP_SILENCE: Duration = Duration::from_secs(10);

/// The state of a server besides its answers.
#[derive(Default)]
pub(super) struct ServerActivity {
    has_changed: AtomicBool,
    inner: Mutex<ActivityState>,
}

/// The start of waiting for a request, and the state of the server at that time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    since: Instant,
    limit: Duration,
    /// Number of messages received at that time.
    messages: u64,
    silences: u32,
}

#[derive(Default)]
struct ActivityState {
    /// Total number of messages.
    messages: u64,
    /// Number of consecutive unanswered waits since the last message.
    silences: u32,
    /// The waiting calls, one entry for each.
    calls: HashMap<ProgressToken, ToolContext>,
    /// The requests without an answer, one entry for each. Ids are stored as text, because some servers
    /// return a number as a string.
    asked: HashSet<String>,
    misuse: Option<Misuse>,
    began: Option<Instant>,
    /// Number of unrequested messages in the current period.
    count: usize,
    /// Number of lines read in the current period that have not become a message yet.
    lines: usize,
}

/// The reason why we closed a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misuse {
    /// A message was too large.
    TooLong,
    /// There were too many messages.
    Flood,
}

/// The receiver of a request's progress. Stored in the request's extensions, which are not sent.
#[derive(Clone)]
pub(super) struct Listener(pub(super) ToolContext);

/// A transport that inspects messages first.
pub(super) struct TransportTap<T> {
    transport: T,
    activity: Arc<ServerActivity>,
}

impl ServerActivity {
    /// Returns `true` if the server has reported a change of its tools.
    pub(super) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    pub(super) fn set_changed(&self, changed: bool) {
        self.has_changed.store(changed, Ordering::Release);
    }

    pub(super) fn misused(&self, misuse: Misuse) {
        lock(&self.inner).misuse.get_or_insert(misuse);
    }

    pub(super) fn misuse(&self) -> Option<Misuse> {
        lock(&self.inner).misuse
    }

    /// Starts to wait for an answer.
    pub(super) fn waits(&self, limit: Duration) -> Wait {
        let inner = lock(&self.inner);
        Wait {
            since: Instant::now(),
            limit,
            messages: inner.messages,
            silences: inner.silences,
        }
    }

    /// Handles the end of a wait without an answer. It counts as a silence if it lasted long enough.
    /// Overlapping waits count as one, because each adds to the number at its start.
    pub(super) fn was_in_vain(&self, wait: &Wait) {
        if wait.since.elapsed() < (wait.limit / 2).min(MCP_SILENCE) {
            return;
        }
        let mut inner = lock(&self.inner);
        let before = if inner.messages == wait.messages {
            wait.silences
        } else {
            0
        };
        inner.silences = inner.silences.max(before.saturating_add(1));
    }

    /// Returns the number of unanswered waits since the last message.
    pub(super) fn silences(&self) -> u32 {
        lock(&self.inner).silences
    }

    /// Counts lines read. Returns `false` if there were too many. Lines that become a message are
    /// subtracted later.
    pub(super) fn reads(&self, lines: usize) -> bool {
        let mut inner = lock(&self.inner);
        inner.renew();
        inner.lines = inner.lines.saturating_add(lines);
        inner.is_in_bounds()
    }

    /// Removes a call that no longer waits.
    pub(super) fn forget(&self, token: &ProgressToken) {
        lock(&self.inner).calls.remove(token);
    }

    fn listen(&self, token: ProgressToken, cx: ToolContext) {
        lock(&self.inner).calls.insert(token, cx);
    }

    fn tell(&self, progress: &ProgressNotificationParam) {
        let cx = lock(&self.inner)
            .calls
            .get(&progress.progress_token)
            .cloned();
        if let Some(cx) = cx {
            cx.update(progress_text(progress));
        }
    }

    fn asks(&self, id: &RequestId) {
        lock(&self.inner).asked.insert(id.to_string());
    }

    /// Removes a request that no longer waits for an answer, or was never sent.
    pub(super) fn gives_up(&self, id: &RequestId) {
        lock(&self.inner).asked.remove(&id.to_string());
    }

    /// Counts a message. Returns `false` if there were too many.
    fn hears(&self, message: &mut ServerJsonRpcMessage) -> bool {
        let mut inner = lock(&self.inner);
        inner.messages = inner.messages.wrapping_add(1);
        inner.silences = 0;
        inner.renew();
        inner.lines = inner.lines.saturating_sub(1);
        let was_asked = match message {
            JsonRpcMessage::Response(response) => inner.asked.remove(&response.id.to_string()),
            JsonRpcMessage::Error(error) => {
                // If an error has no id and only one request is waiting, the error belongs to that
                // request.
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
}

impl ActivityState {
    /// Resets the counters at the start of a new period.
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

    /// Returns `true` if the server did not answer the last time, so that a ping is needed.
    pub(super) fn is_doubtful(&self) -> bool {
        self.silences > 0
    }
}

impl<T> TransportTap<T> {
    pub(super) fn new(transport: T, activity: Arc<ServerActivity>) -> Self {
        Self {
            transport,
            activity,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for TransportTap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let asked = match &item {
            JsonRpcMessage::Request(request) => {
                self.activity.asks(&request.id);
                Some(request.id.clone())
            }
            _ => None,
        };
        if let JsonRpcMessage::Request(request) = &item
            && let Some(Listener(cx)) = request.request.extensions().get::<Listener>()
            && let Some(token) = request.request.get_meta().get_progress_token()
        {
            self.activity.listen(token, cx.clone());
        }
        let (sent, activity) = (self.transport.send(item), Arc::clone(&self.activity));
        async move {
            let sent = sent.await;
            if let (Err(_), Some(asked)) = (&sent, asked) {
                activity.gives_up(&asked);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let mut message = self.transport.receive().await?;
            if !self.activity.hears(&mut message) {
                self.activity.misused(Misuse::Flood);
                return None;
            }
            match message {
                JsonRpcMessage::Notification(said) => match said.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        self.activity.tell(&progress.params);
                    }
                    ServerNotification::ToolListChangedNotification(_) => {
                        self.activity.set_changed(true);
                    }
                    // Log messages and resources are ignored.
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

/// Parses the text form of an id.
fn request_id(text: &str) -> RequestId {
    match text.parse() {
        Ok(number) => RequestId::Number(number),
        Err(_) => RequestId::String(text.into()),
    }
}

/// Formats progress as `3/10: reading`; missing parts are omitted.
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
        // The limit, the duration of the wait, and the expected number of silences.
        for (limit, waited, silences) in [
            (300, 9, 0),
            (300, 10, 1),
            (30, 9, 0),
            (30, 30, 1),
            (4, 1, 0),
            (4, 2, 1),
        ] {
            let activity = ServerActivity::default();
            for round in 1..=2 {
                let waits = [(); 3].map(|()| activity.waits(Duration::from_secs(limit)));
                tokio::time::advance(Duration::from_secs(waited)).await;
                for wait in &waits {
                    activity.was_in_vain(wait);
                }
                assert_eq!(
                    activity.silences(),
                    silences * round,
                    "{waited} of {limit} s"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_word_that_was_heard_meanwhile_begins_the_count_anew() {
        let activity = ServerActivity::default();
        let limit = Duration::from_secs(30);
        let word = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        for _ in 0..3 {
            let wait = activity.waits(limit);
            assert!(activity.hears(&mut serde_json::from_str(word).unwrap()));
            tokio::time::advance(limit).await;
            activity.was_in_vain(&wait);
            assert_eq!(activity.silences(), 1);
        }
    }
}
