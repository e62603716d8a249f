//! [`Outbox`]: sends updates to the client. For a client that does not read, updates are dropped
//! beyond a limit, so that its runs continue.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionId, SessionNotification, SessionUpdate,
};
use agent_client_protocol::{Client, Lines};
use futures_util::{Sink, Stream, StreamExt, sink, stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::input::INPUT_LIMIT;

/// Maximum number of updates that wait for the client. The size of each is bounded.
const MAX_WAITING: usize = 8_192;
/// A part of every update's line. Within a text, its quotes would be escaped.
const UPDATE: &str = "\"method\":\"session/update\"";

/// Sends the updates of one session.
#[derive(Clone)]
pub(super) struct Outbox {
    pub(super) client: ConnectionTo<Client>,
    pub(super) session: SessionId,
    pub(super) waiting: Arc<WaitingUpdates>,
}

/// The updates that the client has not read yet.
pub(super) struct WaitingUpdates {
    /// A permit for each update that may be added.
    room: Semaphore,
    /// Whether an update was dropped.
    has_dropped: AtomicBool,
}

impl WaitingUpdates {
    pub(super) fn new() -> Self {
        Self {
            room: Semaphore::new(MAX_WAITING),
            has_dropped: AtomicBool::new(false),
        }
    }

    /// Returns standard input and output as a connection. Its updates are counted. A line beyond the
    /// limit of the input is read as several, which are refused.
    pub(super) fn stdio(
        self: &Arc<Self>,
    ) -> Lines<
        impl Sink<String, Error = io::Error> + Send + use<>,
        impl Stream<Item = io::Result<String>> + Send + use<>,
    > {
        let waiting = Arc::clone(self);
        let outgoing = sink::unfold(stdout(), move |mut out, line: String| {
            let waiting = Arc::clone(&waiting);
            async move {
                if line.contains(UPDATE) {
                    waiting.room.add_permits(1);
                }
                // A client that does not read any more closes its end of the input as well.
                let _ = out.write_all((line + "\n").as_bytes()).await;
                let _ = out.flush().await;
                Ok(out)
            }
        });
        let incoming = stream::unfold(BufReader::new(stdin()), |mut input| async move {
            let mut line = String::new();
            match (&mut input).take(INPUT_LIMIT).read_line(&mut line).await {
                Ok(0) => None,
                Ok(_) => Some((Ok(line), input)),
                Err(error) => Some((Err(error), input)),
            }
        });
        let is_blank =
            |line: &io::Result<String>| line.as_ref().is_ok_and(|line| line.trim().is_empty());
        let incoming = incoming.filter(move |line| ready(!is_blank(line)));
        Lines::new(outgoing, incoming)
    }

    /// Counts a new update. Returns `false` if it has to be dropped.
    fn add(&self) -> bool {
        let added = self.room.try_acquire().map(SemaphorePermit::forget);
        if added.is_err() && !self.has_dropped.swap(true, Ordering::SeqCst) {
            say!("the client does not read, so updates are dropped");
        }
        added.is_ok()
    }
}

impl Outbox {
    /// Sends an update.
    pub(super) fn send(&self, update: SessionUpdate) {
        if self.waiting.add() {
            let update = SessionNotification::new(self.session.clone(), update);
            // An error means that the connection has ended.
            let _ = self.client.send_notification(update);
        }
    }

    /// Sends a text in the agent's name.
    pub(super) fn say(&self, text: &str) {
        let chunk = ContentChunk::new(ContentBlock::from(text));
        self.send(SessionUpdate::AgentMessageChunk(chunk));
    }

    /// Sends a thought of the agent.
    pub(super) fn think(&self, text: &str) {
        let chunk = ContentChunk::new(ContentBlock::from(text));
        self.send(SessionUpdate::AgentThoughtChunk(chunk));
    }

    /// Waits until an update would not be dropped, or until the connection ends.
    pub(super) async fn space(&self) {
        tokio::select! {
            _ = self.waiting.room.acquire() => {}
            () = self.client.incoming_closed() => {}
        }
    }
}
