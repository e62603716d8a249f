//! Rollouts of Codex: JSONL, each line with a `type` and a `payload`. Lines with the type
//! `response_item` contain the Responses items of the session.

pub(crate) mod copy;
pub(crate) mod exec;

use plimsoll_foreign::{Role, Unit};
use serde_json::{Value, json};

use crate::error::LogError;
use crate::input::{EntryPlace, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{BranchEntry, SessionLog, text};

/// Events that describe the old history or its failure. Other events are displayed, and copied.
const NOT_COPIED: [&str; 4] = ["token_count", "error", "stream_error", "context_compacted"];

/// Reads a log and returns the history that Codex would send next.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    for_each_entry(log, |log, entry| {
        let kind = entry.text("type").unwrap_or_default();
        match entry.value("payload") {
            Ok(Value::Null) => log.damaged(entry.place, 0, format!("its {kind} is missing")),
            Ok(payload) => {
                log.began = log.began.take().or_else(|| entry.text("timestamp"));
                take(log, entry.place, &kind, payload);
            }
            Err(error) => log.unread(entry, &format!("its {kind}"), &error),
        }
    })?;
    Ok(NO_MESSAGE)
}

fn take(log: &mut SessionLog, place: EntryPlace, kind: &str, mut payload: Value) {
    let owned = |pointer: &str| text(&payload, pointer).map(str::to_owned);
    match kind {
        // A fork repeats the entries of its parent, including the first entry.
        "session_meta" if log.id.is_empty() => {
            log.id = owned("/id").unwrap_or_default();
            log.directory = owned("/cwd");
            log.instructions = owned("/base_instructions/text").or(owned("/base_instructions"));
            log.push(place, []);
        }
        "session_meta" | "token_usage_record" => {}
        "turn_context" => {
            log.model = owned("/model").or(log.model.take());
            log.directory = owned("/cwd").or(log.directory.take());
            log.push(place, []);
        }
        // The state of the working tree, for undo; the model never sees it.
        "response_item" if text(&payload, "/type") == Some("ghost_snapshot") => log.push(place, []),
        "response_item" => {
            log.last_error = None;
            log.push(place, [(0, Role::Own, payload)]);
        }
        "compacted" => {
            let items = match payload.get_mut("replacement_history").map(Value::take) {
                Some(Value::Array(items)) => Some(items),
                _ => None,
            };
            let is_encrypted = |item: &Value| text(item, "/type") == Some("compaction");
            log.has_encrypted = items.iter().flatten().any(is_encrypted);
            if log.has_encrypted && log.ignores_encrypted {
                let back = restore(log, place, items.into_iter().flatten());
                let done = format!("left out its encrypted compaction; {back}");
                log.repaired_by("thinking", place, done);
                return;
            }
            (log.reported, log.begin) = (None, place.number);
            if let Some(items) = items {
                log.units.clear();
                log.branch.retain(|entry| entry.units == 0);
                let items = items.into_iter().enumerate();
                log.push(place, items.map(|(at, item)| (at, Role::Own, item)));
                return;
            }
            // The history becomes the messages of the user and the summary.
            log.units.retain(is_of_user);
            let summary = text(&payload, "/message").unwrap_or_default();
            let content = json!([{ "type": "input_text", "text": summary }]);
            let item = json!({ "type": "message", "role": "user", "content": content });
            log.push(place, [(0, Role::Own, item)]);
        }
        "event_msg" => event(log, place, &payload),
        _ => log.push(place, []),
    }
}

/// Adds the messages of an encrypted compaction that are not before it in the log, and describes the history that is then
/// there. Each stands behind the one that precedes it in the compaction, those behind the last that is in the log at the
/// end, and if there is none, all at the beginning.
fn restore(log: &mut SessionLog, place: EntryPlace, items: impl Iterator<Item = Value>) -> String {
    let before = log.units.len();
    let mut is_found = vec![false; before];
    let (mut lost, mut behind, mut known) = (Vec::new(), 0, 0);
    let is_message = |item: &Value| text(item, "/type") == Some("message");
    for (block, item) in items.enumerate().filter(|(_, item)| is_message(item)) {
        let keys = ["type", "role", "content"];
        let is_same = |unit: &Value| keys.iter().all(|key| unit.get(key) == item.get(key));
        let mut units = log.units.iter().zip(&mut is_found);
        match units.position(|(unit, is_found)| {
            let is_same = !*is_found && is_same(unit.value());
            *is_found |= is_same;
            is_same
        }) {
            Some(at) => (behind, known) = (at + 1, lost.len()),
            None => lost.push((behind, block, item)),
        }
    }
    if behind > 0 {
        let last = lost.iter_mut().skip(known);
        last.for_each(|(at, ..)| *at = before);
    }
    lost.sort_by_key(|(at, ..)| *at);
    let done = match (before, lost.len()) {
        (0, 0) => "no message before it is left".to_owned(),
        (_, 0) => "the messages before it come back".to_owned(),
        (0, count) => format!("of the messages before it, those in it are left: {count}"),
        (_, count) => {
            format!("the messages before it come back, and messages that only it had: {count}")
        }
    };
    for (at, block, item) in lost.into_iter().rev() {
        insert(log, at, place, (block, item));
    }
    done
}

/// Inserts a message as an entry of its own before the unit at this number, or behind the entry of that if it has already
/// begun.
fn insert(log: &mut SessionLog, mut at: usize, place: EntryPlace, (block, item): (usize, Value)) {
    let entry_at = |at: usize| Some(log.units.get(at)?.place?.entry);
    while at > 0 && entry_at(at).is_some() && entry_at(at) == entry_at(at - 1) {
        at += 1;
    }
    let entry = entry_at(at).unwrap_or(log.branch.len());
    let behind = log.units.iter_mut().skip(at);
    for place in behind.filter_map(|unit| unit.place.as_mut()) {
        place.entry += 1;
    }
    let unit = Unit::of_log(entry, block, Role::Own, item);
    log.units.insert(at, unit);
    let one = BranchEntry {
        place,
        units: 1,
        is_reduced: false,
    };
    log.branch.insert(entry, one);
}

fn is_of_user(unit: &Unit<'_>) -> bool {
    let item = unit.value();
    text(item, "/type") == Some("message") && text(item, "/role") == Some("user")
}

fn event(log: &mut SessionLog, place: EntryPlace, event: &Value) {
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64);
    let window = number("/info/model_context_window").or(number("/model_context_window"));
    log.window = window.or(log.window);
    match text(event, "/type").unwrap_or_default() {
        // Without input, it is no size of a request: Codex fills the window after a refusal.
        "token_count" if number("/info/last_token_usage/input_tokens") == Some(0) => {}
        "token_count" => {
            log.report(number("/info/last_token_usage/total_tokens").unwrap_or_default());
        }
        "error" => log.last_error = text(event, "/message").map(str::to_owned),
        "task_complete" => {
            let error = text(event, "/error/message").map(str::to_owned);
            log.last_error = error.or(log.last_error.take());
            log.push(place, []);
        }
        "thread_name_updated" => log.title = text(event, "/thread_name").map(str::to_owned),
        "thread_rolled_back" => {
            for _ in 0..number("/num_turns").unwrap_or_default() {
                let from = log.units.iter().rposition(is_of_user).unwrap_or_default();
                let entry = log.units.get(from).and_then(|unit| Some(unit.place?.entry));
                log.units.truncate(from);
                let Some(entry) = entry else { break };
                log.branch.truncate(entry);
            }
        }
        kind if NOT_COPIED.contains(&kind) => {}
        _ => log.push(place, []),
    }
}
