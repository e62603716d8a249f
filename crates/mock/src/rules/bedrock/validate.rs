//! [`validate`]: every rule of Converse that a request breaks, judged as Bedrock judges it for the
//! model of a [`ConverseProfile`], in its own words. Used by fakes and property tests. Never
//! panics, whatever the JSON is.
//!
//! `rules/bedrock.txt` names the rules. The rules of a model's maker behind Bedrock are in the maker's own
//! module.

use std::sync::LazyLock;

use plimsoll_wire::bedrock::ConverseProfile;
use serde_json::{Value, json};

use super::pairing;
use crate::rules::fault::Fault;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{self, Table, content, entries};

/// The value of the header `x-amzn-errortype` in a refusal. The body does not contain it.
pub const ERROR_TYPE: &str = "ValidationException";

/// The kinds of block with further rules.
const JUDGED: [&str; 3] = ["text", "toolUse", "toolResult"];

pub(super) type ConverseCheck<'p> = table::Check<'p, ConverseProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<ConverseProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/bedrock.txt"),
        &[],
        &[
            ("messages", messages),
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
fn messages<'c>(check: &mut ConverseCheck<'c>, place: &JsonPath<'_>, request: &'c Value) {
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

/// Judges the tools: BR6.
fn tools<'c>(check: &mut ConverseCheck<'c>, place: &JsonPath<'_>, config: &'c Value) {
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
