//! The lines of `plimsoll config check` about a preset policy: its trigger and its target.

use plimsoll::Tokens;
use plimsoll::context::{
    COLD_TARGET, TARGET, TARGET_OF_EXPLICIT, TRIGGER, Threshold, ViewLimits, WORKING_TARGET,
    WORKING_TRIGGER,
};
use plimsoll::tokens::Ppm;

use super::grouped;

const AVAILABLE: &str =
    "of the available tokens (the window minus answer, system prompt and tools)";

/// Describes the trigger and the target of a preset policy.
pub(super) fn timing(limits: ViewLimits) -> String {
    let (trigger, target) = (limits.trigger, limits.target);
    if trigger == Threshold::Sent(Tokens::MAX) {
        return "compacts only if the provider refuses a request".to_owned();
    }
    let percent = |share: Ppm| format!("{} %", share.0 / 10_000);
    let sent = |tokens| format!("{} tokens of the whole request", grouped(tokens));
    let ends = match (trigger, target) {
        (_, Some(Threshold::Share(share))) => format!("{} of the available tokens", percent(share)),
        (_, Some(Threshold::Sent(tokens) | Threshold::Mark(tokens))) => sent(tokens),
        (Threshold::Sent(tokens) | Threshold::Mark(tokens), _) => {
            sent(tokens.share(TARGET_OF_EXPLICIT))
        }
        _ => format!(
            "{} of the available tokens, {} tokens at most",
            percent(default_target(trigger)),
            grouped(WORKING_TARGET)
        ),
    };
    let default = percent(TRIGGER);
    let most = grouped(WORKING_TRIGGER);
    let (above, cold) = match (trigger, target) {
        (Threshold::Sent(tokens) | Threshold::Mark(tokens), _) => (sent(tokens), String::new()),
        (Threshold::Share(share), _) => (format!("{} {AVAILABLE}", percent(share)), String::new()),
        (Threshold::Auto, Some(_)) => (
            format!(
                "{default} {AVAILABLE}, {most} tokens at most, or 1.43 times the target if that is \
                 more,"
            ),
            String::new(),
        ),
        (Threshold::Auto, None) => (
            format!("{default} {AVAILABLE} or {most} tokens, whichever is less,"),
            format!(
                ", or earlier and at {} tokens if the provider's cache has expired",
                grouped(COLD_TARGET)
            ),
        ),
    };
    format!("compacts above {above} and ends at {ends}{cold}")
}

/// Returns the share at which a plan ends by default. It is below the trigger.
fn default_target(trigger: Threshold) -> Ppm {
    match trigger {
        Threshold::Share(Ppm(share)) => {
            let below = share.saturating_mul(TARGET_OF_EXPLICIT.0) / 1_000_000;
            TARGET.min(Ppm(below))
        }
        _ => TARGET,
    }
}
