//! The server side of Anthropic Messages: headers, counting, refusals and answers. The rules for requests
//! and thinking are in the module `rules`.

mod admission;
mod encode;
mod weigh;

use crate::rules::Fault;
use crate::rules::anthropic::{
    TABLE, error_body, refusal, undeclared, unsigned, validate_announced,
};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, Header, PendingReply, RequestKind, ServerInfo, Size, text};
use crate::cache::Caching;
use crate::pieces::RequestPiece;
use crate::turn::Turn;
use admission::{admission, validate_count};

/// Anthropic's API. The rules for a request depend on the model that it names.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Whether a client needs an API key. Any key is accepted.
    pub(crate) needs_key: bool,
}

fn profile(request: &Value) -> MessagesProfile {
    MessagesProfile::of_model(text(request, "model"))
}

fn error(status: u16, kind: &str, message: &str) -> HttpAnswer {
    HttpAnswer::new(status, error_body(kind, message))
}

impl Api for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn base_path(&self) -> &'static str {
        // Anthropic's own clients append the version themselves.
        ""
    }

    fn request_kind(&self, path: &str) -> Option<RequestKind> {
        match path {
            _ if path.ends_with("/v1/messages") => Some(RequestKind::Reply),
            _ if path.ends_with("/v1/messages/count_tokens") => Some(RequestKind::Count),
            _ => None,
        }
    }

    fn turned_away(&self, header: Header<'_>, request: &Value) -> Option<HttpAnswer> {
        let header = |name: &str| match name {
            "x-api-key" if !self.needs_key => Some("none".to_owned()),
            name => header(name),
        };
        if let Some(refusal) = admission(&header, request) {
            return Some(refusal);
        }
        // The SDK's own loop asks for a thread, and then sends only new messages.
        let words = "thread: this mock keeps no threads; send the whole history";
        let kept = request.get("thread").is_some_and(|kept| !kept.is_null());
        kept.then(|| error(400, "invalid_request_error", words))
    }

    fn fault(&self, header: Header<'_>, request: &Value, kind: RequestKind) -> Option<Fault> {
        let profile = profile(request);
        let faults = match kind {
            RequestKind::Reply => {
                let betas = header("anthropic-beta").unwrap_or_default();
                validate_announced(request, &profile, &betas)
            }
            RequestKind::Count => validate_count(request, &profile),
        };
        let fault = faults.into_iter().next();
        fault
            .or_else(|| undeclared(request))
            .or_else(|| unsigned(request))
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
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

    fn too_long(&self, _: &Value, size: Size) -> HttpAnswer {
        let Size {
            used,
            output,
            window,
        } = size;
        let words = if used > window {
            format!("prompt is too long: {used} tokens > {window} maximum")
        } else {
            format!(
                "input length and `max_tokens` exceed context limit: {used} + {output} > \
                 {window}, decrease input length or `max_tokens` and try again"
            )
        };
        error(400, "invalid_request_error", &words)
    }

    fn too_many(&self, request: &Value, _: Tokens, limit: Tokens) -> HttpAnswer {
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

    fn failure(&self, status: u16, message: Option<&str>) -> HttpAnswer {
        let (kind, _, words) = TABLE.failure(status);
        error(status, kind, message.unwrap_or(words))
    }

    fn window_stop(&self) -> Option<&'static str> {
        Some("model_context_window_exceeded")
    }

    fn body(&self, turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
        encode::say(turn, call)
    }

    fn opening(&self) -> usize {
        1
    }

    fn broken(&self, failure: &HttpAnswer, _: &PendingReply<'_>, _: usize) -> String {
        match &failure.body {
            AnswerBody::Whole(error) => encode::event(error),
            _ => String::new(),
        }
    }

    fn counted(&self, tokens: Tokens) -> Value {
        json!({ "input_tokens": tokens })
    }

    fn about(&self, path: &str, info: &ServerInfo<'_>) -> Option<HttpAnswer> {
        let model = |id: &str| {
            json!({
                "type": "model",
                "id": id,
                "display_name": id,
                "created_at": "2025-01-01T00:00:00Z",
                "lifecycle": "active",
                "max_input_tokens": info.window,
                "max_tokens": MessagesProfile::of_model(id).max_output,
            })
        };
        if path.ends_with("/v1/models") {
            let data: Vec<Value> = info.models.iter().map(|id| model(id)).collect();
            let list = json!({"data": data, "has_more": false,
                "first_id": info.models.first(), "last_id": info.models.last()});
            return Some(HttpAnswer::new(200, list));
        }
        let (_, id) = path.split_once("/v1/models/")?;
        Some(HttpAnswer::new(200, model(id)))
    }

    fn names_request(&self) -> &'static str {
        "request-id"
    }

    fn nowhere(&self, method: &str, path: &str) -> HttpAnswer {
        let words = format!(
            "Not Found: {method} {path}; this mock speaks Anthropic Messages, at /v1/messages"
        );
        error(404, "not_found_error", &words)
    }
}
