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
use crate::rules::table::{self, Table};

/// The value of the header `x-amzn-errortype` in a refusal. The body does not contain it.
pub const ERROR_TYPE: &str = "ValidationException";

pub(super) type ConverseCheck<'p> = table::Check<'p, ConverseProfile>;

/// The rules.
pub(crate) static TABLE: LazyLock<Table<ConverseProfile>> = LazyLock::new(|| {
    Table::parse(
        include_str!("../../../rules/bedrock.txt"),
        &[],
        &[("pairing", pairing::pairing)],
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

pub(super) fn is_call(block: &Value) -> bool {
    block.get("toolUse").is_some_and(Value::is_object)
}

pub(super) fn is_result(block: &Value) -> bool {
    block.get("toolResult").is_some_and(Value::is_object)
}
