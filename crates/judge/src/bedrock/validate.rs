//! [`validate`]: every rule of Converse that a request breaks, judged as Bedrock judges it for the
//! model of a [`ConverseProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! Judged here: BR1 to BR6, V3 and V4 of the rules. The rules of a model's maker behind Bedrock are in
//! the maker's own module.
//!
//! The API's words are its own: tidy:allow-file(conversation)

use plimsoll_wire::bedrock::ConverseProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::fault::{Fault, Rule, note};
pub(super) use crate::table::text;

/// The value of the header `x-amzn-errortype` in a refusal. The body does not contain it.
pub const ERROR_TYPE: &str = "ValidationException";

/// The kinds of block. A block has exactly one of these keys.
const BLOCKS: [&str; 12] = [
    "text",
    "image",
    "toolUse",
    "toolResult",
    "document",
    "video",
    "audio",
    "cachePoint",
    "reasoningContent",
    "citationsContent",
    "searchResult",
    "guardContent",
];
/// The choices of tools (BR6). There is no `none`.
const CHOICES: [&str; 3] = ["auto", "any", "tool"];
/// The maximum length of a tool's name and of a call's id.
const MAX_NAME: usize = 64;

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request.
#[must_use]
pub fn validate(request: &Value, profile: &ConverseProfile) -> Vec<Fault> {
    let mut check = ConverseCheck {
        profile,
        faults: Vec::new(),
    };
    let messages = request.get("messages").and_then(Value::as_array);
    let messages = messages.map(Vec::as_slice).unwrap_or_default();
    for (index, message) in messages.iter().enumerate() {
        check.message(index, message);
    }
    check.roles(messages);
    pairing::check(&mut check, messages);
    check.tools(request, messages);
    check.faults
}

/// Returns the status and the body with which Bedrock refuses a request for a fault. The type of the
/// error is in a header ([`ERROR_TYPE`]).
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    (400, json!({ "message": fault.words }))
}

/// The faults found so far.
pub(super) struct ConverseCheck<'p> {
    pub(super) profile: &'p ConverseProfile,
    faults: Vec<Fault>,
}

