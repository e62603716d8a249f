//! [`validate`]: every rule of `generateContent` that a request breaks, judged as the API judges it for
//! the model of a [`GeminiProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! Judged here: GM1 to GM5, V3 and V4 of the rules. The API accepts keys in two spellings
//! (`functionCall`, `function_call`), so both are read.
//!
//! The API's words are its own: tidy:allow-file(function call)

use plimsoll_context::Tokens;
use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::fault::{Fault, Rule, note};
pub(super) use crate::table::text;

/// The kinds of a part. A part needs one of these keys.
const DATA: [(&str, &str); 9] = [
    ("text", "text"),
    ("inlineData", "inline_data"),
    ("fileData", "file_data"),
    ("functionCall", "function_call"),
    ("functionResponse", "function_response"),
    ("executableCode", "executable_code"),
    ("codeExecutionResult", "code_execution_result"),
    ("toolCall", "tool_call"),
    ("toolResponse", "tool_response"),
];
/// The maximum length of a tool's name.
const MAX_NAME: usize = 64;

/// Returns the rules that a request breaks, in the order of contents within each group of rules. Empty
/// for a valid request.
#[must_use]
pub fn validate(request: &Value, profile: &GeminiProfile) -> Vec<Fault> {
    let mut check = GeminiCheck {
        profile,
        faults: Vec::new(),
    };
    check.settings(request);
    let contents = request.get("contents").and_then(Value::as_array);
    match contents.map(Vec::as_slice).unwrap_or_default() {
        [] => {
            let words = "* GenerateContentRequest.contents: contents is not specified\n";
            check.fault(Rule::Gm5, "contents", words);
        }
        contents => {
            for (index, content) in contents.iter().enumerate() {
                check.role(index, content, contents.len());
                let place = format!("contents[{index}]");
                check.parts(&place, content);
            }
            pairing::check(&mut check, contents);
            check.last(contents);
        }
    }
    check.faults
}

/// Returns the rules that a request for an explicit cache breaks. `tokens` counts its contents, system
/// instruction and tools.
#[must_use]
pub fn validate_cache(tokens: Tokens, profile: &GeminiProfile) -> Vec<Fault> {
    let least = profile.min_cached;
    if tokens >= least {
        return Vec::new();
    }
    let words = format!(
        "Cached content is too small. total_token_count={}, min_total_token_count={}",
        tokens.0, least.0
    );
    vec![Fault {
        rule: Rule::Gm5,
        place: "contents".into(),
        words,
    }]
}

/// Returns the status and the body with which the API refuses a request for a fault.
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    let error = json!({
        "code": 400,
        "message": fault.words,
        "status": "INVALID_ARGUMENT",
    });
    (400, json!({ "error": error }))
}

/// The faults found so far.
pub(super) struct GeminiCheck<'p> {
    pub(super) profile: &'p GeminiProfile,
    faults: Vec<Fault>,
}

