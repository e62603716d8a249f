//! [`SpanRecorder`]: telemetry from the machine's events. Plans and summaries have their own spans,
//! everything else is an event of the run's span. The span of a plan has no duration.

use plimsoll_agent::{AppliedPlan, Event, Setup, ToolPhase};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::run::dollars;
use super::{TARGET, fail, int, names};

/// The span of the summary in progress.
#[derive(Debug, Default)]
pub(crate) struct SpanRecorder(Option<Span>);

impl SpanRecorder {
    /// Returns the span of the current summary.
    pub(crate) fn of_summary(&self) -> Span {
        self.0.clone().unwrap_or_else(Span::current)
    }

    /// Drops the span in progress.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Records an event.
    pub(crate) fn see(&mut self, event: &Event, setup: &Setup, contents: bool) {
        match event {
            Event::SummaryStarted {
                model,
                messages,
                tokens,
            } => {
                let (_, name) = names(model);
                self.0 = Some(info_span!(
                    target: TARGET,
                    "summarize",
                    otel.name = %format_args!("summarize {name}"),
                    otel.kind = "internal",
                    otel.status_code = Empty,
                    gen_ai.operation.name = "summarize",
                    gen_ai.request.model = name,
                    plimsoll.summary.messages = int(*messages as u64),
                    plimsoll.summary.tokens = int(tokens.0),
                    plimsoll.summary.calls = Empty,
                    "error.type" = Empty,
                ));
            }
            Event::SummaryEnded { calls, failure, .. } => {
                if let Some(span) = self.0.take() {
                    span.record("plimsoll.summary.calls", int(*calls));
                    if failure.is_some() {
                        fail(&span, "summary_failed");
                    }
                }
            }
            Event::PlanApplied(applied) if applied.is_compaction => plan(applied, &setup.model),
            Event::Overflow { rung, window, .. } => tell!(
                WARN,
                "overflow",
                plimsoll.overflow.rung = i64::from(*rung),
                plimsoll.window = window.map(|window| int(window.0))
            ),
            Event::CacheMissed(miss) => tell!(
                INFO,
                "cache missed",
                plimsoll.cache.expected = int(miss.expected.0),
                plimsoll.cache.read = int(miss.read.0)
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
