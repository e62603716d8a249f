//! Compares a session's log with the requests to the model and with the effects in the ledger. Each
//! difference is reported as a sentence.

use std::collections::BTreeMap;

use plimsoll::Message;
use plimsoll::machine::Entry;
use serde_json::Value;

use crate::model::Sheet;
use crate::plan::{HAPPENED, Limit, Plan, Work};

/// Part of every result of a call whose outcome is unknown.
const UNKNOWN: &str = "it is not known whether";

/// Whether requests of a replaced process may still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// One process after the other: the log never gets shorter.
    OneByOne,
    /// A process may be paused, replaced, and continued. Its later requests are then outdated.
    Stopped,
}

/// The result of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Calls whose outcome is unknown according to the log.
    pub(crate) unknown: u64,
    /// Lines in the ledger.
    pub(crate) effects: u64,
    /// Descriptions of all violations.
    pub(crate) violations: Vec<String>,
}

/// The contents of a log.
#[derive(Debug, Default)]
struct Read {
    tasks: u64,
    /// The ids of the calls of each reply.
    replies: Vec<Vec<String>>,
    /// How often each call began, and its results.
    began: BTreeMap<String, u64>,
    results: BTreeMap<String, Vec<String>>,
    /// The number of plans. Each changes the messages of the next request.
    plans: usize,
    ends: Vec<String>,
}

/// Returns `true` if the run has ended according to the log.
pub(crate) fn has_ended(log: &[Entry]) -> bool {
    matches!(log.last(), Some(Entry::RunEnded { .. }))
}

/// Returns `true` if an entry is a message of the user. The run itself adds other messages for the
/// model.
pub(crate) fn is_task(entry: &Entry) -> bool {
    match entry {
        Entry::Message { message, .. } => matches!(**message, Message::User { .. }),
        _ => false,
    }
}

/// Checks a session that has ended. `effects` contains the lines of the ledger, by call id.
pub(crate) fn check(
    plan: &Plan,
    log: &[Entry],
    sheet: &Sheet,
    effects: &BTreeMap<String, u64>,
    writers: Writers,
) -> Finding {
    let read = Read::of(log);
    let mut finding = Finding::default();
    let violations = &mut finding.violations;
    if read.tasks != 1 {
        violations.push(format!("the task is in the log {} times", read.tasks));
    }
    check_end(plan, &read, violations);
    let planned: Vec<Vec<String>> = plan
        .turns
        .iter()
        .map(|turn| turn.iter().map(|call| call.id.clone()).collect())
        .collect();
    for (turn, calls) in (1..).zip(&read.replies) {
        let expected = planned.get(turn - 1).filter(|_| !calls.is_empty());
        if expected.is_some_and(|expected| expected != calls) {
            violations.push(format!(
                "reply {turn} of the log has the calls {}, which the model did not make in turn {turn}",
                calls.join(", ")
            ));
        }
    }
    check_model(plan, &read, sheet, writers, violations);
    for call in plan.turns.iter().flatten() {
        let lines = effects.get(&call.id).copied().unwrap_or_default();
        finding.effects += lines;
        let results = read.results.get(&call.id).map_or(&[][..], Vec::as_slice);
        let was_made = read.replies.iter().flatten().any(|id| *id == call.id);
        if results.len() != usize::from(was_made) {
            violations.push(format!(
                "call {} has {} results in the log",
                call.id,
                results.len()
            ));
        }
        let is_unknown = results.iter().any(|text| text.contains(UNKNOWN));
        finding.unknown += u64::from(is_unknown);
        if let Work::Read = call.work {
            continue;
        }
        if lines > 1 {
            violations.push(format!(
                "the effect of call {} happened {lines} times",
                call.id
            ));
        }
        if read.began.get(&call.id).copied().unwrap_or_default() > 1 {
            violations.push(format!("call {} began more than once", call.id));
        }
        let has_happened = results.iter().any(|text| text.starts_with(HAPPENED));
        if has_happened && lines == 0 {
            violations.push(format!(
                "call {} has a result and has left nothing in the ledger",
                call.id
            ));
        }
        if lines > 0 && !has_happened && !is_unknown {
            violations.push(format!(
                "the effect of call {} happened, and its result says {:?}",
                call.id,
                results.first()
            ));
        }
    }
    finding
}

