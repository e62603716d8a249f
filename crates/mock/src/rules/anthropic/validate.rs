//! [`validate`]: every rule of Anthropic Messages that a request breaks, judged as the API judges it
//! for the model of a [`MessagesProfile`], in its own words. Used by mock servers and property
//! tests. Never panics, whatever the JSON is.
//!
//! Judged here: AM1 to AM11, AM13, AM14, V3 and V4 of the rules. A breakpoint that does nothing (AM12)
//! is not refused. V1, V2 and V5 to V11 need more than one request to judge.

use std::fmt::{self, Write as _};

use plimsoll_wire::__internals::anthropic::goes_on_from;
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::{Value, json};

use super::rules::TABLE;
use super::{pairing, simulate, validate_marks, validate_settings};
use crate::rules::fault::{Fault, Rule};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, entries};
pub(super) use crate::rules::table::{content, kind, role, text};

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request.
#[must_use]
pub fn validate(request: &Value, profile: &MessagesProfile) -> Vec<Fault> {
    validate_announced(request, profile, "")
}

/// Like [`validate`], for a request with these features in its `anthropic-beta` header, separated by
/// commas.
#[must_use]
pub fn validate_announced(request: &Value, profile: &MessagesProfile, betas: &str) -> Vec<Fault> {
    let mut check = MessagesCheck::new(profile, &TABLE);
    check.betas = betas;
    check.size(request);
    check.judge("request", "", &JsonPath::Dotted(""), request);
    validate_settings::check(&mut check, request);
    check.judge("messages", "", &JsonPath::Dotted(""), request);
    let messages = entries(request, "messages");
    check.order(messages);
    pairing::check(&mut check, messages);
    validate_settings::check_loop(&mut check, request, messages);
    simulate::check(&mut check, request, messages);
    validate_marks::check(&mut check, request);
    check.faults
}

/// Returns the status and the body with which the API refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let (status, kind) = match fault.rule {
        Rule::Am13 => (413, "request_too_large"),
        _ => (400, "invalid_request_error"),
    };
    (status, error_body(kind, &fault.words))
}

/// Returns the body of an error.
pub(crate) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

pub(super) type MessagesCheck<'p> = table::Check<'p, MessagesProfile>;

impl MessagesCheck<'_> {
    /// Returns `true` if the header announces the feature.
    pub(super) fn announces(&self, beta: &str) -> bool {
        let mut betas = self.betas.split(',').map(str::trim);
        betas.any(|one| one.starts_with(beta))
    }

    /// Judges the size of the request: AM13.
    fn size(&mut self, request: &Value) {
        // Not `to_writer`: `Display` is compiled in serde_json, which is optimised in development builds too.
        let mut counted = ByteCounter(0);
        let _ = write!(counted, "{request}");
        if counted.0 > self.profile.max_body.0 {
            self.report("too-large", "the body", &[]);
        }
    }

    /// Judges the order of the messages: the end of AM6, AM7 and AM8.
    fn order(&mut self, messages: &[Value]) {
        if messages.first().map(role) == Some("assistant") {
            self.report("assistant-first", "messages.0", &[]);
        }
        let Some(last) = messages.last().filter(|last| role(last) == "assistant") else {
            return;
        };
        let place = format!("messages.{}", messages.len() - 1);
        // A paused turn is continued from here, so it is not a prefill.
        if content(last)
            .last()
            .is_some_and(|block| goes_on_from(kind(block)))
        {
            return;
        }
        if !self.profile.prefill {
            self.report("prefill", place, &[]);
            return;
        }
        let text = match last.get("content") {
            Some(Value::Array(blocks)) => blocks.last().and_then(|block| block.get("text")),
            content => content,
        };
        let text = text.and_then(Value::as_str).unwrap_or_default();
        if text.ends_with(char::is_whitespace) {
            self.report("trailing-space", place, &[]);
        }
    }
}

/// A writer that only counts bytes.
struct ByteCounter(u64);

impl fmt::Write for ByteCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.saturating_add(text.len() as u64);
        Ok(())
    }
}

pub(super) fn is_thinking(block: &Value) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}
