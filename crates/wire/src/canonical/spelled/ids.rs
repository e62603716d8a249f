//! Ids for calls and results that have none: a call gets one by its place, a result that of the next
//! call that waits for one. Nothing of those that have one.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::target::Target;
use super::{Entry, Notes, RawObject, list, note, object, quoted, text};

/// One call or result of the list.
struct Asked {
    /// The entry that it stands in.
    entry: usize,
    /// Which one of it; of calls and of results in their order.
    nth: usize,
    what: What,
    id: Option<String>,
    /// Whether a model's turn begins with it.
    begins: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Call,
    Result,
}

/// Gives an id to each call and result that has none.
pub(super) fn give(entries: &mut [Entry<'_>], target: &Target, notes: &mut Notes) {
    let mut all: Vec<Asked> = Vec::new();
    let mut in_turn = false;
    for (entry, one) in entries.iter().enumerate() {
        let found = found(&one.raw, target);
        let is_model = found.iter().any(|(what, _)| *what == What::Call);
        // Items of one turn follow each other; a message of a model's is a turn.
        let mut begins = is_model && (!in_turn || !matches!(target, Target::Responses(_)));
        in_turn = is_model;
        for (nth, (what, id)) in found.into_iter().enumerate() {
            all.push(Asked {
                entry,
                nth,
                what,
                id,
                begins: std::mem::take(&mut begins),
            });
        }
    }
    if all.iter().all(|one| one.id.is_some()) {
        return;
    }
    assign(&mut all, target);
    for asked in all.chunk_by(|one, other| one.entry == other.entry) {
        let entry = asked.first().and_then(|one| entries.get_mut(one.entry));
        let Some(entry) = entry else {
            continue;
        };
        if let Some(new) = with_ids(entry, asked, target, notes) {
            entry.raw = Cow::Owned(new);
        }
    }
}

fn assign(all: &mut [Asked], target: &Target) {
    let ids = |what: What| {
        let of = all.iter().filter(move |one| one.what == what);
        of.filter_map(|one| one.id.clone()).collect::<BTreeSet<_>>()
    };
    let (asked, answered) = (ids(What::Call), ids(What::Result));
    let mut taken: BTreeSet<String> = asked.union(&answered).cloned().collect();
    let mut at = 0;
    while at < all.len() {
        let next = all.iter().skip(at + 1).position(|one| one.begins);
        let end = next.map_or(all.len(), |next| at + 1 + next);
        let (_, rest) = all.split_at_mut(at);
        let (turn, _) = rest.split_at_mut(end - at);
        at = end;
        // Results that name a call which nobody has made are those of calls without a name.
        let unknown = turn.iter().filter(|one| one.what == What::Result);
        let unknown = unknown.filter_map(|one| one.id.clone());
        let mut unknown = unknown
            .filter(|id| !asked.contains(id))
            .collect::<Vec<_>>()
            .into_iter();
        let mut open: Vec<String> = Vec::new();
        for one in turn.iter_mut() {
            match (one.what, &one.id) {
                (What::Call, Some(id)) if !answered.contains(id) => open.push(id.clone()),
                (What::Call, None) => match unknown.next() {
                    Some(id) => one.id = Some(id),
                    None => {
                        let id = spare(one, &mut taken);
                        open.push(id.clone());
                        one.id = Some(id);
                    }
                },
                _ => {}
            }
        }
        let mut open = open.into_iter();
        for one in turn.iter_mut().filter(|one| one.id.is_none()) {
            one.id = open.next();
            // Where it is a message of its own, it says nothing to anybody.
            if one.id.is_none() && matches!(target, Target::Messages(_)) {
                one.id = Some(spare(one, &mut taken));
            }
        }
    }
}

/// An id by the place.
fn spare(one: &Asked, taken: &mut BTreeSet<String>) -> String {
    let mut id = format!("call_{}_{}", one.entry, one.nth);
    while !taken.insert(id.clone()) {
        id.push('_');
    }
    id
}

/// The calls and the results of a message or an item, and their ids.
fn found(raw: &str, target: &Target) -> Vec<(What, Option<String>)> {
    let Some(entry) = object(raw) else {
        return Vec::new();
    };
    match target {
        Target::Chat(_) => {
            let calls = entry.get("tool_calls").and_then(list).unwrap_or_default();
            let calls = calls.into_iter().filter_map(object);
            let mut all: Vec<_> = calls
                .map(|call| (What::Call, text(call.get("id"))))
                .collect();
            if entry.get("role") == Some("\"tool\"") {
                all.push((What::Result, text(entry.get("tool_call_id"))));
            }
            all
        }
        Target::Responses(_) => {
            let kind = text(entry.get("type")).unwrap_or_default();
            let what = match kind.as_str() {
                "function_call" | "custom_tool_call" => What::Call, // tidy:allow(function call)
                "function_call_output" | "custom_tool_call_output" => What::Result, // tidy:allow(function call)
                _ => return Vec::new(),
            };
            vec![(what, text(entry.get("call_id")))]
        }
        Target::Messages(_) => {
            let blocks = entry.get("content").and_then(list).unwrap_or_default();
            let blocks = blocks.into_iter().filter_map(object);
            let asked = blocks.filter_map(|block| match block.get("type") {
                Some("\"tool_use\"") => Some((What::Call, text(block.get("id")))),
                Some("\"tool_result\"") => Some((What::Result, text(block.get("tool_use_id")))),
                _ => None,
            });
            asked.collect()
        }
    }
}

/// The message or the item with these ids where there are none; `None` where all are there.
fn with_ids(
    entry: &Entry<'_>,
    asked: &[Asked],
    target: &Target,
    notes: &mut Notes,
) -> Option<String> {
    let whole = object(&entry.raw)?;
    let mut changed = false;
    let mut give = |object: &RawObject<'_>, one: Option<&Asked>, key: &str| {
        let one = one?;
        let id = one
            .id
            .as_deref()
            .filter(|_| text(object.get(key)).is_none())?;
        let done = match one.what {
            What::Call => format!("gave its call the id `{id}`: it had none"),
            What::Result => format!("took it for the result of `{id}`: it named no call"),
        };
        note(notes, entry.place.clone(), done);
        changed = true;
        Some(object.with(&[(key, Some(quoted(id)))]))
    };
    let first = asked.first()?;
    let key = match target {
        Target::Responses(_) => return give(&whole, Some(first), "call_id"),
        Target::Chat(_) if first.what == What::Result => {
            return give(&whole, Some(first), "tool_call_id");
        }
        Target::Chat(_) => "tool_calls",
        Target::Messages(_) => "content",
    };
    let mut asked = asked.iter();
    let list = whole.get(key).and_then(list)?.into_iter().map(|raw| {
        let block = object(raw)?;
        let id_key = match (target, block.get("type")) {
            (Target::Chat(_), _) | (_, Some("\"tool_use\"")) => "id",
            (_, Some("\"tool_result\"")) => "tool_use_id",
            _ => return None,
        };
        give(&block, asked.next(), id_key)
    });
    let list: Vec<Option<String>> = list.collect();
    let raws = whole.get(key).and_then(super::list)?.into_iter().zip(list);
    let raws: Vec<String> = raws
        .map(|(raw, new)| new.unwrap_or_else(|| raw.to_owned()))
        .collect();
    let list = format!("[{}]", raws.join(","));
    changed.then(|| whole.with(&[(key, Some(list))]))
}
