//! Streamable HTTP as the SDK speaks it: what each request carries, and what is said of one that
//! did not get through. Not the client that sends them.

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

/// How often a stream of a server elsewhere is taken up again after it broke.
pub const MCP_RECONNECTS: usize = 5;
/// How long it is waited before the first of these times; twice as long before each further one.
pub const MCP_RECONNECT_AFTER: Duration = Duration::from_millis(200);
/// What is said of a server that never began.
pub(super) const ENDED: &str = "it ended before it was ready";

/// What every request to a server carries.
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

/// Why a server did not begin, in words for a person.
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

/// Why a request did not get through, down to the cause, which the SDK's own error leaves out.
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

/// Whether an error means that the server does not know our session any more. It should say so with
/// the status 404, which the SDK mends; some say 400, or answer as if it were any error. They have
/// not looked at the request then.
pub(super) fn has_forgotten_us(error: &ErrorData) -> bool {
    const SAID: [&str; 6] = [
        "no valid",
        "not found",
        "invalid",
        "expired",
        "unknown",
        "not initialized",
    ];
    // The SDKs' own codes for it; a tool's error has others.
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

/// What can be done about a status.
fn with_cure(text: String, status: Option<u16>) -> String {
    match status {
        Some(401) => format!(
            "{text} (401: it wants a token, or another one; `bearer_env` names its variable)"
        ),
        Some(403) => format!("{text} (403: what its token allows is not enough)"),
        _ => text,
    }
}
