//! Describes the end of a run, in words and as an exit code, for every command that runs one.

use plimsoll::config::AgentSettings;
use plimsoll::context::{CannotFit, Threshold};
use plimsoll::recall::RECALL_LEAST_WINDOW;
use plimsoll::session::AppliedPlan;
use plimsoll::{AgentOutput, EndReason, Money, Tokens, Usage};

use crate::error;
use crate::terminal::text::{counted, lines_of};

/// Upper bound for the tokens of the recall tools.
const RECALL_TOOLS: Tokens = Tokens(600);

/// Summarizes a run, for example:
///
/// `answered │ 7 turns, 6 tool calls │ read 9120 (71 % cached), wrote 310 │ $0.0012`
pub(crate) fn summary(output: &AgentOutput) -> String {
    let mut parts = vec![output.reason.word().to_owned()];
    parts.extend(used_by(output));
    if output.plans > 0 {
        let plans = counted(output.plans, "plan");
        let tokens = counted(output.freed.0, "token");
        parts.push(format!("{plans} freed {tokens}"));
    }
    parts.push(format!("session {}", output.session_id));
    lines_of(&parts)
}

/// Describes the usage of a run, for example "3 turns, 2 tool calls", "read 9120 (71 % cached),
/// wrote 310" and "$0.0012".
pub(crate) fn used_by(output: &AgentOutput) -> Vec<String> {
    let turns = counted(output.turns, "turn");
    let calls = counted(output.tool_calls, "tool call");
    let used = output.tokens_used.combine(output.estimated);
    let mark = match output.estimated == Usage::default() {
        true => "",
        false => " (estimated)",
    };
    let mut parts = vec![format!("{turns}, {calls}"), format!("{used}{mark}")];
    // Sub-agents and summaries count at the prices of their own models.
    if is_worth_telling(output.cost.known) {
        parts.push(format!("{}{mark}", output.cost));
    }
    parts
}

/// Returns `true` if an amount is not zero as formatted.
pub(crate) fn is_worth_telling(money: Money) -> bool {
    money.to_string() != Money(0).to_string()
}

/// Describes a plan that was applied, with the number of messages that left the view.
pub(crate) fn plan_text(applied: &AppliedPlan) -> String {
    let before = applied.messages_before;
    let gone = before.saturating_sub(applied.messages_after);
    applied.plan.describe(Some(gone))
}

/// Returns the exit code for the end of a run.
pub(crate) fn code_of(reason: &EndReason) -> u8 {
    match reason {
        EndReason::Answered => error::DONE,
        reason if reason.is_limit() => error::LIMIT,
        EndReason::CannotFit { .. } => error::CANNOT_FIT,
        EndReason::Failed {
            failure:
                plimsoll::model::Failure::Overflow { .. }
                | plimsoll::model::Failure::Cut { .. }
                | plimsoll::model::Failure::SoftWindow { .. }
                | plimsoll::model::Failure::BodyTooLarge { .. },
        } => error::CANNOT_FIT,
        EndReason::Failed { .. } => error::MODEL,
        EndReason::Interrupted => error::INTERRUPTED,
        _ => error::FAILED,
    }
}

/// Returns the reason why there is no answer, and the remedy.
pub(crate) fn reason_text(settings: &AgentSettings, reason: &EndReason) -> String {
    match reason {
        EndReason::Failed { failure } => failure.to_string(),
        // The error contains the tokens without the answer, but the remedy is a window.
        EndReason::CannotFit { cannot_fit } if settings.builder.trigger == Threshold::Auto => {
            let of = |minimum| CannotFit {
                minimum,
                ..*cannot_fit
            };
            let window = |tokens| of(tokens).window(settings.builder.max_tokens);
            let (given, mut window) = (window(cannot_fit.limit), window(cannot_fit.minimum));
            // From this size on, the recall tools are sent as well.
            if given < RECALL_LEAST_WINDOW && window >= RECALL_LEAST_WINDOW {
                window += RECALL_TOOLS;
            }
            format!(
                "{cannot_fit}; with the answer it requires a window of at least {window}, as in \
                 --max-context {window}"
            )
        }
        EndReason::CannotFit { cannot_fit } => cannot_fit.to_string(),
        EndReason::Interrupted => "interrupted".to_owned(),
        EndReason::Refused { by, why } => plimsoll::machine::refusal(by, why),
        EndReason::NothingToDo => "there are no messages yet; give a task".to_owned(),
        other => other.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_window_has_space_for_the_recall_tools_that_were_not_sent_yet() {
        let settings = AgentSettings::default();
        let wanted = |limit, minimum| {
            let cannot_fit = CannotFit {
                minimum: Tokens(minimum),
                overhead: Tokens(100),
                limit: Tokens(limit),
            };
            let window = cannot_fit.window(None);
            let text = reason_text(&settings, &EndReason::CannotFit { cannot_fit });
            let wanted = text.rsplit(' ').next().and_then(|text| text.parse().ok());
            Tokens(wanted.unwrap_or_default()).minus(window)
        };
        assert_eq!(wanted(3_000, 4_000), Tokens(0));
        assert_eq!(wanted(3_000, 30_000), RECALL_TOOLS);
        assert_eq!(wanted(20_000, 30_000), Tokens(0));
    }
}
