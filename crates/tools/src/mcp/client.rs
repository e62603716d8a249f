//! [`Client`]: the HTTP client for the SDK.
//!
//! It is reqwest's client with three changes. Errors do not contain the server's address or keys, since
//! the SDK logs them. Errors without an id receive the id of the request that they answer. Redirects
//! are only followed within the same origin and if they keep the message, so that keys are not sent to
//! another host.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use plimsoll_providers::tls;
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};

use super::error::short;
use super::server::McpServer;

/// Maximum number of redirects of one request.
pub const MCP_REDIRECTS: usize = 5;

/// reqwest's client, for one server.
#[derive(Clone)]
pub(super) struct Client {
    inner: reqwest::Client,
    server: McpServer,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type ClientResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;

impl Client {
    pub(super) fn new(server: &McpServer) -> Result<Self, String> {
        // Like the SDK's own client: reusing a connection that was not read to its end is slow.
        let builder = tls::client().map_err(|error| error.to_string())?;
        let builder = builder.pool_max_idle_per_host(0);
        let inner = builder.redirect(Policy::custom(redirected)).build();
        Ok(Self {
            inner: inner.map_err(short)?,
            server: server.clone(),
        })
    }

    /// Removes secrets from an error before it is logged.
    fn bare(
        &self,
        error: StreamableHttpError<reqwest::Error>,
    ) -> StreamableHttpError<reqwest::Error> {
        let struck = |text: &str| self.server.strike_out(short(text));
        match error {
            StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
            StreamableHttpError::UnexpectedServerResponse(message) => {
                StreamableHttpError::UnexpectedServerResponse(struck(&message).into())
            }
            StreamableHttpError::AuthRequired(error) => {
                let message = struck(&error.www_authenticate_header);
                StreamableHttpError::AuthRequired(AuthRequiredError::new(message))
            }
            StreamableHttpError::InsufficientScope(error) => {
                let message = struck(&error.www_authenticate_header);
                let error = InsufficientScopeError::new(message, error.required_scope);
                StreamableHttpError::InsufficientScope(error)
            }
            error => error,
        }
    }

    async fn with<T>(&self, answer: impl Future<Output = ClientResult<T>>) -> ClientResult<T> {
        answer.await.map_err(|error| self.bare(error))
    }
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
    ) -> ClientResult<StreamableHttpPostResponse> {
        let request = request_id(&message);
        let answer = self
            .inner
            .post_message(uri, message, session, bearer, headers);
        Ok(of(request, self.with(answer).await?))
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
        max: usize,
    ) -> ClientResult<StreamableHttpPostResponse> {
        let request = request_id(&message);
        let answer = self
            .inner
            .post_message_with_max_sse_event_size(uri, message, session, bearer, headers, max);
        Ok(of(request, self.with(answer).await?))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: Headers,
    ) -> ClientResult<()> {
        let answer = self.inner.delete_session(uri, session, bearer, headers);
        self.with(answer).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        bearer: Option<String>,
        headers: Headers,
    ) -> ClientResult<BoxedSseResponse> {
        let answer = self.inner.get_stream(uri, session, last, bearer, headers);
        self.with(answer).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        bearer: Option<String>,
        headers: Headers,
        max: usize,
    ) -> ClientResult<BoxedSseResponse> {
        let answer = self
            .inner
            .get_stream_with_max_sse_event_size(uri, session, last, bearer, headers, max);
        self.with(answer).await
    }
}

fn request_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// Adds the id of the request to an error without one. Servers send such errors if they have not read
/// the request, for example because of an unknown session. Without an id the error would be ignored.
fn of(
    request: Option<RequestId>,
    answer: StreamableHttpPostResponse,
) -> StreamableHttpPostResponse {
    match answer {
        StreamableHttpPostResponse::Json(JsonRpcMessage::Error(mut error), session) => {
            error.id = error.id.or(request);
            StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session)
        }
        answer => answer,
    }
}

/// Decides whether a redirect is followed.
fn redirected(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_message = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    let is_home = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_message && is_home && attempt.previous().len() <= MCP_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}
