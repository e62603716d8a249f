//! [`receive`]: decodes the bytes of a successful response into a reply and passes on each piece as
//! it arrives. Accepts events, and a whole JSON reply from servers that do not stream. Works on any
//! stream of bytes and measures silence itself.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use plimsoll_context::{Bytes, Delta, Reply, Usage};
use plimsoll_wire::{StreamDecoder, WireError};
use tokio::time::{Instant, timeout};

use crate::event_stream::EventStreamReader;
use crate::http::{DRAIN_TIMEOUT, USAGE_GRACE};
use crate::sse::{EventKind, MAX_EVENT, ServerSentEvent, SseReader};

/// The maximum size of one response. A token takes a few hundred bytes, so only a faulty server
/// reaches this limit.
pub const MAX_STREAM: Bytes = Bytes(1024 * 1024 * 1024);
/// How many idle timeouts a server may fill with comments before an event must arrive. A model that
/// thinks behind a proxy may take long, but a proxy may also send comments forever for a model that
/// is gone.
pub const SILENCES_AN_EVENT: u32 = 12;
/// The error text if a response ends without its end mark.
const CUT: &str = "it ended too early";

/// The receiver of the pieces of a reply.
pub(crate) type Sink<'a> = &'a (dyn Fn(Delta) + Send + Sync);

/// The reasons why a response contains no usable reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BrokenResponse {
    /// No byte arrived for this long.
    Idle(Duration),
    /// Bytes arrived, but no event for this long.
    Wordless(Duration),
    /// The connection broke or ended in the middle of the reply.
    Cut(String),
    /// The response ended before the reply began.
    Empty,
    /// A web page: the address is not that of an API.
    Html,
    /// The reply is larger than allowed.
    TooLarge(String),
    /// The reply has more parts than allowed.
    TooManyParts(String),
    /// The provider sent an error in place of, or in the middle of, the reply.
    Refused(String),
    /// The response cannot be decoded.
    Garbled(String),
}

/// Splits the bytes of a response into events.
#[derive(Debug)]
pub(crate) enum EventReader {
    /// Server-sent events.
    Sse(SseReader),
    /// AWS's binary event stream.
    EventStream(EventStreamReader),
}

/// The form of a response.
enum AnswerForm {
    /// Only white space so far.
    Unknown,
    Events,
    /// JSON or a web page in one piece.
    Whole(Vec<u8>),
}

/// The state of a response that is arriving.
struct Receiver<'a> {
    events: EventReader,
    form: AnswerForm,
    decoder: Box<dyn StreamDecoder>,
    sink: Sink<'a>,
    bytes: u64,
    /// The usage that was last passed on.
    used: Option<Usage>,
    /// The time of the last event.
    told: Instant,
}

/// Reads a response to its end, or to the end of the reply in it.
pub(crate) async fn receive<S, B>(
    mut bytes: S,
    (events, decoder): (EventReader, Box<dyn StreamDecoder>),
    idle: Duration,
    sink: Sink<'_>,
) -> Result<Reply, BrokenResponse>
where
    S: Stream<Item = Result<B, String>> + Unpin,
    B: AsRef<[u8]>,
{
    let mut receiver = Receiver {
        events,
        form: AnswerForm::Unknown,
        decoder,
        sink,
        bytes: 0,
        used: None,
        told: Instant::now(),
    };
    loop {
        // A finished reply must not be lost because its usage never arrives.
        let ended = receiver.decoder.has_ended();
        let wait = if ended { idle.min(USAGE_GRACE) } else { idle };
        // Comments keep the connection open but do not extend the call.
        let quiet = receiver.told.elapsed();
        let patience = idle.saturating_mul(SILENCES_AN_EVENT);
        let wait = wait.min(patience.saturating_sub(quiet));
        match timeout(wait, bytes.next()).await {
            Ok(Some(Ok(piece))) => {
                if receiver.take(piece.as_ref())? {
                    // Read to the end, so that the connection can be reused.
                    let drain = async { while let Some(Ok(_)) = bytes.next().await {} };
                    let _ = timeout(DRAIN_TIMEOUT, drain).await;
                    return receiver.finish();
                }
            }
            Ok(None) => return receiver.finish(),
            _ if ended => return receiver.finish(),
            Ok(Some(Err(why))) => return Err(BrokenResponse::Cut(why)),
            Err(_) if wait < idle => return Err(BrokenResponse::Wordless(patience)),
            Err(_) => return Err(BrokenResponse::Idle(wait)),
        }
    }
}

