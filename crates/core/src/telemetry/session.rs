//! Telemetry from the machine's events. A plan has a span, without a duration; everything else is
//! an event of the run's span.

use plimsoll_agent::{AppliedPlan, Event, Setup, ToolPhase};
use tracing::info_span;

use super::fields::dollars;
use super::{TARGET, int, names};

/// Records an event of the machine.
pub(crate) fn record(event: &Event, setup: &Setup, contents: bool) {
    match event {
        Event::SummaryEnded {
            failure: Some(_), ..
        } => tell!(WARN, "summary failed"),
        Event::PlanApplied(applied) if applied.is_compaction => plan(applied, &setup.model),
        Event::Overflow { rung, window, .. } => tell!(
            WARN,
            "overflow",
            plimsoll.overflow.rung = i64::from(*rung),
            plimsoll.window = window.map(|window| int(window.0))
        ),
        Event::CacheMissed { expected, read } => tell!(
            INFO,
            "cache missed",
            plimsoll.cache.expected = int(expected.0),
            plimsoll.cache.read = int(read.0)
        ),
        Event::LimitNear { .. } => tell!(INFO, "limit near"),
        Event::LimitReached { .. } => tell!(WARN, "limit reached"),
        Event::LoopDetected { .. } => tell!(WARN, "loop detected"),
        Event::ToolCall {
            phase: ToolPhase::Skipped,
            call,
            name,
            ..
        } => tell!(
            INFO,
            "tool call skipped",
            gen_ai.tool.name = name.as_str(),
            gen_ai.tool.call.id = call.0.as_str()
        ),
        // The text may quote messages.
        Event::Warning { text } if contents => {
            tell!(WARN, "warning", plimsoll.text = text.as_str());
        }
        Event::Warning { .. } => tell!(WARN, "warning"),
        _ => {}
    }
}

/// Records the span `compact` of an applied plan.
fn plan(applied: &AppliedPlan, model: &str) {
    let (vendor, model) = names(model);
    let plan = &applied.plan;
    let price = plan.price.as_ref();
    info_span!(
        target: TARGET,
        "compact",
        otel.kind = "internal",
        gen_ai.operation.name = "compact",
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
