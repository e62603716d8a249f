//! [`Answer`]: one HTTP answer, whole or streamed, and how it ends. Not what it says; that is a wire's.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::Value;

/// One HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: Said,
    pub(crate) pace: Pace,
}

/// What it says.
#[derive(Debug)]
pub(crate) enum Said {
    /// A JSON body.
    Whole(Value),
    /// Events, each as it stands on the wire.
    Events(Vec<String>),
}

/// How it is said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// Before each piece.
    pub(crate) wait: Duration,
    pub(crate) end: End,
}

/// How it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Close,
    /// The connection breaks in the middle.
    Cut,
    /// It does not.
    Hang,
}

impl Answer {
    pub(crate) fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            retry_after: None,
            body: Said::Whole(body),
            pace: Pace::default(),
        }
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let (kind, mut pieces) = match self.body {
            Said::Whole(body) => ("application/json", vec![body.to_string()]),
            Said::Events(events) => ("text/event-stream", events),
        };
        if self.pace.end != End::Close {
            pieces = first_half(pieces);
        }
        let body = Body::from_stream(paced(pieces, self.pace));
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// What is sent of an answer that breaks off: half of its pieces or, of one, half of its text.
fn first_half(mut pieces: Vec<String>) -> Vec<String> {
    match pieces.as_mut_slice() {
        [one] => {
            let half = one.floor_char_boundary(one.len() / 2);
            one.truncate(half);
        }
        _ => pieces.truncate(pieces.len() / 2),
    }
    pieces
}

fn paced(pieces: Vec<String>, pace: Pace) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let said = stream::iter(pieces).then(move |piece| async move {
        if pace.wait > Duration::ZERO {
            tokio::time::sleep(pace.wait).await;
        }
        Ok(Bytes::from(piece))
    });
    let end = match pace.end {
        End::Close => stream::empty().boxed(),
        End::Cut => stream::once(async {
            // What came before is sent once the body has nothing at hand.
            tokio::task::yield_now().await;
            Err(io::Error::other(
                "the connection is cut, as the script says",
            ))
        })
        .boxed(),
        End::Hang => stream::pending().boxed(),
    };
    said.chain(end)
}
