//! [`validate`]: every rule of Anthropic Messages that a request breaks, judged as the API judges it
//! for the model of a [`MessagesProfile`], in its own words. Used by mock servers and property
//! tests. Never panics, whatever the JSON is.
//!
//! `rules/anthropic.txt` names the rules. V1, V2 and V5 to V11 need more than one request to judge.

use std::sync::LazyLock;

use plimsoll_wire::__internals::anthropic::family_of;
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::{Value, json};

use super::{conditions, marks, pairing, signatures, thinking};
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, kind, text};

pub(super) type MessagesCheck<'p> = table::Check<'p, MessagesProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<MessagesProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/anthropic.txt"),
        &conditions::ALL,
        &[
            ("size", size),
            ("tool_name", tool_name),
            ("pairing", pairing::pairing),
            ("server_pairing", pairing::server_pairing),
            ("thinking", thinking::thinking),
            ("signatures", signatures::signatures),
            ("marks", marks::marks),
        ],
    )
});

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
    let mut check = MessagesCheck::new(&TABLE, profile, request);
    check.betas = betas;
    check.faults("request", JsonPath::Dotted(""))
}

/// Returns the status and the body with which the API refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let (status, kind) = match fault.rule {
        "AM13" => (413, "request_too_large"),
        _ => (400, "invalid_request_error"),
    };
    (status, error_body(kind, &fault.words))
}

/// Returns the body of an error.
pub(crate) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// Judges the size of the request: AM13.
fn size(check: &mut MessagesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    if request.to_string().len() as u64 > check.profile.max_body.0 {
        check.report("too-large", "the body", &[]);
    }
}

/// Judges the name of a tool that the provider defines.
fn tool_name(check: &mut MessagesCheck<'_>, place: &JsonPath<'_>, tool: &Value) {
    let (kind, name) = (kind(tool), text(tool, "name"));
    // Tools that edit texts had several names.
    let required = family_of(kind).filter(|family| *family != "text_editor");
    if let Some(known) = required.filter(|known| !name.is_empty() && *known != name) {
        check.report("other-tool-name", *place, &[&kind, &known]);
    }
}
