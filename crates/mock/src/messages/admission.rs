//! The checks that the API makes before it reads a body.
//!
//! [`admission`] judges the headers and the keys of the body that need a beta header.
//! [`validate_count`] judges a request that only counts tokens. The rules for bodies are in the `judge`
//! crate.

use crate::rules::Fault;
use crate::rules::anthropic::{TABLE, validate};
use plimsoll_wire::__internals::anthropic::{CONTEXT_MANAGEMENT, FILES, beta_of};
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::Value;

use super::error;
use crate::answer::HttpAnswer;
use crate::api::{Header, list, text};

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
    let mut whole = request.clone();
    if let Some(keys) = whole.as_object_mut() {
        // As much as the model can write, so that any budget for thinking is below it.
        let most = profile.max_output.unwrap_or(u64::MAX);
        keys.insert("max_tokens".into(), most.into());
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::answer::AnswerBody;
    use crate::rules::Rule;

    fn refused(headers: &[(&str, &str)], request: &Value) -> Option<(u16, String)> {
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let HttpAnswer { status, body, .. } = admission(&header, request)?;
        let AnswerBody::Whole(body) = body else {
            panic!("{body:?}");
        };
        let words = body.pointer("/error/message").and_then(Value::as_str);
        Some((status, words.unwrap_or_default().to_owned()))
    }

    #[test]
    fn headers_are_judged_before_the_body() {
        let key = ("x-api-key", "k");
        let version = ("anthropic-version", "2023-06-01");
        let plain = json!({});
        assert_eq!(
            refused(&[version], &plain),
            Some((401, "x-api-key header is required".into()))
        );
        assert_eq!(
            refused(&[key], &plain),
            Some((400, "anthropic-version: header is required".into()))
        );
        assert_eq!(refused(&[key, version], &plain), None);
        let bearer = ("authorization", "Bearer k");
        assert_eq!(refused(&[bearer, version], &plain), None);
    }

    #[test]
    fn new_keys_need_a_beta_header() {
        let head = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
        let managed = json!({"context_management": {"edits": []}});
        let file = json!({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "this"},
            {"type": "document", "source": {"type": "file", "file_id": "f"}}]}]});
        for (request, beta, words) in [
            (&managed, CONTEXT_MANAGEMENT, "context_management: Extra"),
            (
                &file,
                FILES,
                "messages.0.content.1.source: Input tag 'file'",
            ),
        ] {
            let (status, message) = refused(&head, request).unwrap();
            assert_eq!(status, 400);
            assert!(message.starts_with(words), "{message}");
            let betas = format!("another, {beta}");
            let with = [head[0], head[1], ("anthropic-beta", betas.as_str())];
            assert_eq!(refused(&with, request), None);
        }
    }

    #[test]
    fn new_tools_need_a_beta_header() {
        let head = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
        for (tool, beta) in [
            (
                json!({"type": "advisor_20260301", "name": "advisor"}),
                "advisor-tool-2026-03-01",
            ),
            (
                json!({"type": "code_execution_20250522", "name": "code_execution"}),
                "code-execution-2025-05-22",
            ),
            (
                json!({"type": "mcp_toolset", "mcp_server_name": "ship"}),
                "mcp-client-2025-11-20",
            ),
        ] {
            let request = json!({"tools": [tool]});
            let with = [head[0], head[1], ("anthropic-beta", beta)];
            assert_eq!(refused(&with, &request), None);
            let (status, words) = refused(&head, &request).unwrap();
            assert_eq!(status, 400);
            assert!(words.contains("Input tag"), "{words}");
        }
    }

    #[test]
    fn a_count_is_asked_for_without_what_a_reply_needs() {
        let profile = MessagesProfile::of_model("claude-sonnet-4-5");
        let request = json!({"model": "claude-sonnet-4-5",
            "thinking": {"type": "enabled", "budget_tokens": 16_000},
            "messages": [{"role": "user", "content": "hi"}]});
        assert_eq!(validate_count(&request, &profile), []);
        let mut more = request.clone();
        more["max_tokens"] = 5.into();
        let words = &validate_count(&more, &profile)[0].words;
        assert_eq!(words, "max_tokens: Extra inputs are not permitted");
        let mut bad = request;
        bad["messages"] = json!([]);
        assert_eq!(validate_count(&bad, &profile)[0].rule, Rule::Am7);
    }
}
