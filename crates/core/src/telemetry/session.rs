//! [`SpanRecorder`]: telemetry from the machine's events and log entries besides calls.
//!
//! Plans and summaries have their own spans, rejections and limits are events of the run's span,
//! and plans and costs are also metrics.

use plimsoll_agent::{Entry, Event, PendingPlan, Setup, ToolPhase};
use plimsoll_context::{Money, Plan, Tokens};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::run::dollars;
use super::{TARGET, names};

/// The spans in progress.
#[derive(Debug, Default)]
pub(crate) struct SpanRecorder {
    summary: Option<Span>,
    plan: Option<Span>,
}

impl SpanRecorder {
    /// Returns the span of the current summary.
    pub(crate) fn of_summary(&self) -> Span {
        self.summary.clone().unwrap_or_else(Span::current)
    }

    /// Begins the span of a plan that is about to be applied.
    pub(crate) fn plan(&mut self, pending: &PendingPlan) -> Span {
        let span = plan_span(&pending.plan, pending.tokens);
        self.plan = Some(span.clone());
        span
    }

    /// Drops the spans in progress.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Records a new log entry.
    pub(crate) fn record(&self, entry: &Entry, setup: &Setup) {
        match entry {
            Entry::Reply { cost, .. } | Entry::PartialReply { cost, .. } => {
                costs(*cost, &setup.model);
            }
            Entry::Summarized { cost, .. } => {
                let model = setup.summary_model.as_ref();
                costs(*cost, model.map_or(&setup.model, |summary| &summary.model));
            }
            _ => {}
        }
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
                self.summary = Some(info_span!(
                    target: TARGET,
                    "summarize",
                    otel.name = %format_args!("summarize {name}"),
                    otel.kind = "internal",
                    otel.status_code = Empty,
                    gen_ai.operation.name = "summarize",
                    gen_ai.request.model = name,
                    plimsoll.summary.messages = *messages as u64,
                    plimsoll.summary.tokens = tokens.0,
                    plimsoll.summary.calls = Empty,
                    "error.type" = Empty,
                ));
            }
            Event::SummaryEnded { calls, failure, .. } => {
                if let Some(span) = self.summary.take() {
                    span.record("plimsoll.summary.calls", *calls);
                    if failure.is_some() {
                        span.record("error.type", "summary_failed");
                        span.record("otel.status_code", "ERROR");
                    }
                }
            }
            Event::PlanApplied(applied) if applied.is_compaction => {
                let (before, after) = (applied.tokens_before, applied.tokens_after);
                let span = self.plan.take();
                let span = span.unwrap_or_else(|| plan_span(&applied.plan, before));
                span.record("plimsoll.plan.applied", true);
                span.record("plimsoll.plan.tokens_after", after.0);
                span.record(
                    "plimsoll.plan.messages_before",
                    applied.messages_before as u64,
                );
                span.record(
                    "plimsoll.plan.messages_after",
                    applied.messages_after as u64,
                );
                planned(&applied.plan, before, after, setup);
            }
            Event::Overflow { rung, window, .. } => {
                let (vendor, model) = names(&setup.model);
                tell!(
                    WARN,
                    "overflow",
                    plimsoll.overflow.rung = u64::from(*rung),
                    plimsoll.window = window.map(|window| window.0)
                );
                measure!(
                    "monotonic_counter.plimsoll.overflows" = 1_u64,
                    gen_ai.provider.name = vendor,
                    gen_ai.request.model = model,
                );
            }
            Event::CacheMissed(miss) => tell!(
                INFO,
                "cache missed",
                plimsoll.cache.expected = miss.expected.0,
                plimsoll.cache.left = miss.left.0,
                plimsoll.cache.read = miss.read.0
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

/// Creates the span `compact`, which lasts from the plan to the smaller view.
fn plan_span(plan: &Plan, tokens: Tokens) -> Span {
    let price = plan.price.as_ref();
    info_span!(
        target: TARGET,
        "compact",
        otel.kind = "internal",
        gen_ai.operation.name = "compact",
        plimsoll.plan.why = plan.why.word(),
        plimsoll.plan.stages = plan.stages.join(","),
        plimsoll.plan.edits = plan.edits.len() as u64,
        plimsoll.plan.tokens_freed = plan.frees.0,
        plimsoll.plan.tokens_before = tokens.0,
        plimsoll.plan.tokens_after = Empty,
        plimsoll.plan.messages_before = Empty,
        plimsoll.plan.messages_after = Empty,
        plimsoll.plan.tokens_rewritten = price.map(|price| price.rewrites.0),
        plimsoll.plan.loses = price.and_then(|price| price.loses).map(dollars),
        plimsoll.plan.saves = price.and_then(|price| price.saves).map(dollars),
        plimsoll.plan.applied = Empty,
    )
}

/// Records an applied plan as an event and as metrics.
fn planned(plan: &Plan, before: Tokens, after: Tokens, setup: &Setup) {
    let price = plan.price.as_ref();
    let (vendor, model) = names(&setup.model);
    tell!(
        INFO,
        "plan applied",
        plimsoll.plan.why = plan.why.word(),
        plimsoll.plan.stages = plan.stages.join(","),
        plimsoll.plan.tokens_before = before.0,
        plimsoll.plan.tokens_after = after.0,
        plimsoll.plan.loses = price.and_then(|price| price.loses).map(dollars),
        plimsoll.plan.saves = price.and_then(|price| price.saves).map(dollars)
    );
    measure!(
        "monotonic_counter.plimsoll.plans" = 1_u64,
        "monotonic_counter.plimsoll.plan.tokens_freed" = plan.frees.0,
        plimsoll.plan.why = plan.why.word(),
        gen_ai.provider.name = vendor,
        gen_ai.request.model = model,
    );
}

fn costs(cost: Option<Money>, model: &str) {
    let Some(cost) = cost else { return };
    let (vendor, model) = names(model);
    measure!(
        "monotonic_counter.plimsoll.cost" = dollars(cost),
        gen_ai.provider.name = vendor,
        gen_ai.request.model = model,
    );
}