impl GeminiCheck<'_> {
    pub(super) fn fault(&mut self, rule: Rule, place: impl Into<String>, words: impl Into<String>) {
        note(&mut self.faults, rule, place, words);
    }

    fn settings(&mut self, request: &Value) {
        let system = field(request, "systemInstruction", "system_instruction");
        if let Some(system) = system.filter(|system| !system.is_null()) {
            self.parts("system_instruction", system);
        }
        let tools = request.get("tools").and_then(Value::as_array);
        for (index, tool) in tools.into_iter().flatten().enumerate() {
            let place = format!("tools[{index}]");
            if tool.as_object().is_none_or(serde_json::Map::is_empty) {
                let words = format!(
                    "* GenerateContentRequest.{place}.tool_type: required one_of 'tool_type' must \
                     have one initialized field\n"
                );
                self.fault(Rule::Shape, place.clone(), words);
            }
            let declared = field(tool, "functionDeclarations", "function_declarations");
            let declared = declared.and_then(Value::as_array);
            for (at, one) in declared.into_iter().flatten().enumerate() {
                self.name(&format!("{place}.function_declarations[{at}].name"), one);
            }
        }
        let cached = field(request, "cachedContent", "cached_content");
        let besides = tools.is_some_and(|tools| !tools.is_empty())
            || system.is_some_and(|system| !system.is_null())
            || field(request, "toolConfig", "tool_config").is_some_and(|config| !config.is_null());
        if cached.is_some_and(Value::is_string) && besides {
            let words = "CachedContent can not be used with GenerateContent request setting \
                         system_instruction, tools or tool_config.\n\nProposed fix: move those \
                         values to CachedContent from GenerateContent request.";
            self.fault(Rule::Shape, "cached_content", words);
        }
    }

    /// Judges the role of a content (GM5). A single content needs no role.
    fn role(&mut self, index: usize, content: &Value, of: usize) {
        match content.get("role") {
            None | Some(Value::Null) if of == 1 => {}
            Some(Value::String(role)) if role == "user" || role == "model" => {}
            _ => {
                let words = "Please use a valid role: user, model.";
                self.fault(Rule::Gm5, format!("contents[{index}].role"), words);
            }
        }
    }

    /// Judges the parts of a content (GM5): there is at least one, and none is empty.
    fn parts(&mut self, place: &str, content: &Value) {
        let parts = parts(content);
        if parts.is_empty() {
            let words = format!(
                "* GenerateContentRequest.{place}.parts: contents.parts must not be empty.\n"
            );
            self.fault(Rule::Gm5, format!("{place}.parts"), words);
        }
        for (index, part) in parts.iter().enumerate() {
            let place = format!("{place}.parts[{index}]");
            if !is_initialized(part) {
                let words = format!(
                    "* GenerateContentRequest.{place}.data: required oneof field 'data' must have \
                     one initialized field\n"
                );
                self.fault(Rule::Gm5, place, words);
                continue;
            }
            if let Some(call) = call(part) {
                self.name(&format!("{place}.function_call.name"), call);
                self.structure(&format!("{place}.function_call.args"), call.get("args"));
            }
            if let Some(response) = response(part) {
                self.name(&format!("{place}.function_response.name"), response);
                let place = format!("{place}.function_response.response");
                self.structure(&place, response.get("response"));
            }
        }
    }

    fn name(&mut self, place: &str, of: &Value) {
        let name = text(of, "name");
        let words = if name.is_empty() {
            format!("* GenerateContentRequest.{place}: Name cannot be empty.\n")
        } else if !is_name(name) {
            format!(
                "* GenerateContentRequest.{place}: Invalid function name. Must start with a letter \
                 or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots \
                 (.), colons (:), or dashes (-), with a maximum length of {MAX_NAME}.\n"
            )
        } else {
            return;
        };
        self.fault(Rule::Shape, place, words);
    }

    /// Judges arguments and responses, which must be objects.
    fn structure(&mut self, place: &str, value: Option<&Value>) {
        if value.is_some_and(|value| !value.is_object() && !value.is_null()) {
            let words =
                format!("Invalid value at '{place}' (type.googleapis.com/google.protobuf.Struct)");
            self.fault(Rule::Shape, place, words);
        }
    }

    /// Judges the last content: it must not be the model's, unless the model accepts a prefill.
    fn last(&mut self, contents: &[Value]) {
        let refused = !self.profile.prefill;
        let Some(last) = contents.last().filter(|_| refused) else {
            return;
        };
        // Contents with tool calls are judged with their responses.
        if is_model(last) && calls(last).is_empty() {
            let place = format!("contents[{}]", contents.len().saturating_sub(1));
            let words = "Requests ending with a model turn are not supported.";
            self.fault(Rule::Gm5, place, words);
        }
    }
}

/// Returns the value of a key in either spelling.
pub(super) fn field<'v>(value: &'v Value, camel: &str, snake: &str) -> Option<&'v Value> {
    value.get(camel).or_else(|| value.get(snake))
}

pub(super) fn parts(content: &Value) -> &[Value] {
    let parts = content.get("parts").and_then(Value::as_array);
    parts.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn call(part: &Value) -> Option<&Value> {
    field(part, "functionCall", "function_call").filter(|call| call.is_object())
}

pub(super) fn response(part: &Value) -> Option<&Value> {
    field(part, "functionResponse", "function_response").filter(|response| response.is_object())
}

pub(super) fn signature(part: &Value) -> &str {
    let signature = field(part, "thoughtSignature", "thought_signature");
    signature.and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn calls(content: &Value) -> Vec<&Value> {
    parts(content).iter().filter_map(call).collect()
}

pub(super) fn responses(content: &Value) -> Vec<&Value> {
    parts(content).iter().filter_map(response).collect()
}

pub(super) fn is_model(content: &Value) -> bool {
    text(content, "role") == "model"
}

/// Returns `true` if a part has data. An empty text only counts with a signature, because streams send
/// such parts.
fn is_initialized(part: &Value) -> bool {
    DATA.iter()
        .any(|(camel, snake)| match field(part, camel, snake) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty() || !signature(part).is_empty(),
            Some(_) => true,
        })
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().unwrap_or_default();
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    (first.is_ascii_alphabetic() || first == b'_')
        && name.len() <= MAX_NAME
        && name.bytes().all(legal)
}
