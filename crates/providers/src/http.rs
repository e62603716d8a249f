//! [`Http`]: the connection to one server, with its [`Timeouts`]. Sends bytes and returns responses with
//! bounded bodies. Does not follow redirects and does not retry. The duration of a whole call is a limit
//! of the run.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use plimsoll_context::Bytes as ByteCount;
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method, Response, Url, redirect};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use crate::base_url::BaseUrl;
use crate::error::ProviderError;
use crate::tls;

/// The time to establish a connection. A reachable host answers within two seconds, or ten on a
/// slow network.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time without a single received byte. A large model is silent for minutes while it reads a
/// long prompt or thinks behind a proxy that hides the thinking. A comment in the stream counts as
/// a byte.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// The time for a request about models or windows. A slower answer is not worth the wait.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to load a model before its window is requested. The run needs the loaded model anyway.
pub const LOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// The time after the end of a reply to wait for the usage.
pub const USAGE_GRACE: Duration = Duration::from_secs(10);
/// The time after the end mark to read the remaining bytes, so that the connection can be reused.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
/// The maximum size of an error body. A longer body is a web page or repeats the request.
pub const MAX_ERROR_BODY: ByteCount = ByteCount(64 * 1024);
/// The maximum size of a response about models. OpenRouter lists its hundreds of models in less
/// than 1 MB.
pub const MAX_PROBE_BODY: ByteCount = ByteCount(8 * 1024 * 1024);

/// The connection to one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
    pub(crate) base: BaseUrl,
    pub(crate) timeouts: Timeouts,
}

/// How long to wait while a server is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Default [`CONNECT_TIMEOUT`].
    pub connect: Duration,
    /// Default [`IDLE_TIMEOUT`].
    pub idle: Duration,
    /// Default [`PROBE_TIMEOUT`].
    pub probe: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: CONNECT_TIMEOUT,
            idle: IDLE_TIMEOUT,
            probe: PROBE_TIMEOUT,
        }
    }
}

/// The reasons why there is no response.
#[derive(Debug)]
pub(crate) enum Silence {
    /// Nothing arrived for this long.
    Timeout(Duration),
    /// The connection or the request failed.
    Error(reqwest::Error),
}

impl Http {
    /// Creates a client. `headers` are sent with every request and treated as secrets.
    pub(crate) fn new(
        base: BaseUrl,
        mut headers: HeaderMap,
        timeouts: Timeouts,
    ) -> Result<Self, ProviderError> {
        headers
            .values_mut()
            .for_each(|value| value.set_sensitive(true));
        let client = if base.is_loopback() {
            tls::plain_client()
        } else {
            tls::client()
        };
        let client = client.map_err(|error| ProviderError::Client {
            reason: error.to_string(),
        })?;
        let client = client
            .default_headers(headers)
            .connect_timeout(timeouts.connect)
            // A redirect would turn a POST into a GET or send the key to another server. It is
            // reported instead.
            .redirect(redirect::Policy::none())
            // Gzip would delay a stream until a block is full. Other crates may enable the feature.
            .no_gzip()
            .build()
            .map_err(|error| ProviderError::Client {
                reason: innermost(&error),
            })?;
        Ok(Self {
            client,
            base,
            timeouts,
        })
    }

    /// Sends a body with these additional headers and waits for the head of the response.
    pub(crate) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Silence> {
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .headers(headers)
            .body(body)
            .send();
        let idle = self.timeouts.idle;
        let answer = timeout(idle, request).await;
        answer
            .map_err(|_| Silence::Timeout(idle))?
            .map_err(|error| Silence::Error(error.without_url()))
    }

    /// Sends a small request. Returns `None` unless JSON arrives in time.
    pub(crate) async fn ask(
        &self,
        url: Url,
        question: Option<&Value>,
        patience: Duration,
    ) -> Option<Value> {
        let (_, body) = self.question(url, question, patience).await?;
        serde_json::from_slice(&body).ok()
    }

    /// Sends a small request. Returns the status and the body of the response; the body is empty
    /// after an error status.
    pub(crate) async fn question(
        &self,
        url: Url,
        question: Option<&Value>,
        patience: Duration,
    ) -> Option<(u16, Vec<u8>)> {
        let method = question.map_or(Method::GET, |_| Method::POST);
        let mut request = self.client.request(method, url);
        if let Some(question) = question {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(question.to_string());
        }
        let answer = async {
            let answer = request.send().await.ok()?;
            let status = answer.status();
            let body = match status.is_success() {
                true => small_body(answer).await.ok()??,
                false => Vec::new(),
            };
            Some((status.as_u16(), body))
        };
        timeout(patience, answer).await.ok().flatten()
    }
}

/// Returns the content encoding of a response. Plimsoll never requests one.
pub(crate) fn packed(headers: &HeaderMap) -> Option<String> {
    let packed = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    (!packed.is_empty() && packed != "identity").then(|| packed.to_owned())
}

/// Returns the bytes of a response as they arrive.
pub(crate) fn pieces(answer: Response) -> impl Stream<Item = Result<Bytes, String>> + Unpin + Send {
    let next = async |mut answer: Response| {
        let piece = answer.chunk().await.transpose()?;
        Some((piece.map_err(|error| innermost(&error)), answer))
    };
    Box::pin(stream::unfold(answer, next))
}

/// Reads the body of a response. Returns `None` if it is larger than [`MAX_PROBE_BODY`].
pub(crate) async fn small_body(mut answer: Response) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if (body.len() + piece.len()) as u64 > MAX_PROBE_BODY.0 {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Reads the body of an error response as text, up to [`MAX_ERROR_BODY`]. Marks the text if it is
/// truncated.
pub(crate) async fn error_body<S>(mut pieces: S, idle: Duration) -> String
where
    S: Stream<Item = Result<Bytes, String>> + Unpin,
{
    let mut body = Vec::new();
    let limit = usize::try_from(MAX_ERROR_BODY.0).unwrap_or(usize::MAX);
    let mut rest = "";
    // Keep the bytes that arrived before the connection broke.
    while let Ok(Some(Ok(piece))) = timeout(idle, pieces.next()).await {
        let room = limit - body.len();
        body.extend(piece.iter().take(room));
        if piece.len() > room {
            rest = " … [the rest of this error was not read]";
            break;
        }
    }
    format!("{}{rest}", String::from_utf8_lossy(&body))
}

/// Returns the message of the innermost error, without the HTTP library's additions.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(pieces: Vec<Vec<u8>>) -> String {
        let pieces = stream::iter(pieces).map(|piece| Ok(piece.into()));
        // The connection stays open after the last piece.
        error_body(pieces.chain(stream::pending()), Duration::from_secs(300)).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_body_of_a_refusal_is_bounded_in_size_and_time() {
        let limit = MAX_ERROR_BODY.0 as usize;
        assert_eq!(kept(vec![b"no".to_vec(), b" way".to_vec()]).await, "no way");
        assert_eq!(kept(vec![]).await, "");
        let full = kept(vec![vec![b'x'; limit]]).await;
        assert_eq!(full.len(), limit, "all of it");
        let cut = kept(vec![vec![b'x'; limit], b"y".to_vec()]).await;
        assert!(cut.starts_with(&full) && cut.ends_with("was not read]"));
    }
}
