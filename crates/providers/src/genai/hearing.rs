//! [`hear`]: a stream of the library into a reply, each piece handed on as it comes. Pieces are
//! read from raw frames: the library's own events part a signature from what it signs, and repeat
//! the arguments of a call with each of their pieces.

use std::time::Duration;

use futures_util::StreamExt;
use genai::Error;
use genai::chat::{ChatStream, ChatStreamEvent};
use plimsoll_context::{Delta, Reply, Usage};
use plimsoll_wire::WireError;
use tokio::time::timeout;

use super::api::Api;
use super::converse::Converse;
use super::frames::{Frame, Frames, unlogged};
use super::gemini::Gemini;
use super::ollama::Ollama;
use crate::connection::Connection;
use crate::receive::{Broken, Sink};
use crate::sse::MAX_EVENT;
use crate::timeouts::USAGE_GRACE;

/// Silences that one frame may take to become whole: its bytes are signs of life that are not seen
/// here, and the library has no bound for a frame without an end.
pub(crate) const SILENCES_A_FRAME: u32 = 2;

/// Why no reply came.
#[derive(Debug)]
pub(super) enum Unheard {
    /// What came is no reply.
    Broken(Broken),
    /// Nothing came, or not all.
    Error(Box<Error>),
}

/// A reply while it arrives, by the API that it comes from.
#[derive(Debug)]
pub(super) enum Answer {
    Gemini(Gemini),
    Converse(Converse),
    Ollama(Ollama),
}

/// What came so far, besides the reply.
#[derive(Debug, Default)]
struct Progress {
    /// Frames that held something.
    told: u64,
    /// A frame that is not JSON: the end of the bytes may have cut it.
    unread: Option<String>,
    /// What was handed on of its use.
    used: Option<Usage>,
}

impl Answer {
    /// An answer to a request in whose history so many tools were called.
    pub(super) fn new(api: &Api, line: &Connection, calls: usize) -> Self {
        match api {
            Api::Gemini(_) | Api::Vertex(_) => Self::Gemini(Gemini::new(calls)),
            Api::Converse(converse) => {
                Self::Converse(Converse::new(&converse.maker, line.model.name()))
            }
            Api::Ollama(_) => Self::Ollama(Ollama::new(calls)),
        }
    }

    fn push(&mut self, frame: &Frame) -> Result<Vec<Delta>, WireError> {
        match self {
            Self::Gemini(answer) => answer.push(&frame.data),
            Self::Converse(answer) => answer.push(frame.event.as_deref(), &frame.data),
            Self::Ollama(answer) => answer.push(&frame.data),
        }
    }

    /// Whether what the model says has ended; its usage may still come.
    fn has_ended(&self) -> bool {
        match self {
            Self::Gemini(answer) => answer.has_ended(),
            Self::Converse(answer) => answer.has_ended(),
            Self::Ollama(answer) => answer.has_ended(),
        }
    }

    /// What the provider has said so far that the call used.
    fn used(&self) -> Option<Usage> {
        match self {
            Self::Gemini(answer) => answer.usage,
            Self::Converse(answer) => answer.usage,
            Self::Ollama(answer) => answer.usage,
        }
    }

    fn finish(self) -> Result<Reply, WireError> {
        match self {
            Self::Gemini(answer) => answer.finish(),
            Self::Converse(answer) => answer.finish(),
            Self::Ollama(answer) => answer.finish(),
        }
    }
}

/// Reads a stream to its end.
pub(super) async fn hear(
    mut stream: ChatStream,
    frames: &Frames,
    mut answer: Answer,
    idle: Duration,
    sink: Sink<'_>,
) -> Result<Reply, Unheard> {
    let patience = idle.saturating_mul(SILENCES_A_FRAME);
    let mut progress = Progress::default();
    loop {
        // A reply that has ended is worth more than the usage that may never come.
        let wait = match answer.has_ended() {
            true => patience.min(USAGE_GRACE),
            false => patience,
        };
        let next = timeout(wait, unlogged(stream.next())).await;
        let taken = frames.take();
        let came = !taken.frames.is_empty();
        for frame in &taken.frames {
            progress.frame(&mut answer, frame, sink)?;
        }
        if let Some(what) = taken.too_large {
            let why = match what {
                "the answer" => format!("{what} exceeds {} bytes", crate::receive::MAX_STREAM),
                _ => format!("{what} exceeds {MAX_EVENT} bytes"),
            };
            return Err(Broken::TooLarge(why).into());
        }
        match next {
            Ok(Some(Ok(ChatStreamEvent::End(_))) | None) => break,
            Ok(Some(Ok(_))) => {}
            // What the library cannot read in a frame, its reader here has judged.
            Ok(Some(Err(Error::ChatResponse { .. } | Error::StreamParse { .. }))) if came => {}
            Ok(Some(Err(_))) | Err(_) if answer.has_ended() => break,
            Ok(Some(Err(error))) => return Err(Unheard::Error(Box::new(error))),
            Err(_) if came => {}
            Err(_) => return Err(Broken::Idle(patience).into()),
        }
    }
    progress.finish(answer)
}

impl Progress {
    fn frame(&mut self, answer: &mut Answer, frame: &Frame, sink: Sink<'_>) -> Result<(), Broken> {
        let data = frame.data.trim();
        if data.is_empty() && frame.event.as_deref().is_none_or(str::is_empty) {
            return Ok(());
        }
        if let Some(unread) = self.unread.take() {
            return Err(Broken::Garbled(unread));
        }
        if data.starts_with('<') {
            return Err(Broken::Html);
        }
        self.told += 1;
        let ended = answer.has_ended();
        let pushed = answer.push(frame);
        // Said at once: it is owed even if the reply never comes.
        let used = answer.used();
        if let Some(usage) = used.filter(|_| used != self.used) {
            self.used = used;
            sink(Delta::Used { usage });
        }
        match pushed {
            Ok(deltas) => deltas.into_iter().for_each(sink),
            // What follows the reply can only be usage, which is not worth the reply.
            Err(WireError::NotJson { .. }) if ended => {}
            Err(WireError::NotJson { reason }) => self.unread = Some(reason),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn finish(self, answer: Answer) -> Result<Reply, Unheard> {
        let cut = |why: &str| Broken::Cut(why.to_owned());
        match self.unread {
            // The parser met the end of the text, not a fault in it.
            Some(reason) if reason.starts_with("EOF") => {
                return Err(cut("it ended too early").into());
            }
            Some(reason) => return Err(Broken::Garbled(reason).into()),
            None if self.told == 0 => return Err(Broken::Empty.into()),
            None => {}
        }
        answer.finish().map_err(|error| Broken::from(error).into())
    }
}

impl From<Broken> for Unheard {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}
