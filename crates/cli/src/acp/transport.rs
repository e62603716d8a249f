//! Reads and writes the messages of the protocol, one per line, on standard input and output. Lines
//! that are not JSON are rejected at once.

use std::collections::VecDeque;
use std::io::{self, BufReader, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, SessionId, SessionNotification, SessionUpdate,
};
use agent_client_protocol::{ErrorCode, RawJsonRpcMessage};
use futures_util::{Sink, Stream, sink, stream};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc::channel;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::error::CliError;
use crate::input;
use crate::lock;

/// Maximum size of the pending output, in bytes, for a client that does not read. Beyond it,
/// updates are dropped, so the run continues; all other messages wait.
const MAX_WAITING: usize = 16 * 1024 * 1024;
/// Maximum number of lines that wait to be handled. Further lines stay in the pipe.
const INCOMING: usize = 4;
/// Maximum wait for a client that does not read, after it has ended the connection.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The protocol's method for an update.
const UPDATE: &str = "session/update";

/// The kind of a streamed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Agent,
    Thought,
}

/// The pending output, in order.
pub(super) struct Outbox {
    waiting: Mutex<OutboxState>,
    /// Signalled when output is added or the connection ends.
    more: Condvar,
    /// Signalled when output has been written.
    room: Notify,
}

#[derive(Default)]
struct OutboxState {
    queue: VecDeque<OutboxItem>,
    bytes: usize,
    /// The number of updates that were dropped since the client last read.
    left_out: u64,
    ended: bool,
    /// Whether the client has closed its end.
    failed: bool,
}

enum OutboxItem {
    Line(String),
    /// Consecutive pieces of text are sent as one.
    Text {
        session: SessionId,
        voice: TextKind,
        text: String,
    },
}

/// The thread that writes.
pub(super) struct WriterThread {
    outbox: Arc<Outbox>,
    done: oneshot::Receiver<()>,
}

impl Outbox {
    /// Starts the thread that writes the output.
    pub(super) fn start() -> (Arc<Self>, WriterThread) {
        let outbox = Arc::new(Self {
            waiting: Mutex::default(),
            more: Condvar::new(),
            room: Notify::new(),
        });
        let (sender, done) = oneshot::channel();
        let writer = Arc::clone(&outbox);
        // The thread ends with the process: a blocking write to a pipe cannot be interrupted.
        std::thread::spawn(move || {
            writer.write_all();
            let _ = sender.send(());
        });
        let writer = WriterThread {
            outbox: Arc::clone(&outbox),
            done,
        };
        (outbox, writer)
    }

    /// Adds a piece of text.
    pub(super) fn text(&self, session: &SessionId, voice: TextKind, text: &str) {
        let mut waiting = lock(&self.waiting);
        if !waiting.has_room() {
            waiting.leave_out();
            return;
        }
        waiting.bytes += text.len();
        match waiting.queue.back_mut() {
            Some(OutboxItem::Text {
                session: of,
                voice: same,
                text: before,
            }) if of == session && *same == voice => before.push_str(text),
            _ => waiting.queue.push_back(OutboxItem::Text {
                session: session.clone(),
                voice,
                text: text.to_owned(),
            }),
        }
        drop(waiting);
        self.more.notify_one();
    }

    /// Adds an update.
    pub(super) fn update(&self, session: &SessionId, update: SessionUpdate) {
        let Some(line) = line_of(session, update) else {
            return;
        };
        let mut waiting = lock(&self.waiting);
        if waiting.has_room() {
            waiting.push(line)
        } else {
            waiting.leave_out()
        }
        drop(waiting);
        self.more.notify_one();
    }

    /// Waits until an update would not be dropped.
    pub(super) async fn room(&self) {
        loop {
            // Registering before the check ensures that no notification is missed.
            let room = self.room.notified();
            {
                let waiting = lock(&self.waiting);
                if waiting.has_room() || waiting.failed {
                    return;
                }
            }
            room.await;
        }
    }

    /// Returns a sink for the connection's messages.
    pub(super) fn sink(self: &Arc<Self>) -> impl Sink<String, Error = io::Error> + use<> {
        let outbox = Arc::clone(self);
        sink::unfold(outbox, |outbox, line: String| async move {
            outbox.room().await;
            outbox.put(line)?;
            Ok(outbox)
        })
    }

    /// Returns `true` if the client does not read any more.
    pub(super) fn has_failed(&self) -> bool {
        lock(&self.waiting).failed
    }

