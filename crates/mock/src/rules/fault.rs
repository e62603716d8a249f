//! [`Fault`]: one rule that a request breaks, with its place and the provider's words. Each protocol's
//! `validate.rs` creates the provider's error response from it.

use std::fmt;

use serde_json::Value;

/// The maximum number of faults that are reported for one request.
pub const MAX_FAULTS: usize = 100;

/// The rule that the request has the shape which the protocol prescribes. All other rules have names of
/// letters and digits, which the files in `crates/mock/rules` explain.
pub const SHAPE: &str = "shape";

/// One broken rule of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the rule, such as `AM3`, or [`SHAPE`].
    pub rule: &'static str,
    /// The place in the request, such as `messages[3].content`.
    pub place: String,
    /// The provider's error message.
    pub words: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.words, self.rule)
    }
}

/// Returns a key as part of a place. Unusual keys are quoted so that they cannot be confused with a
/// place: `messages[1]x` becomes `["messages[1]x"]`.
pub(crate) fn key_place(key: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    if !key.is_empty() && key.chars().all(is_plain) {
        key.to_owned()
    } else {
        format!("[{}]", Value::from(key))
    }
}
