//! Telemetry from the machine's events. A plan has a span, without a duration; everything else is
//! an event of the run's span.

use plimsoll_agent::{AppliedPlan, Event, Setup, ToolPhase};
use tracing::warn;

use super::fields::dollars;
use super::{TARGET, int, names};

/// Records an event of the machine.
pub(crate) fn record(event: &Event, setup: &Setup, contents: bool) {
    let (mut window, mut tool, mut text) = (None, None, None);
    let name = match event {
        Event::PlanApplied(applied) if applied.is_compaction => {
            return plan(applied, &setup.model);
        }
        Event::SummaryEnded { failure, .. } if failure.is_some() => "summary failed",
        Event::Overflow { window: known, .. } => {
            window = known.map(|window| int(window.0));
            "overflow"
        }
        Event::CacheMissed { .. } => "cache missed",
        Event::LimitNear { .. } => "limit near",
        Event::LimitReached { .. } => "limit reached",
        Event::LoopDetected { .. } => "loop detected",
        Event::ToolCall { phase, name, .. } if *phase == ToolPhase::Skipped => {
            tool = Some(name.as_str());
            "tool call skipped"
        }
        Event::Warning { text: warning } => {
            // It may quote messages.
            text = contents.then_some(warning.as_str());
            "warning"
        }
        _ => return,
    };
    warn!(
        target: TARGET,
        message = name,
        plimsoll.window = window,
        gen_ai.tool.name = tool,
        plimsoll.text = text
    );
}

/// Records the span `compact` of an applied plan.
fn plan(applied: &AppliedPlan, model: &str) {
    let (vendor, model) = names(model);
    let plan = &applied.plan;
    let price = plan.price.as_ref();
    span!(
        "compact",
        "internal",
        gen_ai.provider.name = vendor,
        gen_ai.request.model = model,
        plimsoll.plan.why = plan.why.word(),
        plimsoll.plan.stages = plan.stages.join(","),
        plimsoll.plan.edits = int(plan.edits.len() as u64),
        plimsoll.plan.tokens_freed = int(plan.frees.0),
        plimsoll.plan.tokens_before = int(applied.tokens_before.0),
        plimsoll.plan.tokens_after = int(applied.tokens_after.0),
        plimsoll.plan.messages_before = int(applied.messages_before as u64),
        plimsoll.plan.messages_after = int(applied.messages_after as u64),
        plimsoll.plan.tokens_rewritten = price.map(|price| int(price.rewrites.0)),
        plimsoll.plan.loses = price.and_then(|price| price.loses).map(dollars),
        plimsoll.plan.saves = price.and_then(|price| price.saves).map(dollars),
    );
}
