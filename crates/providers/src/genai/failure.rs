//! Why a call through the library failed, as a [`Failure`]: what it wraps is taken out again and
//! told as any other provider's. Decides nothing about texts; `refusal.rs` does, by one table.

use std::time::Duration;

use genai::webc::StreamTimeout;
use plimsoll_agent::Failure;
use plimsoll_context::Delta;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use super::hearing::Unheard;
use crate::http::{MAX_ERROR_BODY, Silence, innermost};
use crate::receive::Broken;
use crate::refusal::Call;

/// Where Bedrock says what kind of error it is; its body does not.
const ERROR_TYPE: &str = "x-amzn-errortype";

/// A request that the library cannot write was refused before it was sent.
pub(super) fn unsaid(call: &Call<'_>, error: &genai::Error) -> Failure {
    Failure::Refused {
        status: None,
        message: call.strike_out(error.to_string()),
    }
}

/// What broke an answer, or the way to it.
pub(super) fn of(
    call: &Call<'_>,
    unheard: Unheard,
    idle: Duration,
    deltas: &(dyn Fn(Delta) + Send + Sync),
) -> Failure {
    match unheard {
        Unheard::Broken(broken) => call.broken(broken),
        Unheard::Error(error) => match *error {
            genai::Error::WebStream { error, .. } => transport(call, error, idle, deltas),
            error => library(call, error, deltas),
        },
    }
}

/// The library hides what it is behind a box.
fn transport(
    call: &Call<'_>,
    error: genai::BoxError,
    idle: Duration,
    deltas: &(dyn Fn(Delta) + Send + Sync),
) -> Failure {
    let error = match error.downcast::<genai::Error>() {
        Ok(error) => return library(call, *error, deltas),
        Err(error) => error,
    };
    let error = match error.downcast::<StreamTimeout>() {
        Ok(timeout) => {
            return match *timeout {
                StreamTimeout::Headers => call.silence(&Silence::Timeout(idle)),
                StreamTimeout::Read => call.broken(Broken::Idle(idle)),
            };
        }
        Err(error) => error,
    };
    match error.downcast::<reqwest::Error>() {
        Ok(error) if error.is_body() || error.is_decode() => {
            call.broken(Broken::Cut(innermost(&error.without_url())))
        }
        Ok(error) => call.silence(&Silence::Error(error.without_url())),
        Err(error) => call.broken(Broken::Garbled(innermost(&*error))),
    }
}

fn library(
    call: &Call<'_>,
    error: genai::Error,
    deltas: &(dyn Fn(Delta) + Send + Sync),
) -> Failure {
    match error {
        genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        } => {
            let (status, body) = (status.as_u16(), told(bounded(body), &headers));
            deltas(Delta::Refused { status });
            call.refused(status, &headers, &body)
        }
        other => call.broken(Broken::Garbled(other.to_string())),
    }
}

fn bounded(body: String) -> String {
    let limit = usize::try_from(MAX_ERROR_BODY.0).unwrap_or(usize::MAX);
    if body.len() <= limit {
        return body;
    }
    let kept = body.get(..body.floor_char_boundary(limit));
    format!(
        "{} … [the rest of this error was not read]",
        kept.unwrap_or_default()
    )
}

/// The body with the kind of error in it, where a header has it and the body does not.
fn told(body: String, headers: &HeaderMap) -> String {
    let kind = headers.get(ERROR_TYPE).and_then(|kind| kind.to_str().ok());
    // `ValidationException:http://internal.amazon.com/…`
    let kind = kind.and_then(|kind| kind.split(':').next());
    let Some(kind) = kind.filter(|kind| !kind.is_empty()) else {
        return body;
    };
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(&body) else {
        return body;
    };
    object.entry("code").or_insert_with(|| kind.into());
    Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_in_a_header_is_part_of_the_error() {
        let mut headers = HeaderMap::new();
        let plain = r#"{"message":"no"}"#.to_owned();
        assert_eq!(told(plain.clone(), &headers), plain);
        let kind = "ThrottlingException:http://internal/coral/"
            .parse()
            .unwrap();
        headers.insert(ERROR_TYPE, kind);
        let coded = r#"{"message":"no","code":"ThrottlingException"}"#;
        assert_eq!(told(plain, &headers), coded);
        assert_eq!(told("no JSON".into(), &headers), "no JSON");
    }
}
