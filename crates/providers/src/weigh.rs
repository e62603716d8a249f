//! What a server says that a request weighs, where it has an endpoint for that: the request as it
//! would be sent, without the keys that such an endpoint does not know. Not a call: nothing is
//! generated and nothing is charged.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_agent::Failure;
use plimsoll_context::Tokens;
use reqwest::header::HeaderMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::{error_body, pieces};
use crate::line::Line;
use crate::refusal::Asked;

/// What a server without such an endpoint answers: no such path, no such method, not implemented.
const HAS_NONE: [u16; 3] = [404, 405, 501];

/// Whether a server is asked.
#[derive(Debug, Default)]
pub(crate) struct Scales {
    /// It has said that it cannot, and is not asked again.
    none: AtomicBool,
}

impl Line {
    /// Asks what a body weighs, of which only `keys` are said. `None` where the server cannot say.
    pub(crate) async fn weigh(
        &self,
        path: &str,
        headers: HeaderMap,
        body: &[u8],
        keys: &[&str],
    ) -> Result<Option<Tokens>, Failure> {
        if self.scales.none.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let call = self.call_of(Asked::default());
        let Some(body) = only(keys, body) else {
            return Ok(None);
        };
        let answer = self.http.post(path, headers, body).await;
        let answer = answer.map_err(|silence| call.silence(&silence))?;
        let status = answer.status();
        if HAS_NONE.contains(&status.as_u16()) {
            self.scales.none.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        let headers = answer.headers().clone();
        // A number in braces; what is longer than an error may be is none.
        let said = error_body(pieces(answer), self.http.timeouts.probe).await;
        if !status.is_success() {
            return Err(call.refused(status.as_u16(), &headers, &said));
        }
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let tokens = said.get("input_tokens").and_then(Value::as_u64);
        let tokens = tokens.filter(|tokens| *tokens > 0).map(Tokens);
        // One that answers everything with something answers nothing.
        self.scales.none.store(tokens.is_none(), Ordering::Relaxed);
        Ok(tokens)
    }
}

/// A body with these of its keys, each value as it was written; `None` where it is no object.
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