impl ConverseCheck<'_> {
    pub(super) fn fault(&mut self, rule: Rule, place: impl Into<String>, words: impl Into<String>) {
        note(&mut self.faults, rule, place, words);
    }

    /// Applies the rules that concern one message alone.
    fn message(&mut self, index: usize, message: &Value) {
        let role = text(message, "role");
        if role != "user" && role != "assistant" {
            // In this error, the API counts from one.
            let place = format!("messages.{}.member.role", index + 1);
            let words = format!(
                "1 validation error detected: Value '{role}' at '{place}' failed to satisfy \
                 constraint: Member must satisfy enum value set: [user, assistant]"
            );
            self.fault(Rule::Shape, place, words);
        }
        let blocks = content(message);
        if blocks.is_empty() {
            let place = format!("messages.{index}");
            let words = format!(
                "The content field in the Message object at {place} is empty. Add a ContentBlock \
                 object to the content field and try again."
            );
            self.fault(Rule::Shape, place, words);
        }
        for (at, block) in blocks.iter().enumerate() {
            self.block(index, at, block);
        }
    }

    fn block(&mut self, index: usize, at: usize, block: &Value) {
        let place = format!("messages.{index}.content.{at}");
        let set = BLOCKS
            .iter()
            .filter(|key| block.get(**key).is_some_and(|v| !v.is_null()));
        if set.count() != 1 {
            let words = format!(
                "The ContentBlock object at {place} must set one of the following keys: text, \
                 image, toolUse, toolResult, document, video, cachePoint, reasoningContent, \
                 citationsContent, searchResult."
            );
            self.fault(Rule::Shape, place, words);
            return;
        }
        if let Some(said) = block.get("text") {
            if said.as_str().is_none_or(|said| said.trim().is_empty()) {
                let words = format!(
                    "The text field in the ContentBlock object at {place} is blank. Add text to \
                     the text field, and try again."
                );
                self.fault(Rule::Shape, place, words);
            }
            return;
        }
        // In errors about shapes, the API counts from one.
        let member = format!("messages.{}.member.content.{}.member", index + 1, at + 1);
        if let Some(call) = block.get("toolUse") {
            self.id(
                &format!("{member}.toolUse.toolUseId"),
                text(call, "toolUseId"),
            );
            self.name(&format!("{member}.toolUse.name"), text(call, "name"));
            if !call.get("input").is_some_and(Value::is_object) {
                let words = format!(
                    "The format of the value at {place}.toolUse.input is invalid. Provide a json \
                     object for the field and try again."
                );
                self.fault(Rule::Shape, place, words);
            }
        } else if let Some(result) = block.get("toolResult") {
            self.id(
                &format!("{member}.toolResult.toolUseId"),
                text(result, "toolUseId"),
            );
            if text(result, "status") == "error" && content(result).is_empty() {
                let words = format!(
                    "The content field at {place}.toolResult cannot be empty when status value is \
                     error."
                );
                self.fault(Rule::Shape, place, words);
            }
        }
    }

    fn id(&mut self, place: &str, id: &str) {
        self.member(Rule::Shape, place, id, "[a-zA-Z0-9_.:-]+", |byte| {
            is_name_byte(byte) || b".:".contains(&byte)
        });
    }

    /// Judges a tool's name: BR6.
    fn name(&mut self, place: &str, name: &str) {
        self.member(Rule::Br6, place, name, "[a-zA-Z0-9_-]+", is_name_byte);
    }

    fn member(
        &mut self,
        rule: Rule,
        place: &str,
        value: &str,
        pattern: &str,
        legal: fn(u8) -> bool,
    ) {
        let must = if value.is_empty() {
            "have length greater than or equal to 1".to_owned()
        } else if value.chars().count() > MAX_NAME {
            format!("have length less than or equal to {MAX_NAME}")
        } else if !value.bytes().all(legal) {
            format!("satisfy regular expression pattern: {pattern}")
        } else {
            return;
        };
        let words = format!(
            "1 validation error detected: Value '{value}' at '{place}' failed to satisfy \
             constraint: Member must {must}"
        );
        self.fault(rule, place, words);
    }

    /// Judges the order of the roles (BR1) and the role of the last message.
    fn roles(&mut self, messages: &[Value]) {
        let first = messages.first().map(role).unwrap_or_default();
        if first != "user" {
            let words = "A conversation must start with a user message. Try again with a \
                         conversation that starts with a user message.";
            self.fault(Rule::Br1, "messages.0", words);
        }
        for (index, pair) in messages.windows(2).enumerate() {
            if let [before, this] = pair
                && role(before) == role(this)
            {
                let words = "A conversation must alternate between user and assistant roles. Make \
                             sure the conversation alternates between user and assistant roles \
                             and try again.";
                self.fault(Rule::Br1, format!("messages.{}", index + 1), words);
            }
        }
        let last = messages.last().filter(|last| role(last) == "assistant");
        let calls = last.is_some_and(|last| content(last).iter().any(is_call));
        // A message with tool calls is judged with its results.
        if last.is_some() && !calls && !self.profile.prefill {
            let words = "This model does not support assistant message prefill. The conversation \
                         must end with a user message.";
            let place = format!("messages.{}", messages.len().saturating_sub(1));
            self.fault(Rule::Am8, place, words);
        }
    }

    /// Judges the tools of a request: BR5 and BR6.
    fn tools(&mut self, request: &Value, messages: &[Value]) {
        let config = request.get("toolConfig").filter(|config| !config.is_null());
        let Some(config) = config else {
            let mut blocks = messages.iter().flat_map(content);
            if blocks.any(|block| is_call(block) || is_result(block)) {
                let words = "The toolConfig field must be defined when using toolUse and \
                             toolResult content blocks.";
                self.fault(Rule::Br5, "toolConfig", words);
            }
            return;
        };
        let tools = config.get("tools").and_then(Value::as_array);
        let tools = tools.map(Vec::as_slice).unwrap_or_default();
        if tools.is_empty() {
            let words = "1 validation error detected: Value '[]' at 'toolConfig.tools' failed to \
                         satisfy constraint: Member must have length greater than or equal to 1";
            self.fault(Rule::Shape, "toolConfig.tools", words);
        }
        for (index, tool) in tools.iter().enumerate() {
            if let Some(spec) = tool.get("toolSpec") {
                let place = format!("toolConfig.tools.{}.member.toolSpec.name", index + 1);
                self.name(&place, text(spec, "name"));
            }
        }
        let choice = config.get("toolChoice").filter(|choice| !choice.is_null());
        if let Some(choice) = choice
            && CHOICES
                .iter()
                .filter(|key| choice.get(**key).is_some())
                .count()
                != 1
        {
            let words = "The ToolChoice object at toolConfig.toolChoice must set one of the \
                         following keys: auto, any, tool.";
            self.fault(Rule::Br6, "toolConfig.toolChoice", words);
        }
    }
}

pub(super) fn role(message: &Value) -> &str {
    text(message, "role")
}

pub(super) fn content(message: &Value) -> &[Value] {
    let blocks = message.get("content").and_then(Value::as_array);
    blocks.map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn is_call(block: &Value) -> bool {
    block.get("toolUse").is_some_and(Value::is_object)
}

pub(super) fn is_result(block: &Value) -> bool {
    block.get("toolResult").is_some_and(Value::is_object)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
