//! How a run ended, in words and as an exit code, for every command that runs one.

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, EndReason, Error, RECALL_LEAST_WINDOW};

use crate::choice::RunRates;
use crate::exit::{self, Stop};

/// What the tools that recall take of a window, at most, a test says.
const RECALL_TOOLS: u64 = 600;

/// answered │ 7 turns, 6 tool calls │ read 9,120 (71 % cached), wrote 310 │ 2 plans freed 1,804 │ $0.0000 │ session …
pub(crate) fn summary(rates: RunRates, output: &AgentOutput) -> String {
    let used = output.tokens_used;
    let money = rates.cost(used, output.summary_usage);
    let money = money.map_or("price unknown".to_owned(), |money| money.to_string());
    format!(
        "{} │ {} turns, {} tool calls │ read {} ({:.0} % cached), wrote {} │ {} plans freed {} │ {money} │ session {}",
        output.reason.word(),
        output.turns,
        output.tool_calls,
        used.processed(),
        used.cache_hit_rate() * 100.0,
        used.output,
        output.plans,
        output.freed,
        output.session_id,
    )
}

/// The exit code.
pub(crate) fn code_of(reason: &EndReason) -> u8 {
    match reason {
        EndReason::Answered => exit::DONE,
        reason if reason.is_limit() => exit::LIMIT,
        EndReason::CannotFit { .. } => exit::CANNOT_FIT,
        EndReason::Failed {
            failure: plimsoll::Failure::Overflow { .. } | plimsoll::Failure::BodyTooLarge { .. },
        } => exit::CANNOT_FIT,
        EndReason::Failed { .. } => exit::MODEL,
        EndReason::Interrupted => exit::INTERRUPTED,
        _ => exit::FAILED,
    }
}

/// Why there is no answer, and what helps.
pub(crate) fn reason_text(settings: &AgentSettings, reason: &EndReason) -> String {
    match reason {
        EndReason::Failed { failure } => failure.to_string(),
        // What is allowed is the window less the answer; what is asked for is a window.
        EndReason::CannotFit { cannot_fit } if settings.trigger.is_none() => {
            let minimum = cannot_fit.minimum.0;
            let reserve = settings.max_tokens.unwrap_or(plimsoll::OUTPUT_RESERVE).0;
            let window = (minimum + reserve).min(minimum.div_ceil(3) * 4);
            // From this size on the tools that recall are sent as well.
            let window = match window >= RECALL_LEAST_WINDOW.0 {
                true => window + RECALL_TOOLS,
                false => window,
            };
            format!(
                "{cannot_fit}; with room for the answer that takes a window of at least {window}, as in --max-context {window}"
            )
        }
        EndReason::CannotFit { cannot_fit } => cannot_fit.to_string(),
        EndReason::Interrupted => "interrupted".to_owned(),
        EndReason::Refused { by, why } => plimsoll::refusal(by, why),
        other => other.word().to_owned(),
    }
}

/// Why a session could not be driven at all.
pub(crate) fn stop_of(error: &Error) -> Stop {
    match error {
        Error::EmptyTask | Error::Build(_) => Stop::usage(error),
        _ => Stop::failed(error),
    }
}
