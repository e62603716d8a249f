//! [`Outbox`]: sends updates to the client. For a client that does not read, updates are dropped
//! beyond a limit, so that its runs continue.

use std::future::ready;
use std::io;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionId, SessionNotification, SessionUpdate,
};
use agent_client_protocol::{Client, Lines};
use futures_util::{Sink, Stream, StreamExt, sink, stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::Semaphore;

use crate::input::INPUT_LIMIT;

/// Maximum number of updates that wait for the client. The size of each is bounded.
const MAX_WAITING: usize = 8_192;
/// A permit for each update that may still wait for the client.
static PERMITS: Semaphore = Semaphore::const_new(MAX_WAITING);
/// A part of every update's line. Within a text, its quotes would be escaped.
const UPDATE: &str = "\"method\":\"session/update\"";

/// Sends the updates of one session.
#[derive(Clone)]
pub(super) struct Outbox {
    pub(super) client: ConnectionTo<Client>,
    pub(super) session: SessionId,
}

/// Returns standard input and output as a connection. An update that is written gives its permit back. A
/// line beyond the limit of the input is read as several, which are refused.
pub(super) fn stdio()
-> Lines<impl Sink<String, Error = io::Error> + Send, impl Stream<Item = io::Result<String>> + Send>
{
    let outgoing = sink::unfold(stdout(), |mut out, line: String| async move {
        if line.contains(UPDATE) {
            PERMITS.add_permits(1);
        }
        // A client that does not read any more closes its end of the input as well.
        let _ = out.write_all((line + "\n").as_bytes()).await;
        let _ = out.flush().await;
        Ok(out)
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

impl Outbox {
    /// Sends an update, unless too many wait.
    pub(super) fn send(&self, update: SessionUpdate) {
        if let Ok(permit) = PERMITS.try_acquire() {
            permit.forget();
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
            _ = PERMITS.acquire() => {}
            () = self.client.incoming_closed() => {}
        }
    }
}
