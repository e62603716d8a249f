//! The pairs of tool calls and responses, and their signatures: GM1 to GM4, V3 and V4.

use serde_json::Value;

use super::validate::{GeminiCheck, call, calls, is_model, parts, response, responses};
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, text};

/// Judges calls and the contents that answer them.
pub(super) fn pairing(check: &mut GeminiCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let mut before: Option<&Value> = None;
    let mut rest = entries(request, "contents").iter().enumerate().peekable();
    while let Some((index, content)) = rest.next() {
        let place = format!("contents[{index}]");
        let calls = calls(content);
        if !responses(content).is_empty() {
            let refusal = if calls.is_empty() { "orphan" } else { "mixed" };
            check.report(refusal, place, &[]);
        } else if !calls.is_empty() {
            // A content with calls comes after one that is not the model's: GM2.
            if !is_model(content) || before.is_none_or(is_model) {
                check.report("call-turn", place.clone(), &[]);
            }
            let mut answers = Vec::new();
            while let Some(answer) = rest.next_if(|(_, next)| answers_only(next)) {
                answers.push(answer);
            }
            batch(check, place, &calls, &answers);
            if let Some((_, last)) = answers.last() {
                before = Some(last);
                continue;
            }
        }
        before = Some(content);
    }
}

/// Returns `true` if a content has responses and no calls.
fn answers_only(content: &Value) -> bool {
    !responses(content).is_empty() && calls(content).is_empty()
}

/// Judges the calls of one content and the contents that answer them: GM1, GM4, V3 and V4.
fn batch(
    check: &mut GeminiCheck<'_>,
    place: String,
    calls: &[&Value],
    answers: &[(usize, &Value)],
) {
    let responses = answers.iter().flat_map(|(_, answer)| responses(answer));
    let responses: Vec<&Value> = responses.collect();
    if responses.len() != calls.len() {
        check.report("count", place.clone(), &[]);
        if !responses.is_empty() && responses.len() < calls.len() {
            check.report("part-of-batch", place, &[]);
        }
    } else if answers.len() > 1 {
        check.report("split-responses", place, &[]);
    } else if !in_order(calls, &responses) {
        check.report("order", place, &[]);
    }
    for (at, answer) in answers {
        alone(check, *at, answer);
    }
}

/// Judges GM4: other parts come after the responses. The newest models allow no other parts.
fn alone(check: &mut GeminiCheck<'_>, at: usize, answer: &Value) {
    let mut rest = parts(answer)
        .iter()
        .skip_while(|part| response(part).is_some())
        .peekable();
    let refusal = if rest.peek().is_some() && !check.profile.prefill {
        // The API reports this even if the request does not end there: it does not treat the content as
        // responses.
        "mixed-responses"
    } else if rest.any(|part| response(part).is_some()) {
        "late-responses"
    } else {
        return;
    };
    check.report(refusal, format!("contents[{at}]"), &[]);
}

/// Returns `true` if the responses are in the order of the calls, compared by id if both have one,
/// otherwise by name.
fn in_order(calls: &[&Value], responses: &[&Value]) -> bool {
    calls.iter().zip(responses).all(|(call, response)| {
        match (text(call, "id"), text(response, "id")) {
            ("", _) | (_, "") => text(call, "name") == text(response, "name"),
            (call_id, response_id) => call_id == response_id,
        }
    })
}

/// Judges GM3: since the last user message, the first call of each step is signed.
pub(super) fn signatures(check: &mut GeminiCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let contents = entries(request, "contents");
    let is_said = |part: &Value| {
        let has = |key| part.get(key).is_some();
        has("inline_data") || has("file_data") || !text(part, "text").is_empty()
    };
    let is_users = |content: &Value| {
        let is_answer = is_model(content) || !responses(content).is_empty();
        !is_answer && parts(content).iter().any(is_said)
    };
    let start = contents.iter().rposition(is_users).unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(start) {
        let first = parts(content).iter().find(|part| call(part).is_some());
        if let Some(part) = first.filter(|part| text(part, "thought_signature").is_empty()) {
            let name = call(part).map_or("", |call| text(call, "name"));
            let place = format!("contents[{index}]");
            check.report("unsigned", place, &[&name, &(index + 1)]);
        }
    }
}
