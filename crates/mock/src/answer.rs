//! [`HttpAnswer`]: one HTTP answer, whole or streamed, and how it ends. The content comes from an
//! [`Api`](crate::api::Api).

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use futures_util::stream::{self, Stream};
use serde_json::Value;
use tokio::sync::oneshot;

/// One HTTP answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: AnswerBody,
    pub(crate) pace: StreamPace,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    /// A JSON body.
    Whole(Value),
    /// Server-sent events, each in wire format.
    Events(Vec<String>),
    /// A body without a content type.
    Text(String),
}

/// The timing and the end of an answer.
#[derive(Debug, Default)]
pub(crate) struct StreamPace {
    /// The delay before each piece.
    pub(crate) wait: Duration,
    /// Whether each byte is a piece, and not each event.
    pub(crate) bytewise: bool,
    pub(crate) end: End,
    pub(crate) gate: Option<(usize, oneshot::Receiver<()>)>,
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Close,
    /// The connection breaks.
    Cut,
    /// The answer never ends.
    Hang,
}

impl HttpAnswer {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self::of(status, AnswerBody::Whole(body))
    }

    pub(crate) fn of(status: u16, body: AnswerBody) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            pace: StreamPace::default(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Returns the first half of the answer, for an answer that breaks off: half of its pieces or,
    /// of a single piece, half of its text.
    pub(crate) fn halved(mut self) -> Self {
        let half = |text: &mut String| {
            let half = text.floor_char_boundary(text.len() / 2);
            text.truncate(half);
        };
        match &mut self.body {
            AnswerBody::Whole(body) => {
                let mut text = body.to_string();
                half(&mut text);
                self.body = AnswerBody::Text(text);
                self = self.header(header::CONTENT_TYPE.as_str(), JSON);
            }
            AnswerBody::Text(text) => half(text),
            AnswerBody::Events(events) => match events.as_mut_slice() {
                [one] => half(one),
                _ => events.truncate(events.len() / 2),
            },
        }
        self
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let (kind, pieces) = match self.body {
            AnswerBody::Whole(body) => (Some(JSON), vec![body.to_string()]),
            AnswerBody::Events(events) => (Some("text/event-stream; charset=utf-8"), events),
            AnswerBody::Text(text) => (None, vec![text]),
        };
        let mut response = Response::new(Body::from_stream(paced(pieces, self.pace)));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        for (name, value) in self.headers {
            // Invalid headers are omitted.
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        response
    }
}

const JSON: &str = "application/json";

fn paced(pieces: Vec<String>, pace: StreamPace) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let pieces = pieces.into_iter().map(Bytes::from);
    let pieces: Vec<Bytes> = if pace.bytewise {
        pieces.flat_map(single_bytes).collect()
    } else {
        pieces.collect()
    };
    let begun = (pieces.into_iter(), 0, pace);
    stream::unfold(begun, |(mut pieces, index, mut pace)| async move {
        let is_here = |gate: &mut (usize, _)| gate.0 == index || pieces.len() == 0;
        if let Some((_, gate)) = pace.gate.take_if(is_here) {
            let _ = gate.await;
        }
        if let Some(piece) = pieces.next() {
            if pace.wait > Duration::ZERO {
                tokio::time::sleep(pace.wait).await;
            }
            return Some((Ok(piece), (pieces, index + 1, pace)));
        }
        match std::mem::take(&mut pace.end) {
            End::Close => None,
            End::Cut => {
                // Yield, so that the earlier pieces are sent before the connection is cut.
                tokio::task::yield_now().await;
                let error = io::Error::other("the connection is cut, as the script says");
                Some((Err(error), (pieces, index, pace)))
            }
            End::Hang => std::future::pending().await,
        }
    })
}

fn single_bytes(bytes: Bytes) -> impl Iterator<Item = Bytes> {
    (0..bytes.len()).map(move |at| bytes.slice(at..at + 1))
}
