//! Streamable HTTP for the SDK: the headers of requests, and descriptions of failed requests.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};

use super::bounded::MCP_MESSAGE_MAX;
use super::error::{chain, short};

/// Maximum number of reconnections of a remote server's stream.
pub const MCP_RECONNECTS: usize = 5;
/// Delay before the first reconnection; doubled for each further one.
pub const MCP_RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// The description of a server that ended during initialization.
pub(super) const ENDED: &str = "it ended before it was ready";

/// Returns the configuration of the requests to a server.
pub(super) fn config(
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
    let max = usize::try_from(MCP_MESSAGE_MAX.0).unwrap_or(usize::MAX);
    let mut retries = ExponentialBackoff::default();
    retries.max_times = Some(MCP_RECONNECTS);
    retries.base_duration = MCP_RECONNECT_AFTER;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(named)
        .max_sse_event_size(max);
    config.retry_config = Arc::new(retries);
    Ok(match bearer {
        Some(token) => config.auth_header(token),
        None => config,
    })
}

/// Describes why the initialization failed, for the user.
pub(super) fn begun_badly(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } => unsent(error),
        ClientInitializeError::JsonRpcError(error) => {
            short(format!("it refuses: {}", error.message))
        }
        error => chain(error),
    }
}

/// Describes why a request failed, including the cause, which the SDK's own error omits.
pub(super) fn unsent(error: &DynamicTransportError) -> String {
    let error = &*error.error;
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => {
            with_cure(chain(error), error.status().map(|status| status.as_u16()))
        }
        Some(StreamableHttpError::AuthRequired(_)) => with_cure(chain(error), Some(401)),
        Some(StreamableHttpError::InsufficientScope(_)) => with_cure(chain(error), Some(403)),
        Some(StreamableHttpError::UnexpectedServerResponse(said)) => {
            let status = [401, 403].into_iter().find(|status| {
                let told = said.split(|c: char| !c.is_ascii_digit());
                told.into_iter().any(|word| word == status.to_string())
            });
            with_cure(chain(error), status)
        }
        _ => chain(error),
    }
}

/// Checks whether an error means that the server does not know the session any more. It should respond
/// with the status 404, which the SDK handles. Some servers respond with 400 or an ordinary error. They
/// have not processed the request then.
pub(super) fn has_forgotten_us(error: &ErrorData) -> bool {
    const SAID: [&str; 6] = [
        "no valid",
        "not found",
        "invalid",
        "expired",
        "unknown",
        "not initialized",
    ];
    // The codes that SDKs use for it; errors of tools have other codes.
    let codes = [
        ErrorCode(-32000),
        ErrorCode(-32001),
        ErrorCode::INVALID_REQUEST,
    ];
    let text = error.message.to_lowercase();
    codes.contains(&error.code)
        && text.contains("session")
        && SAID.iter().any(|said| text.contains(said))
}

/// Adds advice about a status.
fn with_cure(text: String, status: Option<u16>) -> String {
    match status {
        Some(401) => format!(
            "{text} (401: it wants a token, or another one; `bearer_env` names its variable)"
        ),
        Some(403) => format!("{text} (403: its token does not allow this)"),
        _ => text,
    }
}
