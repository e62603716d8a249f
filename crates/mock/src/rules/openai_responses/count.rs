//! [`validate_count`]: validates a request that only counts tokens. The rules for other requests are in
//! `validate.rs`.

use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::Value;

use super::validate::{TABLE, validate};
use crate::rules::fault::{Fault, key_place};

/// Returns the rules that a request for a token count breaks. Empty for a valid one. The server stores
/// nothing.
#[must_use]
pub fn validate_count(request: &Value, profile: &ResponsesProfile) -> Vec<Fault> {
    let keys = request.as_object().into_iter().flatten();
    let unknown = keys.filter(|(key, _)| !TABLE.has("count-keys", key));
    let mut faults: Vec<Fault> = unknown
        .map(|(key, _)| TABLE.fault("unknown-key", key_place(key), &[key]))
        .collect();
    faults.extend(validate(request, profile));
    faults
}
