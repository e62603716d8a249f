//! The machine's texts for the model: notices, and the results of calls that did not run.
//!
//! They are fixed, short and byte-stable, because they become part of the view. Users do not see them.

use crate::call_target::{CallTarget, CommandTarget};

use plimsoll_context::ToolCall;

use crate::batch::MAX_BATCH;
use crate::limits::LimitKind;
use crate::outcome::EndReason;

/// Maximum length of an unknown tool name in a notice, in characters.
const NAME: usize = 64;
/// Maximum number of tools that are named in place of an unknown one.
const TOOLS: usize = 32;

/// Returns the request for a last answer.
pub(crate) fn finalize(reason: &EndReason) -> String {
    format!(
        "[{}. No tool can be called any more. Answer now from what you know, and say plainly \
         what is done and what is not.]",
        used(reason)
    )
}

/// Returns a sentence that says how much of a limit is used.
pub(crate) fn used(reason: &EndReason) -> String {
    let EndReason::Limit { kind, used, limit } = reason else {
        return "The run must end".to_owned();
    };
    let (used, limit) = (kind.amount(*used), kind.amount(*limit));
    let noun = match kind {
        LimitKind::MaxTurns | LimitKind::MaxTokens | LimitKind::ToolLimit => kind.noun(),
        LimitKind::MaxCost => return format!("{used} of the {limit} of this run are used"),
        // The used amount would differ each time.
        LimitKind::MaxDuration => return format!("The {limit} of this run are nearly over"),
        LimitKind::MaxMemory => return "This run can hold no more results".to_owned(),
    };
    format!("{used} of the {limit} {noun} of this run are used")
}

/// Returns the closing text of a run that ended without an answer.
pub(crate) fn stopped(reason: &EndReason) -> String {
    match reason {
        EndReason::Answered => String::new(),
        reason => format!("[Agent stopped: {reason}]"),
    }
}

/// Marks an incomplete answer.
pub(crate) const CUT_OFF: &str = "[The answer was cut off before its end.]";

/// Follows the closing text of a run that was rolled back.
pub(crate) const TAKEN_BACK: &str = "[The messages of this run were removed from the session.]";

/// Marks an answer that the content filter ended.
pub(crate) const FILTERED: &str =
    "[The answer was cut off before its end by the provider's content filter.]";

/// Returns a sentence that names the hook or gate that refused, with its reason. The name is not
/// repeated if the reason already begins with it.
#[must_use]
pub fn refusal(by: &str, why: &str) -> String {
    let no = format!("{by} refused");
    match why {
        "" => no,
        why if why.starts_with(&no) => why.to_owned(),
        why => format!("{no}: {why}"),
    }
}

/// Tells the model that its answer was empty.
pub(crate) const EMPTY_REPLY: &str =
    "[Your last answer was empty. Answer the user, or call a tool.]";

/// Tells the model that it repeats itself. Added once its calls have results.
pub(crate) const REPEATED: &str = "[You have made these calls before, and their results are the same. \
    Answer from what you have, or do something else.]";

/// Returns the result of a call that was not run because it is a repetition.
pub(crate) const REPEATED_CALL: &str = "not run: you have made these calls several times, and their \
    results do not change; answer from what you have, or do something else";

/// The result of a call that occurs twice in one message.
pub(crate) const SAME_CALL: &str =
    "not run: the same call stands in this message already; its result is above";

/// Asks the model to continue after an answer.
pub(crate) const GO_ON: &str = "[Go on.]";

/// Returns the result of a call above the limit per message.
pub(crate) fn over_batch() -> String {
    format!("skipped: a message may make {MAX_BATCH} tool calls; make the others in the next one")
}

/// Returns the result of a call that the permission rules deny.
pub(crate) fn denied(tool: &str, target: &CallTarget) -> String {
    let is_unread = |command: &CommandTarget| command.is_unclear;
    match target {
        CallTarget::Command(command) if is_unread(command) => format!(
            "not run: this call of `{tool}` may run what the rules of this run do not allow, and the \
             command cannot be checked; write simple commands, one a call"
        ),
        _ => format!(
            "not run: the rules of this run do not allow this call of `{tool}`; do something else"
        ),
    }
}

/// Returns the result of a call that might change something in a read-only run.
pub(crate) fn read_only(tool: &str) -> String {
    format!(
        "not run: this run is read-only, and `{tool}` may change something; say what you would do \
         instead"
    )
}

/// The result of a call in a reply that must not contain any.
pub(crate) const NO_TOOLS_NOW: &str = "skipped: no tool can be called any more in this run";

/// The result of a call that was skipped because of a new message.
pub(crate) const OVERTAKEN: &str =
    "skipped: a new message of the user arrived before this call began; read it first";

/// The result of a call that was running when the process stopped.
pub(crate) const UNKNOWN: &str = "it is not known whether this call ran to its end: the process \
    stopped while it was running; check its effects before calling it again";

/// The result of a call that was aborted because the run's time is nearly over.
pub(crate) const OUT_OF_TIME: &str = "not run: the time of this run is nearly over";

/// The result of a call that was running when its run ended.
pub(crate) const CUT: &str = "stopped while it was running; its effects are not known";

/// The result of a call in the same batch as a malformed one.
pub(crate) const BATCH_UNREADABLE: &str =
    "not run: another call of the same message could not be read; call it again";

/// Returns the result of a call with arguments that are not a JSON object.
pub(crate) fn unreadable(call: &ToolCall, why: &str) -> String {
    format!(
        "the arguments of `{}` are not a valid JSON object: {why}; call it again with valid JSON",
        shortened(&call.name, NAME)
    )
}

/// Maximum number of faults of arguments that are named.
const FAULTS: usize = 5;

/// Returns the result of a call whose arguments do not fit the schema of its tool.
pub(crate) fn misfits(tool: &str, faults: &[String]) -> String {
    let faults = faults.get(..FAULTS).unwrap_or(faults).join("; ");
    format!("not run: the arguments of `{tool}` do not fit: {faults}; call it again")
}

/// Returns the note before the result of a call whose tool has another name than the model wrote.
pub(crate) fn other_tool(written: &str, tool: &str) -> String {
    let written = shortened(written, NAME);
    format!("[there is no tool `{written}`; this is the result of `{tool}`]")
}

/// Returns the result of a call of an unknown tool.
pub(crate) fn unknown_tool(name: &str, tools: &[&str]) -> String {
    let name = shortened(name, NAME);
    let name = name.as_str();
    let mut near: Vec<(f64, &str)> = tools
        .iter()
        .map(|tool| (strsim::jaro_winkler(name, tool), *tool))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let near: Vec<&str> = near.into_iter().take(TOOLS).map(|(_, tool)| tool).collect();
    if near.is_empty() {
        return format!("there is no tool `{name}`: this run has no tools; answer in text");
    }
    let more = match tools.len() - near.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "there is no tool `{name}`; there is: {}{more}",
        near.join(", ")
    )
}

/// Returns a text, or its first `max` characters and an ellipsis.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn who_refused_is_named_once() {
        for (why, said) in [
            ("", "before_turn refused"),
            ("before_turn refused", "before_turn refused"),
            ("before_turn refused: late", "before_turn refused: late"),
            ("it is late", "before_turn refused: it is late"),
        ] {
            assert_eq!(refusal("before_turn", why), said);
        }
    }
}
