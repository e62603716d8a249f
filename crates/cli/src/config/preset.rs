//! The lines of `plimsoll config check` about a preset policy: its trigger and its target.

use plimsoll::Tokens;
use plimsoll::config::AgentConfig;
use plimsoll::context::{Threshold, ViewLimits};

use super::grouped;

/// Describes the trigger and the target of a preset policy.
pub(super) fn timing(agent: &AgentConfig) -> String {
    let settings = agent.settings();
    let size = |size: Threshold| match size {
        Threshold::Auto => default_target(),
        Threshold::Share(share) => format!("{} % of the available tokens", share.0 / 10_000),
        Threshold::Sent(tokens) | Threshold::Mark(tokens) => {
            format!("{} tokens of the whole request", grouped(tokens))
        }
    };
    let line = settings.context_strategy().line(ViewLimits::default());
    let (trigger, target) = (
        settings.trigger.unwrap_or(line.trigger),
        settings.builder.target,
    );
    if trigger == Threshold::Sent(Tokens::MAX) {
        return "compacts only if the provider refuses a request".to_owned();
    }
    let ends = match (trigger, target) {
        (_, Some(target)) => size(target),
        (Threshold::Auto | Threshold::Share(_), None) => size(Threshold::Auto),
        (Threshold::Sent(tokens) | Threshold::Mark(tokens), None) => size(Threshold::Sent(
            tokens.share(plimsoll::context::TARGET_OF_EXPLICIT),
        )),
    };
    let room = "the window minus answer, system prompt and tools";
    let above = match (trigger, target) {
        (Threshold::Auto, None) => format!(
            "{} % of the available tokens ({room}) or {} tokens, whichever is less,",
            plimsoll::context::TRIGGER.0 / 10_000,
            grouped(plimsoll::context::WORKING_TRIGGER)
        ),
        (Threshold::Auto, Some(_)) => format!(
            "{} % of the available tokens ({room}), {} tokens at most, or 1.43 times the target if \
             that is more,",
            plimsoll::context::TRIGGER.0 / 10_000,
            grouped(plimsoll::context::WORKING_TRIGGER)
        ),
        (Threshold::Share(_), _) => format!("{} ({room})", size(trigger)),
        _ => size(trigger),
    };
    let cold = match (trigger, target) {
        (Threshold::Auto, None) => format!(
            ", or earlier and at {} tokens if the provider's cache has expired",
            grouped(plimsoll::context::COLD_TARGET)
        ),
        _ => String::new(),
    };
    format!("compacts above {above} and ends at {ends}{cold}")
}

/// Describes the default target.
fn default_target() -> String {
    format!(
        "{} % of the available tokens, {} tokens at most",
        plimsoll::context::TARGET.0 / 10_000,
        grouped(plimsoll::context::WORKING_TARGET)
    )
}