fn check_end(plan: &Plan, read: &Read, violations: &mut Vec<String>) {
    let expected: &[&str] = match plan.limit {
        Limit::None => &["answered"],
        Limit::Turns(_) => &["max_turns"],
        Limit::Tokens(_) => &["max_tokens", "answered"],
    };
    match read.ends.as_slice() {
        [] => violations.push("the run has not ended".to_owned()),
        [end] if expected.contains(&end.as_str()) => {}
        ends => violations.push(format!(
            "the log says that the run ended as {}, not once as {}",
            ends.join(", "),
            expected.join(" or ")
        )),
    }
    if plan.limit == Limit::None && read.replies.len() != plan.turns.len() + 1 {
        violations.push(format!(
            "the log has {} replies in place of {}",
            read.replies.len(),
            plan.turns.len() + 1
        ));
    }
}

fn check_model(
    plan: &Plan,
    read: &Read,
    sheet: &Sheet,
    writers: Writers,
    violations: &mut Vec<String>,
) {
    let turns = sheet.turns.len() as u64;
    // A turn is counted by the messages of its request, so a plan may give it the number of an older one.
    if turns + (sheet.rewritten.len() as u64) < read.replies.len() as u64 {
        violations.push(format!(
            "the log has {} replies, and the model was asked for {turns}",
            read.replies.len()
        ));
    }
    if sheet.rewritten.len() > read.plans {
        violations.push(format!(
            "{} request(s) had other messages than the requests before, and the log has {} plan(s)",
            sheet.rewritten.len(),
            read.plans
        ));
    }
    if sheet.late > 0 && writers == Writers::OneByOne {
        violations.push(format!(
            "{} request(s) had fewer messages than one before: the log has lost entries",
            sheet.late
        ));
    }
    for (id, shown) in &sheet.results {
        if read
            .results
            .get(id)
            .is_none_or(|results| !results.contains(shown))
        {
            violations.push(format!(
                "the model was shown a result of call {id} that the log does not have"
            ));
        }
    }
    match plan.limit {
        Limit::None => {}
        Limit::Turns(limit) => {
            if turns > limit {
                violations.push(format!("{turns} turns, and the limit is {limit}"));
            }
        }
        Limit::Tokens(limit) => {
            // Calls are made until the limit is reached. At the limit, the model is asked once
            // more, without tools, for its answer.
            let calls = sheet.turns.values().filter(|turn| turn.may_call);
            let before: u64 = calls.rev().skip(1).map(|turn| turn.tokens).sum();
            let finals = sheet.turns.values().filter(|turn| !turn.may_call).count();
            if before >= limit || finals > 1 {
                violations.push(format!(
                    "{before} tokens were used before the last turn with tools, {finals} turn(s) had \
                     none, and the limit is {limit}"
                ));
            }
        }
    }
}