impl Receiver<'_> {
    /// Takes bytes. Returns `true` if the reply is complete.
    fn take(&mut self, piece: &[u8]) -> Result<bool, BrokenResponse> {
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if self.bytes > MAX_STREAM.0 {
            let why = format!("the answer exceeds {MAX_STREAM} bytes");
            return Err(BrokenResponse::TooLarge(why));
        }
        if matches!(self.form, AnswerForm::Unknown) {
            self.form = match first_mark(piece) {
                None => return Ok(false),
                // No event begins with these bytes, but JSON and HTML do.
                Some(b'{' | b'[' | b'<') => AnswerForm::Whole(Vec::new()),
                Some(_) => AnswerForm::Events,
            };
        }
        let mut events = Vec::new();
        match &mut self.form {
            AnswerForm::Unknown => {}
            AnswerForm::Whole(text) => {
                if text.len().saturating_add(piece.len()) > MAX_EVENT {
                    let why = format!("the answer exceeds {MAX_EVENT} bytes");
                    return Err(BrokenResponse::TooLarge(why));
                }
                text.extend_from_slice(piece);
                self.told = Instant::now();
            }
            AnswerForm::Events => match &mut self.events {
                EventReader::Sse(reader) => {
                    let read = reader.push(piece, &mut events);
                    read.map_err(|error| BrokenResponse::TooLarge(error.to_string()))?;
                }
                EventReader::EventStream(reader) => {
                    let read = reader.push(piece, &mut events);
                    read.map_err(BrokenResponse::Garbled)?;
                }
            },
        }
        for event in events {
            self.told = Instant::now();
            if self.event(event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes an event. Returns `true` if the reply is complete.
    fn event(&mut self, event: ServerSentEvent) -> Result<bool, BrokenResponse> {
        if event.kind == EventKind::Error {
            return Err(BrokenResponse::Refused(event.data));
        }
        let ended = self.decoder.has_ended();
        let pushed = self.decoder.push(&event.data).map_err(BrokenResponse::from);
        // Pass the usage on at once: it is billed even if the reply never completes.
        let used = self.decoder.usage();
        if let Some(usage) = used.filter(|_| used != self.used) {
            self.used = used;
            (self.sink)(Delta::Used { usage });
        }
        match pushed {
            Ok(deltas) => deltas.into_iter().for_each(self.sink),
            // After the reply only usage follows. An error in it must not discard the reply.
            Err(BrokenResponse::Garbled(_)) if ended => {}
            Err(broken) => return Err(broken),
        }
        Ok(self.decoder.is_complete())
    }

    /// Ends the response, after its last byte or when nothing more is needed.
    fn finish(mut self) -> Result<Reply, BrokenResponse> {
        match std::mem::replace(&mut self.form, AnswerForm::Unknown) {
            AnswerForm::Unknown => Err(BrokenResponse::Empty),
            AnswerForm::Whole(text) => whole(&text, &mut *self.decoder, self.sink),
            AnswerForm::Events => {
                let events = match &mut self.events {
                    EventReader::Sse(reader) => std::mem::take(reader).finish(),
                    EventReader::EventStream(_) => Vec::new(),
                };
                for event in events {
                    match self.event(event) {
                        // The end of the bytes cut this event. `finish` knows whether it was
                        // needed.
                        Ok(_) | Err(BrokenResponse::Garbled(_)) => {}
                        Err(broken) => return Err(broken),
                    }
                }
                match self.decoder.finish() {
                    Err(WireError::Cut { .. }) if self.decoder.is_empty() => {
                        Err(BrokenResponse::Empty)
                    }
                    reply => reply.map_err(BrokenResponse::from),
                }
            }
        }
    }
}

impl From<WireError> for BrokenResponse {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Provider { body } => Self::Refused(body),
            WireError::Cut { .. } => Self::Cut(CUT.into()),
            WireError::TooLarge { .. } => Self::TooLarge(error.to_string()),
            WireError::TooManyParts { .. } => Self::TooManyParts(error.to_string()),
            other => Self::Garbled(other.to_string()),
        }
    }
}

/// Decodes a reply that arrived in one piece.
fn whole(
    text: &[u8],
    decoder: &mut dyn StreamDecoder,
    sink: Sink<'_>,
) -> Result<Reply, BrokenResponse> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with('<') {
        return Err(BrokenResponse::Html);
    }
    let deltas = decoder.push_whole(text).map_err(|error| match error {
        // The parser met the end of the text, not a syntax error.
        WireError::NotJson { reason } if reason.starts_with("EOF") => {
            BrokenResponse::Cut(CUT.into())
        }
        error => BrokenResponse::from(error),
    })?;
    let reply = decoder.finish()?;
    deltas.into_iter().for_each(sink);
    Ok(reply)
}

/// Returns the first byte that is neither white space nor part of a byte order mark.
fn first_mark(piece: &[u8]) -> Option<u8> {
    let mut marks = piece.iter().copied();
    marks.find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf))
}

#[cfg(test)]
mod tests;
