//! [`cautions`]: breakpoints that are accepted and have no effect (AM12).
//!
//! They are below the model's minimum, or too far from the previous breakpoint. The API does not report
//! them, and neither is a reason to refuse a request.

use plimsoll_context::{LOOK_BACK, USUAL_MINIMUM};
use plimsoll_wire::__internals::anthropic::MARK;
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::Value;

use super::validate_marks::for_each_block;
use crate::fault::{Fault, Rule};

/// Returns the breakpoints that certainly or probably have no effect, in order.
#[must_use]
pub fn cautions(request: &Value, profile: &MessagesProfile) -> Vec<Fault> {
    let minimum = match profile.min_cacheable.0 {
        0 => USUAL_MINIMUM.0,
        minimum => minimum,
    };
    let mut found = Vec::new();
    let mut caution = |place: String, words: String| {
        found.push(Fault {
            rule: Rule::Am12,
            place,
            words,
        });
    };
    let (mut bytes, mut since) = (0_u64, None);
    for_each_block(request, |place, block| {
        let place = place.to_string();
        // A token has at least one byte.
        bytes = bytes.saturating_add(block.to_string().len() as u64);
        let inside = place.split('.').count() > 4;
        if place.starts_with("messages") && !inside {
            since = since.map(|since: usize| since + 1);
        }
        if block.get(MARK).is_none_or(Value::is_null) {
            return;
        }
        if bytes < minimum {
            let words = format!(
                "what stands up to here has less than {minimum} tokens: the breakpoint is ignored"
            );
            caution(place.clone(), words);
        }
        if let Some(since) = since.filter(|since| *since > LOOK_BACK) {
            let words = format!(
                "{since} blocks after the breakpoint before it, and only {LOOK_BACK} are looked \
                 back: put another between them"
            );
            caution(place, words);
        }
        since = Some(0);
    });
    found
}
