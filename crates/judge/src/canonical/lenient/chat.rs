//! One message of Chat Completions. Not its ids, which it shares with others.

use super::part::{Voice, Wire, content};
use super::{Notes, id, is_said, list, name, note, object};

/// The message as the wire has it; `None` where it is that already.
pub(in crate::canonical) fn message(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let message = object(raw)?;
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    if let Some(said) = message.get("content") {
        let place = format!("{place}.content");
        let whose = (Wire::Chat, Voice::of(message.get("role")));
        let new = content(said, &place, whose, notes);
        changes.extend(new.map(|new| ("content", Some(new))));
    }
    if let Some(asked) = message.get("tool_calls").filter(|asked| *asked != "null") {
        let place = format!("{place}.tool_calls");
        changes.extend(calls(asked, &place, notes).map(|new| ("tool_calls", new)));
    }
    let place = format!("{place}.tool_call_id");
    let answers = id(message.get("tool_call_id"), &place, notes);
    changes.extend(answers.map(|new| ("tool_call_id", Some(new))));
    (!changes.is_empty()).then(|| message.with(&changes))
}

/// The calls of a message; the inner `None` where there are none.
fn calls(raw: &str, place: &str, notes: &mut Notes) -> Option<Option<String>> {
    if object(raw).is_some() {
        note(notes, place, "put its one call into a list");
        let new = match call(raw, place, notes) {
            Some(call) => call,
            None => Some(raw.to_owned()),
        };
        return Some(new.map(|call| format!("[{call}]")));
    }
    let Some(list) = list(raw) else {
        note(notes, place, "left it out: it is no list of calls");
        return Some(None);
    };
    let mut changed = false;
    let mut all: Vec<String> = Vec::with_capacity(list.len());
    for (index, raw) in list.into_iter().enumerate() {
        match call(raw, &format!("{place}[{index}]"), notes) {
            None => all.push(raw.to_owned()),
            Some(new) => {
                changed = true;
                all.extend(new);
            }
        }
    }
    changed.then(|| (!all.is_empty()).then(|| format!("[{}]", all.join(","))))
}

/// One call; the inner `None` where it calls nothing.
fn call(raw: &str, place: &str, notes: &mut Notes) -> Option<Option<String>> {
    let Some(call) = object(raw) else {
        note(notes, place, "left it out: it calls nothing");
        return Some(None);
    };
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    let named = id(call.get("id"), &format!("{place}.id"), notes);
    changes.extend(named.map(|new| ("id", Some(new))));
    let is_custom = call.get("type") == Some("\"custom\"");
    let key = if is_custom { "custom" } else { "function" };
    match call.get(key).and_then(object) {
        Some(function) => {
            let place = format!("{place}.{key}");
            let taken = if is_custom { "input" } else { "arguments" };
            let mut inner: Vec<(&str, Option<String>)> = Vec::new();
            let named = name(function.get("name"), &format!("{place}.name"), notes);
            inner.extend(named.map(|new| ("name", Some(new))));
            let new = arguments(function.get(taken), &format!("{place}.{taken}"), notes);
            inner.extend(new.map(|new| (taken, Some(new))));
            if !inner.is_empty() {
                changes.push((key, Some(function.with(&inner))));
            }
        }
        // Some have them in the call itself.
        None if is_said(call.get("name")) && !is_said(call.get(key)) => {
            note(
                notes,
                place,
                "put its name and its arguments where they belong",
            );
            let mut inner = super::RawObject::default().with(&[
                ("name", call.get("name").map(str::to_owned)),
                ("arguments", call.get("arguments").map(str::to_owned)),
            ]);
            if let Some(function) = object(&inner) {
                let mut changes: Vec<(&str, Option<String>)> = Vec::new();
                let named = name(function.get("name"), &format!("{place}.name"), notes);
                changes.extend(named.map(|new| ("name", Some(new))));
                let place = format!("{place}.arguments");
                let new = arguments(function.get("arguments"), &place, notes);
                changes.extend(new.map(|new| ("arguments", Some(new))));
                inner = function.with(&changes);
            }
            changes.extend([
                ("name", None),
                ("arguments", None),
                ("type", Some("\"function\"".to_owned())),
                (key, Some(inner)),
            ]);
        }
        None => {
            note(notes, place, "left it out: it calls nothing");
            return Some(None);
        }
    }
    (!changes.is_empty()).then(|| Some(call.with(&changes)))
}

/// Arguments as a text; an object is read as one.
fn arguments(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    match raw {
        None | Some("null") => None,
        Some(raw) if raw.starts_with('{') => None,
        raw => super::arguments(raw, place, notes),
    }
}
