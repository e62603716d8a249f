//! Token counts by the server, if it has an endpoint for them. Nothing is generated or charged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_agent::Failure;
use plimsoll_context::Tokens;
use reqwest::header::HeaderMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Connection;
use crate::failure::RequestFacts;
use crate::http::{error_body, pieces};
use crate::protocol::TokenCountEndpoint;

/// The statuses of a server without such an endpoint: no such path, no such method, not
/// implemented.
const MISSING: [u16; 3] = [404, 405, 501];

/// Whether to ask the server for token counts.
#[derive(Debug, Default)]
pub(crate) struct TokenCounter {
    /// Set after the server has answered that it cannot count. It is not asked again.
    missing: AtomicBool,
}

impl Connection {
    /// Asks the server for the number of tokens in a request. Returns `None` if the server cannot
    /// count.
    pub(crate) async fn count_tokens(
        &self,
        endpoint: TokenCountEndpoint,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Option<Tokens>, Failure> {
        if self.counter.missing.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let call = self.call_of(RequestFacts::default());
        let Some(body) = only(endpoint.keys, &body) else {
            return Ok(None);
        };
        let url = (endpoint.url)(&self.http.base);
        let answer = self.http.post(url, headers, body).await;
        let answer = answer.map_err(|silence| call.silence(&silence))?;
        let status = answer.status();
        if MISSING.contains(&status.as_u16()) {
            self.counter.missing.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let headers = answer.headers().clone();
        // The body is a small object, so the bound for error bodies suffices.
        let body = error_body(pieces(answer), self.http.timeouts.probe).await;
        if !status.is_success() {
            return Err(call.refused(status.as_u16(), &headers, &body));
        }
        let count: Value = serde_json::from_str(&body).unwrap_or_default();
        let tokens = count.get("input_tokens").and_then(Value::as_u64);
        let tokens = tokens.filter(|tokens| *tokens > 0).map(Tokens);
        // A server that answers every path with a success does not count.
        self.counter
            .missing
            .store(tokens.is_none(), Ordering::Relaxed);
        Ok(tokens)
    }
}

/// Returns a body with only these keys, each value unchanged. Returns `None` if the body is not an
/// object.
fn only(keys: &[&str], body: &[u8]) -> Option<Vec<u8>> {
    let whole: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let kept = whole
        .iter()
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .collect::<BTreeMap<_, _>>();
    serde_json::to_vec(&kept).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_as_it_was_written() {
        let body =
            br#"{"model":"m","stream":true,"messages":[{"a": 1.0,"b":"\u00e9"}],"max_tokens":4}"#;
        let kept = only(&["messages", "model", "tools"], body).unwrap();
        let kept = String::from_utf8(kept).unwrap();
        assert_eq!(
            kept,
            r#"{"messages":[{"a": 1.0,"b":"\u00e9"}],"model":"m"}"#
        );
        assert_eq!(only(&["a"], b"[]"), None);
    }
}
