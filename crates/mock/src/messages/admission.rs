//! The checks that the API makes before it reads a body.
//!
//! [`admission`] judges the headers and the keys of the body that need a beta header.
//! [`validate_count`] judges a request that only counts tokens. The rules for bodies are in the module
//! `rules`.

use crate::rules::Fault;
use crate::rules::anthropic::{TABLE, validate};
use plimsoll_wire::__internals::anthropic::{CONTEXT_MANAGEMENT, FILES, beta_of};
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::{Value, json};

use super::error;
use crate::answer::HttpAnswer;
use crate::api::{Header, list, text, with};

/// Refuses a request for its headers, as the API does: without a key, without a version, or with keys
/// of its body that a beta header has to announce.
/// Returns `None` if the API would read the request.
pub(super) fn admission(header: Header<'_>, request: &Value) -> Option<HttpAnswer> {
    let invalid = |message: &str| Some(error(400, "invalid_request_error", message));
    let non_empty = |name: &str| header(name).filter(|value| !value.trim().is_empty());
    if non_empty("x-api-key").is_none() && non_empty("authorization").is_none() {
        let message = "x-api-key header is required";
        return Some(error(401, "authentication_error", message));
    }
    if non_empty("anthropic-version").is_none() {
        return invalid("anthropic-version: header is required");
    }
    let betas = non_empty("anthropic-beta").unwrap_or_default();
    let announced = |beta: &str| betas.split(',').any(|one| one.trim() == beta);
    if request.get("context_management").is_some() && !announced(CONTEXT_MANAGEMENT) {
        return invalid("context_management: Extra inputs are not permitted");
    }
    for (index, tool) in list(request, "tools").iter().enumerate() {
        let kind = text(tool, "type");
        if beta_of(kind).is_some_and(|beta| !announced(beta)) {
            return invalid(&format!(
                "tools.{index}: Input tag '{kind}' found using 'type' does not match any of the \
                 expected tags"
            ));
        }
    }
    let place = file(request).filter(|_| !announced(FILES))?;
    invalid(&format!(
        "{place}.source: Input tag 'file' found using 'type' does not match any of the expected \
         tags: 'base64', 'content', 'text', 'url'"
    ))
}

/// Returns the rules that a request for a token count breaks. Empty for a valid one.
pub(super) fn validate_count(request: &Value, profile: &MessagesProfile) -> Vec<Fault> {
    let keys = request.as_object().into_iter().flatten();
    let of_replies = keys.filter(|(key, _)| TABLE.has("count-keys", key));
    let mut faults: Vec<Fault> = of_replies
        .map(|(key, _)| TABLE.fault("key-of-replies", key, &[]))
        .collect();
    // As much as the model can write, so that any budget for thinking is below it.
    let most = profile.max_output.unwrap_or(u64::MAX);
    let whole = with(request.clone(), json!({ "max_tokens": most }));
    faults.extend(validate(&whole, profile));
    faults
}

/// Returns the place of the first file that is named by an id.
fn file(request: &Value) -> Option<String> {
    let mut messages = list(request, "messages").iter().enumerate();
    messages.find_map(|(index, message)| {
        let mut blocks = list(message, "content").iter();
        let at = blocks.position(|block| {
            let source = block.get("source").unwrap_or(&Value::Null);
            text(source, "type") == "file"
        })?;
        Some(format!("messages.{index}.content.{at}"))
    })
}
