//! [`validate`]: every rule of Converse that a request breaks, judged as Bedrock judges it for the
//! model of a [`ConverseProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! Judged here: BR1 to BR6, V3 and V4 of the rules. The rules of a model's maker behind Bedrock are in
//! the maker's own module.

use std::sync::LazyLock;

use plimsoll_wire::bedrock::ConverseProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, entries};
pub(super) use crate::rules::table::{content, role, text};

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
/// The kinds of block with further rules.
const JUDGED: [&str; 3] = ["text", "toolUse", "toolResult"];

/// The rules for single values.
pub(crate) static TABLE: LazyLock<Table<ConverseProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/bedrock.txt"),
        &[
            ("one-block", |_, block, _| {
                let is_set = |key: &&&str| block.get(**key).is_some_and(|value| !value.is_null());
                BLOCKS.iter().filter(is_set).count() == 1
            }),
            ("one-choice", |_, _, choice| {
                let is_set = |key: &&&str| choice.and_then(|choice| choice.get(**key)).is_some();
                CHOICES.iter().filter(is_set).count() == 1
            }),
            ("id", |_, _, id| {
                consists_of(id, |byte| is_name_byte(byte) || b".:".contains(&byte))
            }),
            ("name", |_, _, name| consists_of(name, is_name_byte)),
            ("failed-empty", |_, _, result| {
                let failed = |result: &&Value| text(result, "status") == "error";
                result
                    .filter(failed)
                    .is_some_and(|result| content(result).is_empty())
            }),
        ],
    )
});

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request.
#[must_use]
pub fn validate(request: &Value, profile: &ConverseProfile) -> Vec<Fault> {
    let mut check = ConverseCheck::new(profile, &TABLE);
    let messages = entries(request, "messages");
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

pub(super) type ConverseCheck<'p> = table::Check<'p, ConverseProfile>;

impl ConverseCheck<'_> {
    /// Applies the rules that concern one message alone. In errors about shapes, the API counts from
    /// one, and calls an entry of a list a member.
    fn message(&mut self, index: usize, message: &Value) {
        let list = JsonPath::Dotted("messages");
        let (entry, place) = (list.entry(index + 1), list.entry(index));
        let member = entry.key("member");
        self.judge("message-member", "", &member, message);
        self.judge("message", "", &place, message);
        for (at, block) in content(message).iter().enumerate() {
            let list = place.key("content");
            let place = list.entry(at);
            let kind = JUDGED.into_iter().find(|kind| block.get(*kind).is_some());
            if self.judge("shape", "", &place, block)
                && let Some(kind) = kind
            {
                let list = member.key("content");
                let entry = list.entry(at + 1);
                self.judge("block-member", kind, &entry.key("member"), block);
                self.judge("block", kind, &place, block);
            }
        }
    }

    /// Judges the order of the roles (BR1) and the role of the last message.
    fn roles(&mut self, messages: &[Value]) {
        let first = messages.first().map(role).unwrap_or_default();
        if first != "user" {
            self.report("user-first", "messages.0", &[]);
        }
        for (index, pair) in messages.windows(2).enumerate() {
            if let [before, this] = pair
                && role(before) == role(this)
            {
                self.report("alternate", format!("messages.{}", index + 1), &[]);
            }
        }
        let last = messages.last().filter(|last| role(last) == "assistant");
        let calls = last.is_some_and(|last| content(last).iter().any(is_call));
        // A message with tool calls is judged with its results.
        if last.is_some() && !calls && !self.profile.prefill {
            let place = format!("messages.{}", messages.len().saturating_sub(1));
            self.report("prefill", place, &[]);
        }
    }

    /// Judges the tools of a request: BR5 and BR6.
    fn tools(&mut self, request: &Value, messages: &[Value]) {
        let config = request.get("toolConfig").filter(|config| !config.is_null());
        let Some(config) = config else {
            let mut blocks = messages.iter().flat_map(content);
            if blocks.any(|block| is_call(block) || is_result(block)) {
                self.report("no-tools", "toolConfig", &[]);
            }
            return;
        };
        let place = JsonPath::Dotted("toolConfig");
        self.judge("tools", "", &place, config);
        for (index, tool) in entries(config, "tools").iter().enumerate() {
            let list = place.key("tools");
            let entry = list.entry(index + 1);
            if tool.get("toolSpec").is_some() {
                self.judge("tool", "", &entry.key("member"), tool);
            }
        }
        self.judge("choice", "", &place, config);
    }
}

pub(super) fn is_call(block: &Value) -> bool {
    block.get("toolUse").is_some_and(Value::is_object)
}

pub(super) fn is_result(block: &Value) -> bool {
    block.get("toolResult").is_some_and(Value::is_object)
}

fn consists_of(value: Option<&Value>, legal: impl Fn(u8) -> bool) -> bool {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    text.bytes().all(legal)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}
