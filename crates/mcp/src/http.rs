//! [`HttpClient`]: the HTTP client for the SDK, the configuration of its requests, and descriptions of
//! failed requests.
//!
//! It is reqwest's client with three changes. Errors do not contain the server's address or keys, since
//! the SDK logs them. Errors without an id receive the id of the request that they answer. Redirects
//! are only followed within the same origin and if they keep the message, so that keys are not sent to
//! another host.

use std::collections::HashMap;
use std::future::Future;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_providers::tls;
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Action, Attempt, Policy};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, ExponentialBackoff};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};

use crate::error::{chain, short};
use crate::server::McpServer;

/// Maximum number of redirects of one request.
pub const MCP_REDIRECTS: usize = 5;
/// Maximum number of reconnections of a remote server's stream.
pub const MCP_RECONNECTS: usize = 5;
/// Delay before the first reconnection; doubled for each further one.
pub const MCP_RECONNECT_AFTER: Duration = Duration::from_millis(200);

type Headers = HashMap<HeaderName, HeaderValue>;
type HttpError = StreamableHttpError<reqwest::Error>;

/// reqwest's client, for one server.
#[derive(Clone)]
pub(crate) struct HttpClient {
    inner: reqwest::Client,
    server: McpServer,
}

impl HttpClient {
    pub(crate) fn new(server: &McpServer) -> Result<Self, String> {
        // Like the SDK's own client: reusing a connection that was not read to its end is slow.
        let builder = tls::client().map_err(short)?.pool_max_idle_per_host(0);
        let inner = builder.redirect(Policy::custom(redirect)).build();
        Ok(Self {
            inner: inner.map_err(short)?,
            server: server.clone(),
        })
    }

    /// Removes secrets from an error before it is logged.
    async fn strike_out<T>(
        &self,
        answer: impl Future<Output = Result<T, HttpError>>,
    ) -> Result<T, HttpError> {
        let struck = |text: &str| self.server.strike_out(short(text));
        let refused = |status: u16, header: &str| {
            let text = format!("{status}, {}", struck(header));
            StreamableHttpError::UnexpectedServerResponse(text.into())
        };
        answer.await.map_err(|error| match error {
            StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
            StreamableHttpError::UnexpectedServerResponse(message) => {
                StreamableHttpError::UnexpectedServerResponse(struck(&message).into())
            }
            StreamableHttpError::AuthRequired(error) => {
                refused(401, &error.www_authenticate_header)
            }
            StreamableHttpError::InsufficientScope(error) => {
                refused(403, &error.www_authenticate_header)
            }
            error => error,
        })
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let id = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let answer = self
            .inner
            .post_message(uri, message, session, bearer, headers);
        let mut answer = self.strike_out(answer).await?;
        // Servers omit the id if they have not read the request, for example because of an unknown
        // session. The SDK would ignore such an error.
        if let StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _) = &mut answer
            && error.id.is_none()
        {
            error.id = id;
        }
        Ok(answer)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let answer = self.inner.delete_session(uri, session, bearer, headers);
        self.strike_out(answer).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        bearer: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpError> {
        let answer = self.inner.get_stream(uri, session, last, bearer, headers);
        self.strike_out(answer).await
    }
}

/// Returns the configuration of the requests to a server.
pub(crate) fn config(
    url: &str,
    headers: &[(String, String)],
    bearer: Option<&str>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut named = HashMap::new();
    for (name, value) in headers {
        let bad = || format!("`{name}` cannot be a header, or its value cannot");
        let key = HeaderName::from_str(name).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        named.insert(key, value);
    }
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MCP_RECONNECTS);
    retries.base_duration = MCP_RECONNECT_AFTER;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(named);
    config.retry_config = Arc::new(retries);
    Ok(match bearer {
        Some(token) => config.auth_header(token),
        None => config,
    })
}

/// Describes why a request failed, including the cause, which the SDK's own error omits.
pub(crate) fn send_error(error: &DynamicTransportError) -> String {
    let error = &*error.error;
    let mut text = chain(error);
    let status = match error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::Client(error)) => {
            text = chain(error);
            error.status().map(|status| status.as_u16())
        }
        // The text begins with the status.
        Some(StreamableHttpError::UnexpectedServerResponse(message)) => {
            let digits = message.split(|c: char| !c.is_ascii_digit());
            digits.filter_map(|number| number.parse().ok()).next()
        }
        _ => None,
    };
    match status {
        Some(401) => format!(
            "{text} (401: it wants a token, or another one; `bearer_env` names its variable)"
        ),
        Some(403) => format!("{text} (403: its token does not allow this)"),
        _ => text,
    }
}

/// Checks whether an error means that the server does not know the session any more. It should respond
/// with the status 404, which the SDK handles. Some servers, the official SDK for TypeScript among
/// them, respond with 400 and an ordinary error. They have not processed the request then.
pub(crate) fn has_lost_session(error: &ErrorData) -> bool {
    // The codes that SDKs use for it; errors of tools have other codes.
    let codes = [
        ErrorCode(-32000),
        ErrorCode(-32001),
        ErrorCode::INVALID_REQUEST,
    ];
    codes.contains(&error.code) && error.message.to_lowercase().contains("session")
}

/// Decides whether a redirect is followed.
fn redirect(attempt: Attempt<'_>) -> Action {
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
