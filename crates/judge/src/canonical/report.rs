//! Reports the repairs of a request, message by message. The report compares the messages before and
//! after, so that no change can be missed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::difference::{changed, places};
use super::parsed_request::Unit;
use super::repair::Repair;
use super::repair_attempt::{RepairAttempt, Rewrite};
use super::request::Reasoning;
use crate::fault::Rule;

/// The maximum number of characters shown of an added message.
const SHOWN: usize = 60;

/// Returns all repairs, in the order of the request.
pub(super) fn all_repairs(attempt: &RepairAttempt<'_, '_>, reasoning: Reasoning) -> Vec<Repair> {
    let mut repairs = attempt.request.unreadable.clone();
    for finding in &attempt.findings {
        repairs.push(Repair {
            place: attempt.request.place(finding.at),
            rule: finding.rule,
            done: finding.done.clone(),
            words: finding.words.clone(),
        });
    }
    for index in &attempt.stripped {
        let repair = Repair::new(attempt.request.place(*index), "left out its thinking");
        repairs.push(match reasoning {
            Reasoning::Drop => repair,
            Reasoning::Keep => Repair {
                rule: Some(Rule::Am10),
                ..repair
            },
        });
    }
    for (turn, one) in attempt.turns.iter().enumerate() {
        if let Some(rewrite) = &one.rewrite {
            let turn = RewrittenTurn {
                attempt,
                turn,
                rewrite,
            };
            turn.add_repairs(&mut repairs);
        }
    }
    vanished(attempt, &mut repairs);
    system(attempt, &mut repairs);
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    repairs.retain(|one| seen.insert((one.place.clone(), one.done.clone())));
    repairs.sort_by_key(|repair| number(&repair.place));
    repairs
}

/// A turn that was written anew.
struct RewrittenTurn<'t, 'g, 'a> {
    attempt: &'t RepairAttempt<'g, 'a>,
    turn: usize,
    rewrite: &'t Rewrite,
}

impl RewrittenTurn<'_, '_, '_> {
    fn add_repairs(&self, repairs: &mut Vec<Repair>) {
        let attempt = self.attempt;
        let from = attempt.from(self.turn);
        let fault = self.rewrite.fault.as_ref();
        let units = attempt.units_of(self.turn);
        match units.as_slice() {
            // A result that closes a call. It is reported at the call.
            [] if !from.is_empty() => {}
            [] => repairs.push(self.put_in()),
            [unit] if attempt.is_whole(self.turn) => {
                let is_reported = from.iter().any(|index| {
                    let origin = attempt.origin(*index);
                    origin.is_some_and(|origin| attempt.touched.contains(&origin))
                });
                if let Some(done) = differs(unit, &self.rewrite.entries, is_reported) {
                    repairs.push(Repair::new(&unit.place, done).because(fault));
                }
            }
            [unit] => {
                let done = "the messages of its turn are parted otherwise";
                repairs.push(Repair::new(&unit.place, done).because(fault));
            }
            [first, ..] => {
                let places: Vec<&str> = units.iter().map(|unit| unit.place.as_str()).collect();
                let done = format!("made one message of {}", places.join(", "));
                repairs.push(Repair::new(&first.place, done).because(fault));
            }
        }
        for index in from {
            let Some(origin) = attempt.origin(*index) else {
                continue;
            };
            for note in attempt.rendered.notes_of(*index) {
                let place = attempt.request.place(origin);
                repairs.push(Repair::new(place, note).because(fault));
            }
        }
    }

    /// Reports a message that was only added to separate others.
    fn put_in(&self) -> Repair {
        let next = (self.turn + 1..self.attempt.turns.len())
            .find_map(|turn| self.attempt.units_of(turn).first().copied());
        let place = match next {
            Some(unit) => unit.place.clone(),
            None => "the end".to_owned(),
        };
        let raws = self.rewrite.raws.as_deref().unwrap_or_default();
        let raw = raws.first().map(String::as_str).unwrap_or_default();
        let message: Value = serde_json::from_str(raw).unwrap_or_default();
        let role = message.get("role").and_then(Value::as_str);
        let role = role.unwrap_or_default();
        let shown: String = text(&message).chars().take(SHOWN).collect();
        let before = match next {
            Some(_) => " before it",
            None => "",
        };
        let done = format!("put a message of the {role}'s{before}: {shown:?}");
        Repair::new(place, done).because(self.rewrite.fault.as_ref())
    }
}

/// Reports messages of which no part is left.
fn vanished(attempt: &RepairAttempt<'_, '_>, repairs: &mut Vec<Repair>) {
    for (index, message) in attempt.messages.iter().enumerate() {
        let unit = message
            .origin
            .and_then(|origin| attempt.request.unit_of(origin));
        let Some(unit) = unit.and_then(|unit| attempt.request.units.get(unit)) else {
            continue;
        };
        if message.turns > 0 {
            continue;
        }
        let (rule, done) = match attempt.rendered.notes_of(index).next() {
            _ if message.is_system => (Some(Rule::Shape), "it stands in the system prompt now"),
            Some(note) => (None, note),
            None => (
                None,
                "left it out: it says nothing that this provider reads",
            ),
        };
        repairs.push(Repair {
            rule,
            ..Repair::new(&unit.place, done)
        });
    }
}

/// Reports a change of the system prompt beside the messages.
fn system(attempt: &RepairAttempt<'_, '_>, repairs: &mut Vec<Repair>) {
    if !attempt.system {
        return;
    }
    let value = |raw: Option<&str>| -> Value {
        raw.and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default()
    };
    let before = value(attempt.request.key("system"));
    let after = value(attempt.rendered.system.as_deref());
    if before != after {
        let done = match (&before, &after) {
            (Value::Null, _) => "put in",
            (_, Value::Null) => "taken out: it says nothing",
            _ => "wrote it anew",
        };
        repairs.push(Repair {
            rule: Some(Rule::Am6),
            ..Repair::new("system", done)
        });
    }
}

fn is_reasoning(item: &str) -> bool {
    let item: Value = serde_json::from_str(item).unwrap_or_default();
    item.get("type").is_some_and(|kind| kind == "reasoning")
}

/// Describes how a unit has changed. `is_reported` is `true` if the removal of a part is reported
/// already.
fn differs(unit: &Unit<'_>, after: &[String], is_reported: bool) -> Option<String> {
    let mut before: Vec<&str> = unit.raws.clone();
    if is_reported && before.len() != after.len() {
        // Removed reasoning is reported separately.
        before.retain(|raw| !is_reasoning(raw));
    }
    if before.len() != after.len() {
        let (old, new) = (unit.raws.len(), after.len());
        return (!is_reported).then(|| format!("wrote its {old} items as {new}"));
    }
    let mut all = Vec::new();
    for (old, new) in before.iter().zip(after) {
        let old: Value = serde_json::from_str(old).unwrap_or_default();
        let new: Value = serde_json::from_str(new).unwrap_or_default();
        all.extend(places(&old, &new));
    }
    if is_reported {
        let whole = ["content", "tool_calls", "reasoning_content (taken out)"];
        all.retain(|place| !whole.contains(&place.as_str()));
    }
    changed(all)
}

/// Returns the number in a place, for sorting. Places without a number come first, the end last.
fn number(place: &str) -> usize {
    let digits = place.chars().skip_while(|one| !one.is_ascii_digit());
    let digits: String = digits.take_while(char::is_ascii_digit).collect();
    match place {
        "the end" => usize::MAX,
        _ => digits.parse().unwrap_or(0),
    }
}

fn text(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks
                .iter()
                .filter_map(|block| block.get("text")?.as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}
