//! The server side of Anthropic Messages. The rules for requests, headers and thinking are in
//! `wire`; this module handles valid requests.

mod say;
mod weigh;

use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_judge::Fault;
use plimsoll_judge::anthropic::{admission, refusal, unsigned, validate_announced, validate_count};
use plimsoll_wire::anthropic::Profile;
use serde_json::{Value, json};

use crate::answer::{Answer, Said};
use crate::api::{Api, Asked, Called, Header, Place, Size, text};
use crate::cache::Caching;
use crate::pieces::Piece;
use crate::turn::Turn;

/// Anthropic's API. The rules for a request depend on the model that it names.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) keys: Keys,
}

/// Whether a client needs an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Any key is accepted.
    Needed,
    /// No key is needed.
    Unneeded,
}

fn profile(request: &Value) -> Profile {
    Profile::of_model(text(request, "model"))
}

fn error(status: u16, kind: &str, message: &str) -> Answer {
    let error = json!({"type": kind, "message": message});
    Answer::new(status, json!({"type": "error", "error": error}))
}

impl Api for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn asked(&self, path: &str) -> Option<Asked> {
        match path {
            _ if path.ends_with("/v1/messages") => Some(Asked::Reply),
            _ if path.ends_with("/v1/messages/count_tokens") => Some(Asked::Count),
            _ => None,
        }
    }

    fn turned_away(&self, header: Header<'_>, request: &Value) -> Option<Answer> {
        let header = |name: &str| match (name, self.keys) {
            ("x-api-key", Keys::Unneeded) => Some("none".to_owned()),
            _ => header(name),
        };
        if let Err((status, body)) = admission(&header, request) {
            return Some(Answer::new(status, body));
        }
        // The SDK's own loop asks for a thread, and then sends only new messages.
        let words = "thread: this mock keeps no threads; send the whole history";
        let kept = request.get("thread").is_some_and(|kept| !kept.is_null());
        kept.then(|| error(400, "invalid_request_error", words))
    }

    fn fault(&self, header: Header<'_>, request: &Value, asked: Asked) -> Option<Fault> {
        let profile = profile(request);
        let faults = match asked {
            Asked::Reply => {
                let betas = header("anthropic-beta").unwrap_or_default();
                validate_announced(request, &profile, &betas)
            }
            Asked::Count => validate_count(request, &profile),
        };
        faults.into_iter().next().or_else(|| unsigned(request))
    }

    fn refusal(&self, fault: &Fault) -> Answer {
        let (status, body) = refusal(fault);
        Answer::new(status, body)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<Piece> {
        weigh::pieces(request, counter)
    }

    fn output(&self, request: &Value) -> Option<Tokens> {
        request.get("max_tokens")?.as_u64().map(Tokens)
    }

    /// Output has its own limit.
    fn rated(&self, _: &Value, sent: Tokens) -> Tokens {
        sent
    }

    fn caching(&self, request: &Value) -> Caching {
        Caching::Marked {
            minimum: profile(request).min_cacheable,
        }
    }

    fn too_long(&self, _: &Value, size: Size) -> Answer {
        let Size {
            used,
            output,
            window,
        } = size;
        let words = match used > window {
            true => format!("prompt is too long: {used} tokens > {window} maximum"),
            false => format!(
                "input length and `max_tokens` exceed context limit: {used} + {output} > \
                 {window}, decrease input length or `max_tokens` and try again"
            ),
        };
        error(400, "invalid_request_error", &words)
    }

    fn too_many(&self, request: &Value, _: Tokens, limit: Tokens) -> Answer {
        let model = text(request, "model");
        let words = format!(
            "This request would exceed your organization's rate limit of {limit} input tokens per \
             minute (org: org_mock, model: {model}). For details, refer to: \
             https://docs.claude.com/en/api/rate-limits. You can see the response headers for \
             current usage. Please reduce the prompt length or the maximum tokens requested, or \
             try again later."
        );
        error(429, "rate_limit_error", &words)
    }

    fn failure(&self, status: u16, message: Option<&str>) -> Answer {
        let (kind, words) = match status {
            400 => ("invalid_request_error", "Invalid request"),
            401 => ("authentication_error", "invalid x-api-key"),
            402 => (
                "billing_error",
                "Your credit balance is too low to access the Anthropic API.",
            ),
            403 => (
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            404 => ("not_found_error", "model: mock"),
            413 => ("request_too_large", "Request exceeds the maximum size"),
            429 => (
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            ),
            504 => ("timeout_error", "The request timed out."),
            529 => ("overloaded_error", "Overloaded"),
            405..=499 => ("invalid_request_error", "Invalid request"),
            _ => ("api_error", "Internal server error"),
        };
        error(status, kind, message.unwrap_or(words))
    }

    fn window_stop(&self) -> Option<&'static str> {
        Some("model_context_window_exceeded")
    }

    fn say(&self, turn: &Turn, call: &Called<'_>) -> Said {
        say::say(turn, call)
    }

    fn opening(&self) -> usize {
        1
    }

    fn broken(&self, failure: &Answer, _: &Called<'_>, _: usize) -> String {
        match &failure.body {
            Said::Whole(error) => say::event(error),
            _ => String::new(),
        }
    }

    fn counted(&self, tokens: Tokens) -> Value {
        json!({ "input_tokens": tokens })
    }

    fn about(&self, path: &str, place: &Place<'_>) -> Option<Answer> {
        let model = |id: &str| {
            json!({
                "type": "model",
                "id": id,
                "display_name": id,
                "created_at": "2025-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": place.window,
                "max_tokens": Profile::of_model(id).max_output,
            })
        };
        if path.ends_with("/v1/models") {
            let data: Vec<Value> = place.models.iter().map(|id| model(id)).collect();
            let list = json!({"data": data, "has_more": false,
                "first_id": place.models.first(), "last_id": place.models.last()});
            return Some(Answer::new(200, list));
        }
        let (_, id) = path.split_once("/v1/models/")?;
        Some(Answer::new(200, model(id)))
    }

    fn names_request(&self) -> &'static str {
        "request-id"
    }

    fn nowhere(&self, method: &str, path: &str) -> Answer {
        let words = format!(
            "Not Found: {method} {path}; this mock speaks Anthropic Messages, at /v1/messages"
        );
        error(404, "not_found_error", &words)
    }
}
