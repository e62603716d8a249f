//! Checks whether tool calls and responses answer each other and have their signatures: GM1 to GM4, V3
//! and V4. Part of the validator.

use serde_json::Value;

use super::validate::{
    GeminiCheck, call, calls, field, is_model, parts, response, responses, signature, text,
};

/// Judges a list of contents.
pub(super) fn check(check: &mut GeminiCheck<'_>, contents: &[Value]) {
    let mut before: Option<&Value> = None;
    let mut rest = contents.iter().enumerate().peekable();
    while let Some((index, content)) = rest.next() {
        let calls = calls(content);
        if !responses(content).is_empty() {
            orphan(check, index, content);
        } else if !calls.is_empty() {
            turn(check, index, content, before);
            let mut answers = Vec::new();
            while let Some((at, answer)) = rest.next_if(|(_, next)| answers_only(next)) {
                answers.push((at, answer));
            }
            batch(check, index, &calls, &answers);
            if let Some((_, last)) = answers.last() {
                before = Some(last);
                continue;
            }
        }
        before = Some(content);
    }
    signatures(check, contents);
}

/// Returns `true` if a content has responses and no calls.
fn answers_only(content: &Value) -> bool {
    !responses(content).is_empty() && calls(content).is_empty()
}

/// Reports responses without calls.
fn orphan(check: &mut GeminiCheck<'_>, index: usize, content: &Value) {
    let refusal = if calls(content).is_empty() {
        "orphan"
    } else {
        "mixed"
    };
    check.report(refusal, format!("contents[{index}]"), &[]);
}

/// Judges the place of a content with calls (GM2) and its role.
fn turn(check: &mut GeminiCheck<'_>, index: usize, content: &Value, before: Option<&Value>) {
    if !is_model(content) || before.is_none_or(is_model) {
        check.report("call-turn", format!("contents[{index}]"), &[]);
    }
}

/// Judges the calls of one content and the contents that answer them: GM1, GM4, V3 and V4.
fn batch(check: &mut GeminiCheck<'_>, index: usize, calls: &[&Value], answers: &[(usize, &Value)]) {
    let responses = answers.iter().flat_map(|(_, answer)| responses(answer));
    let responses: Vec<&Value> = responses.collect();
    let place = format!("contents[{index}]");
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
    let parts = parts(answer);
    let first = parts.iter().take_while(|part| response(part).is_some());
    let first = first.count();
    let mixed = parts.iter().any(|part| response(part).is_none());
    let late = first < responses(answer).len();
    let refusal = if mixed && !check.profile.prefill {
        // The API reports this even if the request does not end there: it does not treat the content as
        // responses.
        "mixed-responses"
    } else if late {
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
fn signatures(check: &mut GeminiCheck<'_>, contents: &[Value]) {
    if !check.profile.signatures_required {
        return;
    }
    let has_user_content = |content: &Value| {
        !is_model(content)
            && responses(content).is_empty()
            && parts(content).iter().any(|part| {
                let media = field(part, "inlineData", "inline_data").is_some()
                    || field(part, "fileData", "file_data").is_some();
                media || !text(part, "text").is_empty()
            })
    };
    let start = contents
        .iter()
        .rposition(has_user_content)
        .unwrap_or_default();
    for (index, content) in contents.iter().enumerate().skip(start) {
        let first = parts(content).iter().find(|part| call(part).is_some());
        let Some(part) = first.filter(|part| signature(part).is_empty()) else {
            continue;
        };
        let name = call(part).map_or("", |call| text(call, "name"));
        check.report(
            "unsigned",
            format!("contents[{index}]"),
            &[&name, &(index + 1)],
        );
    }
}