    fn put(&self, line: String) -> io::Result<()> {
        let mut waiting = lock(&self.waiting);
        if waiting.failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        waiting.push(line);
        drop(waiting);
        self.more.notify_one();
        Ok(())
    }

    /// Rejects a line that is no message.
    fn refuse(&self, code: ErrorCode, message: &str) {
        let code = code.value();
        let error =
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
        let _ = self.put(error.to_string());
    }

    fn write_all(&self) {
        let mut out = io::stdout();
        while let Some(queued) = self.next() {
            let Some(mut line) = queued.into_line() else {
                continue;
            };
            line.push('\n');
            let written = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            if written.is_err() {
                let mut waiting = lock(&self.waiting);
                (waiting.failed, waiting.bytes) = (true, 0);
                waiting.queue.clear();
            }
            // Both the connection and a session that is being loaded may wait.
            self.room.notify_waiters();
        }
    }

    /// Waits for the next output. Returns `None` at the end.
    fn next(&self) -> Option<OutboxItem> {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(queued) = waiting.queue.pop_front() {
                waiting.bytes = waiting.bytes.saturating_sub(queued.len());
                return Some(queued);
            }
            if waiting.left_out > 0 {
                say!(
                    "the client did not read; {} updates were dropped",
                    waiting.left_out
                );
                waiting.left_out = 0;
            }
            if waiting.ended {
                return None;
            }
            waiting = self
                .more
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl WriterThread {
    /// Waits until everything is written, at most for [`LAST_WORDS`].
    pub(super) async fn end(self) {
        lock(&self.outbox.waiting).ended = true;
        self.outbox.more.notify_one();
        let _ = timeout(LAST_WORDS, self.done).await;
    }
}

impl OutboxState {
    fn has_room(&self) -> bool {
        self.bytes < MAX_WAITING
    }

    fn push(&mut self, line: String) {
        if self.failed {
            return;
        }
        self.bytes += line.len();
        self.queue.push_back(OutboxItem::Line(line));
    }

    fn leave_out(&mut self) {
        self.left_out += 1;
    }
}

impl OutboxItem {
    fn len(&self) -> usize {
        match self {
            Self::Line(text) | Self::Text { text, .. } => text.len(),
        }
    }

    fn into_line(self) -> Option<String> {
        match self {
            Self::Line(line) => Some(line),
            Self::Text {
                session,
                voice,
                text,
            } => {
                let chunk = ContentChunk::new(ContentBlock::from(text));
                let update = match voice {
                    TextKind::Agent => SessionUpdate::AgentMessageChunk(chunk),
                    TextKind::Thought => SessionUpdate::AgentThoughtChunk(chunk),
                };
                line_of(&session, update)
            }
        }
    }
}

/// Serializes the message of an update.
fn line_of(session: &SessionId, update: SessionUpdate) -> Option<String> {
    let notification = SessionNotification::new(session.clone(), update);
    let params = serde_json::to_value(notification).ok()?;
    let message = RawJsonRpcMessage::notification(UPDATE.to_owned(), params).ok()?;
    serde_json::to_string(&message).ok()
}

/// Returns the lines of standard input that are JSON. Other lines are rejected at once.
pub(super) fn incoming(
    outbox: &Arc<Outbox>,
) -> impl Stream<Item = io::Result<String>> + Send + use<> {
    let (lines, mut receiver) = channel(INCOMING);
    let outbox = Arc::clone(outbox);
    // The thread ends with the process: a blocking read from a pipe cannot be interrupted.
    std::thread::spawn(move || {
        let mut input: Box<dyn io::BufRead> = Box::new(BufReader::new(io::stdin()));
        while let Some(line) = input::line(&mut input) {
            match line.and_then(checked) {
                Ok(line) if line.is_empty() => {}
                Ok(line) => {
                    if lines.blocking_send(Ok(line)).is_err() {
                        return;
                    }
                }
                Err(stop) => outbox.refuse(ErrorCode::PARSE_ERROR, &stop.text),
            }
        }
    });
    stream::poll_fn(move |context| receiver.poll_recv(context))
}

fn checked(line: String) -> Result<String, CliError> {
    if line.trim().is_empty() {
        return Ok(String::new());
    }
    match serde_json::from_str::<IgnoredAny>(&line) {
        Ok(_) => Ok(line),
        Err(error) => Err(CliError::usage(format!(
            "the line is not JSON ({error}); send one JSON-RPC message per line"
        ))),
    }
}
