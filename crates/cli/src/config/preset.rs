//! The lines of `plimsoll config check` about a preset policy: its trigger and its target.

use plimsoll::Tokens;
use plimsoll::config::AgentConfig;
use plimsoll::context::{Threshold, ViewLimits};
use plimsoll::policy::CompactionTiming;

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
    match (trigger, settings.builder.compaction_timing) {
        (Threshold::Auto, None | Some(CompactionTiming::Priced)) => {
            let cold = match target {
                None => format!(
                    ", or at {} tokens if the provider's cache has expired",
                    grouped(plimsoll::context::COLD_TARGET)
                ),
                Some(_) => String::new(),
            };
            format!(
                "compacts when it saves money, at the latest above {} % of the available tokens \
                 ({room}), and ends at {ends}{cold}",
                plimsoll::context::SAFETY_MARK.0 / 10_000
            )
        }
        (Threshold::Auto, _) => {
            let tokens = match target {
                None => format!(
                    " or {} tokens, whichever is less,",
                    grouped(plimsoll::context::WORKING_TRIGGER)
                ),
                Some(_) => String::new(),
            };
            format!(
                "compacts above {} % of the available tokens ({room}){tokens} and ends at {ends}",
                plimsoll::context::TRIGGER.0 / 10_000
            )
        }
        (Threshold::Share(_), _) => format!(
            "compacts above {} ({room}), or when it saves money, and ends at {ends}",
            size(trigger)
        ),
        _ => format!("compacts above {} and ends at {ends}", size(trigger)),
    }
}

/// Describes the default target.
fn default_target() -> String {
    format!(
        "{} % of the available tokens, {} tokens at most",
        plimsoll::context::TARGET.0 / 10_000,
        grouped(plimsoll::context::WORKING_TARGET)
    )
}
