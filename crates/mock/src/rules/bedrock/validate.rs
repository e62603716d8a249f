//! [`validate`]: every rule of Converse that a request breaks, judged as Bedrock judges it for the
//! model of a [`ConverseProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/bedrock.txt` names the rules. The rules of a model's maker behind Bedrock are in the maker's own
//! module.

use std::sync::LazyLock;

use plimsoll_wire::__internals::is_word;
use plimsoll_wire::bedrock::ConverseProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, content, entries, role, text};

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

pub(super) type ConverseCheck<'p> = table::Check<'p, ConverseProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<ConverseProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/bedrock.txt"),
        &[
            ("one-block", |_, block, _| has_one(block, &BLOCKS)),
            ("one-choice", |_, _, choice| {
                choice.is_some_and(|choice| has_one(choice, &CHOICES))
            }),
            // Missing texts are too short, and reported as such.
            ("id", |_, _, id| is_legal(id, ".:")),
            ("name", |_, _, name| is_legal(name, "")),
            ("failed-empty", |_, _, result| {
                let failed = result.filter(|result| text(result, "status") == "error");
                failed.is_some_and(|result| content(result).is_empty())
            }),
            ("uses-tools", |_, request, _| {
                let mut blocks = entries(request, "messages").iter().flat_map(content);
                blocks.any(|block| is_call(block) || is_result(block))
            }),
        ],
        &[
            ("messages", messages),
            ("roles", roles),
            ("pairing", pairing::pairing),
            ("tools", tools),
        ],
    )
});

/// Returns the rules that a request breaks, in message order within each group of rules. Empty for a
/// valid request.
#[must_use]
pub fn validate(request: &Value, profile: &ConverseProfile) -> Vec<Fault> {
    ConverseCheck::new(&TABLE, profile, request).faults("request", JsonPath::Dotted(""))
}

/// Returns the status and the body with which Bedrock refuses a request for a fault. The type of the
/// error is in a header ([`ERROR_TYPE`]).
#[must_use]
pub fn refusal(fault: &Fault) -> (u16, Value) {
    (400, json!({ "message": fault.words }))
}

/// Judges each message alone. In errors about shapes, the API counts from one, and calls an entry of a
/// list a member.
fn messages(check: &mut ConverseCheck<'_>, place: &JsonPath<'_>, request: &Value) {
    let list = place.key("messages");
    for (index, message) in entries(request, "messages").iter().enumerate() {
        let (entry, place) = (list.entry(index + 1), list.entry(index));
        let member = entry.key("member");
        check.judge("message-member", "", &member, message);
        check.judge("message", "", &place, message);
        let (members, places) = (member.key("content"), place.key("content"));
        for (at, block) in content(message).iter().enumerate() {
            let (entry, place) = (members.entry(at + 1), places.entry(at));
            let kind = JUDGED.into_iter().find(|kind| block.get(*kind).is_some());
            if check.judge("shape", "", &place, block)
                && let Some(kind) = kind
            {
                check.judge("block-member", kind, &entry.key("member"), block);
                check.judge("block", kind, &place, block);
            }
        }
    }
}

/// Judges the order of the roles (BR1) and the role of the last message.
fn roles(check: &mut ConverseCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    if messages.first().map(role) != Some("user") {
        check.report("user-first", "messages.0", &[]);
    }
    for (index, (before, this)) in (1..).zip(messages.iter().zip(messages.iter().skip(1))) {
        if role(before) == role(this) {
            check.report("alternate", format!("messages.{index}"), &[]);
        }
    }
    // A message with tool calls is judged with its results.
    let is_open = |last: &Value| role(last) == "assistant" && !content(last).iter().any(is_call);
    if messages.last().is_some_and(is_open) && !check.profile.prefill {
        let place = format!("messages.{}", messages.len().saturating_sub(1));
        check.report("prefill", place, &[]);
    }
}

/// Judges the tools: BR6.
fn tools(check: &mut ConverseCheck<'_>, place: &JsonPath<'_>, config: &Value) {
    let list = place.key("tools");
    let tools = (1..).zip(entries(config, "tools"));
    for (index, tool) in tools.filter(|(_, tool)| tool.get("toolSpec").is_some()) {
        check.judge("tool", "", &list.entry(index).key("member"), tool);
    }
}

pub(super) fn is_call(block: &Value) -> bool {
    block.get("toolUse").is_some_and(Value::is_object)
}

pub(super) fn is_result(block: &Value) -> bool {
    block.get("toolResult").is_some_and(Value::is_object)
}

/// Checks whether an object has exactly one of these keys.
fn has_one(object: &Value, keys: &[&str]) -> bool {
    let is_set = |key: &&&str| object.get(**key).is_some_and(|value| !value.is_null());
    keys.iter().filter(is_set).count() == 1
}

/// Checks whether a text has only letters, digits, `_`, `-` and these signs. Any other value has.
fn is_legal(value: Option<&Value>, signs: &str) -> bool {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    text.split(|letter| signs.contains(letter))
        .all(|part| part.is_empty() || is_word(part))
}
