//! [`told`]: what became of a request, message by message. Finds it by comparing what came with what
//! goes, so that nothing can be changed in silence.

use std::collections::BTreeSet;

use serde_json::Value;

use super::attempt::Attempt;
use super::difference::{changed, places};
use super::given::Unit;
use super::repair::Repair;
use super::request::Reasoning;
use crate::fault::{Fault, Rule};

/// Characters shown of a message that was put in.
const SHOWN: usize = 60;

/// Everything that was done, in the order of the request.
pub(super) fn told(attempt: &Attempt<'_, '_>, reasoning: Reasoning) -> Vec<Repair> {
    let mut repairs = attempt.given.unreadable.clone();
    for finding in &attempt.findings {
        repairs.push(Repair {
            place: place(attempt, finding.at),
            rule: finding.rule,
            done: finding.done.clone(),
            words: finding.words.clone(),
        });
    }
    for index in &attempt.stripped {
        let repair = Repair::new(place(attempt, *index), "left out its thinking");
        repairs.push(match reasoning {
            Reasoning::Drop => repair,
            Reasoning::Keep => Repair {
                rule: Some(Rule::Am10),
                ..repair
            },
        });
    }
    for (turn, fault) in &attempt.written {
        let turn = Written {
            attempt,
            turn: *turn,
            fault: fault.as_ref(),
        };
        turn.told(&mut repairs);
    }
    vanished(attempt, &mut repairs);
    system(attempt, &mut repairs);
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    repairs.retain(|one| seen.insert((one.place.clone(), one.done.clone())));
    repairs.sort_by_key(|repair| number(&repair.place));
    repairs
}

/// A turn that is written as it is rendered.
struct Written<'t, 'g, 'a> {
    attempt: &'t Attempt<'g, 'a>,
    turn: usize,
    fault: Option<&'t Fault>,
}

impl Written<'_, '_, '_> {
    fn told(&self, repairs: &mut Vec<Repair>) {
        let attempt = self.attempt;
        let Some(turn) = attempt.drawn.turns.get(self.turn) else {
            return;
        };
        let units = attempt.units_of(self.turn);
        match units.as_slice() {
            // A closing result, which is told where its call is.
            [] if !turn.from.is_empty() => {}
            [] => repairs.push(self.put_in()),
            [unit] if attempt.is_whole(self.turn) => {
                let told = turn.from.iter().any(|index| {
                    let origin = attempt.origins.get(*index).copied().flatten();
                    origin.is_some_and(|origin| attempt.touched.contains(&origin))
                });
                let stands = attempt.stands.get(&self.turn);
                let stands = stands.map(Vec::as_slice).unwrap_or_default();
                if let Some(done) = differs(unit, stands, told) {
                    repairs.push(Repair::new(&unit.place, done).because(self.fault));
                }
            }
            [unit] => {
                let done = "the messages of its turn are parted otherwise";
                repairs.push(Repair::new(&unit.place, done).because(self.fault));
            }
            [first, ..] => {
                let places: Vec<&str> = units.iter().map(|unit| unit.place.as_str()).collect();
                let done = format!("made one message of {}", places.join(", "));
                repairs.push(Repair::new(&first.place, done).because(self.fault));
            }
        }
        for index in &turn.from {
            let Some(origin) = attempt.origins.get(*index).copied().flatten() else {
                continue;
            };
            for note in attempt.drawn.notes_of(*index) {
                let place = place(attempt, origin);
                repairs.push(Repair::new(place, note).because(self.fault));
            }
        }
    }

    /// A message that only makes room.
    fn put_in(&self) -> Repair {
        let next = (self.turn + 1..self.attempt.drawn.turns.len())
            .find_map(|turn| self.attempt.units_of(turn).first().copied());
        let place = match next {
            Some(unit) => unit.place.clone(),
            None => "the end".to_owned(),
        };
        let raw = self
            .attempt
            .raws
            .get(&self.turn)
            .and_then(|raws| raws.first());
        let raw = raw.map(String::as_str).unwrap_or_default();
        let message: Value = serde_json::from_str(raw).unwrap_or_default();
        let role = message.get("role").and_then(Value::as_str);
        let role = role.unwrap_or_default();
        let said: String = text(&message).chars().take(SHOWN).collect();
        let before = match next {
            Some(_) => " before it",
            None => "",
        };
        let done = format!("put a message of the {role}'s{before}: {said:?}");
        Repair::new(place, done).because(self.fault)
    }
}

/// Messages of which nothing is left.
fn vanished(attempt: &Attempt<'_, '_>, repairs: &mut Vec<Repair>) {
    let turns = attempt.drawn.turns.iter();
    let said: BTreeSet<usize> = turns.flat_map(|turn| turn.from.iter().copied()).collect();
    for (index, is_system) in attempt.is_system.iter().enumerate() {
        let origin = attempt.origins.get(index).copied().flatten();
        let unit = origin.and_then(|at| attempt.given.unit_of.get(at).copied().flatten());
        let Some(unit) = unit.and_then(|unit| attempt.given.units.get(unit)) else {
            continue;
        };
        if said.contains(&index) {
            continue;
        }
        let (rule, done) = match attempt.drawn.notes_of(index).next() {
            _ if *is_system => (Some(Rule::Shape), "it stands in the system prompt now"),
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

/// The system prompt beside the messages.
fn system(attempt: &Attempt<'_, '_>, repairs: &mut Vec<Repair>) {
    if !attempt.system {
        return;
    }
    let value = |raw: Option<&str>| -> Value {
        raw.and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default()
    };
    let before = value(attempt.given.key("system"));
    let after = value(attempt.drawn.system.as_deref());
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

/// In what a unit differs from what it was; what of it was taken out may be told already.
fn differs(unit: &Unit<'_>, after: &[String], told: bool) -> Option<String> {
    let mut before: Vec<&str> = unit.raws.clone();
    if told && before.len() != after.len() {
        // What reasoned is told by name.
        before.retain(|raw| !is_reasoning(raw));
    }
    if before.len() != after.len() {
        let (old, new) = (unit.raws.len(), after.len());
        return (!told).then(|| format!("wrote its {old} items as {new}"));
    }
    let mut all = Vec::new();
    for (old, new) in before.iter().zip(after) {
        let old: Value = serde_json::from_str(old).unwrap_or_default();
        let new: Value = serde_json::from_str(new).unwrap_or_default();
        all.extend(places(&old, &new));
    }
    if told {
        let whole = ["content", "tool_calls", "reasoning_content (taken out)"];
        all.retain(|place| !whole.contains(&place.as_str()));
    }
    changed(all)
}

fn place(attempt: &Attempt<'_, '_>, message: usize) -> String {
    let unit = attempt.given.unit_of.get(message).copied().flatten();
    match unit.and_then(|unit| attempt.given.units.get(unit)) {
        Some(unit) => unit.place.clone(),
        None => "system".to_owned(),
    }
}

/// The number in a place; what has none comes first, the end last.
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