impl Read {
    fn of(log: &[Entry]) -> Self {
        let mut read = Self::default();
        for entry in log {
            match entry {
                Entry::Message { .. } if is_task(entry) => read.tasks += 1,
                Entry::Reply { message, .. } => {
                    let message = serde_json::to_value(message).unwrap_or_default();
                    let parts = message.get("parts").and_then(Value::as_array);
                    let ids = parts
                        .into_iter()
                        .flatten()
                        .filter_map(|part| part.get("id"));
                    let ids = ids.filter_map(Value::as_str).map(str::to_owned);
                    read.replies.push(ids.collect());
                }
                Entry::ToolStarted { call } => *read.began.entry(call.0.clone()).or_default() += 1,
                Entry::ToolResult { message, .. } => {
                    let message = serde_json::to_value(message).unwrap_or_default();
                    let text = |at| message.pointer(at).and_then(Value::as_str);
                    let id = text("/call").unwrap_or_default().to_owned();
                    let said = text("/parts/0/text").unwrap_or_default().to_owned();
                    read.results.entry(id).or_default().push(said);
                }
                Entry::PlanApplied { .. } => read.plans += 1,
                Entry::RunEnded { outcome } => {
                    let reason = serde_json::to_value(&outcome.reason).unwrap_or_default();
                    let word = reason.get("reason").and_then(Value::as_str);
                    read.ends.push(word.unwrap_or_default().to_owned());
                }
                _ => {}
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AskedTurn;
    use crate::plan::PlannedCall;
    use serde_json::json;

    fn plan() -> Plan {
        let (before, after) = (0, 0);
        let call = PlannedCall {
            id: "s-0".to_owned(),
            work: Work::Effect { before, after },
        };
        Plan {
            session: "s".to_owned(),
            turns: vec![vec![call]],
            limit: Limit::None,
        }
    }

    /// Returns the log of the plan, with this result of its call.
    fn log(result: &str) -> Vec<Entry> {
        let usage =
            json!({"input": 1, "output": 1, "reasoning": 0, "cache_read": 0, "cache_write": 0});
        let replied = |part: Value| {
            json!({"entry": "reply", "message": {"role": "assistant", "parts": [part]},
                "stop": "stop", "usage": null, "counted": 1})
        };
        let call = json!({"type": "tool_call", "id": "s-0", "name": "bash", "arguments": "{}"});
        let text = |text: &str| json!({"type": "text", "text": text});
        let entries = [
            json!({"entry": "message", "message": {"role": "user", "parts": [text("go")]}}),
            replied(call),
            json!({"entry": "tool_started", "call": "s-0"}),
            json!({"entry": "tool_result",
                "message": {"role": "tool_result", "call": "s-0", "parts": [text(result)]}}),
            replied(text("done")),
            json!({"entry": "run_ended", "outcome": {"reason": {"reason": "answered"}, "text": "done",
                "turns": 2, "tool_calls": 1, "plans": 0, "freed": 0, "usage": usage, "cost": {"known": 0}}}),
        ];
        let entries = entries.map(|entry| serde_json::from_value(entry).unwrap());
        entries.into()
    }

    fn found(log: &[Entry], lines: u64, late: u64) -> Vec<String> {
        let mut sheet = Sheet::default();
        sheet.turns = [(0, AskedTurn::default()), (1, AskedTurn::default())].into();
        sheet.late = late;
        let effects = [("s-0".to_owned(), lines)].into();
        check(&plan(), log, &sheet, &effects, Writers::OneByOne).violations
    }

    #[test]
    fn what_is_lost_or_doubled_is_found() {
        let happened = log("happened\n[exit 0]");
        assert_eq!(found(&happened, 1, 0), [""; 0]);
        // The effect may or may not have happened, but not more than once.
        let unknown = log(&format!("{UNKNOWN}: the process stopped"));
        assert_eq!(found(&unknown, 0, 0), [""; 0]);
        assert_eq!(found(&unknown, 1, 0), [""; 0]);
        assert_eq!(found(&unknown, 2, 0).len(), 1);
        assert_eq!(found(&happened, 0, 0).len(), 1);
        assert_eq!(found(&happened, 2, 0).len(), 1);
        assert_eq!(found(&happened, 1, 1).len(), 1);
        assert_eq!(found(&log("not run"), 1, 0).len(), 1);
        for at in [0, 3, 5] {
            let mut twice = happened.clone();
            twice.insert(at, happened[at].clone());
            assert_eq!(found(&twice, 1, 0).len(), 1, "{at} twice");
            let mut without = happened.clone();
            without.remove(at);
            assert!(!found(&without, 1, 0).is_empty(), "without {at}");
        }
    }

    #[test]
    fn a_plan_accounts_for_one_other_request() {
        let mut sheet = Sheet::default();
        sheet.turns = [(0, AskedTurn::default()), (1, AskedTurn::default())].into();
        sheet.rewritten.insert(vec![1]);
        let effects = [("s-0".to_owned(), 1)].into();
        let found = |log: &[Entry]| {
            check(&plan(), log, &sheet, &effects, Writers::OneByOne)
                .violations
                .len()
        };
        let mut log = log("happened\n[exit 0]");
        assert_eq!(found(&log), 1);
        let planned = json!({"entry": "plan_applied", "plan": {"why": {"why": "request"},
            "stages": ["evict"], "edits": [], "before": 2, "frees": 1, "rewrites_from": 1,
            "recall": "offered"}});
        log.insert(4, serde_json::from_value(planned).unwrap());
        assert_eq!(found(&log), 0);
    }
}
