//! Assigns ids to calls and results that have none, or the id of another call of the same turn.
//!
//! A call gets an id from its place in the list. A result gets the id of the next call that waits for
//! one; so does a second result with the same id.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::super::form::WireForm;
use super::{LenientEntry, Notes, RawObject, list, note, object, quoted, text};

/// One call or result of the list.
struct IdUse {
    /// The index of its entry.
    entry: usize,
    /// Its position among the calls or among the results of the entry.
    nth: usize,
    owner: IdOwner,
    id: Option<String>,
    /// Whether an earlier call, or an earlier result, of the same turn has the same id.
    is_repeated: bool,
    /// Whether it begins an assistant turn.
    begins_turn: bool,
}

/// The two kinds of thing that have an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdOwner {
    Call,
    Result,
}

/// The place of the ids in an entry.
pub(crate) enum IdPlace {
    /// Under a key of the entry, which is one call or result.
    Entry(&'static str),
    /// In a list under a key. Returns the key of the id in a block of a `type`, or `None` if such a
    /// block has no id.
    List(&'static str, fn(Option<&str>) -> Option<&'static str>),
}

/// Assigns an id to each call and result that has none of its own.
pub(super) fn give(entries: &mut [LenientEntry<'_>], form: &dyn WireForm, notes: &mut Notes) {
    let mut all: Vec<IdUse> = Vec::new();
    let mut in_turn = false;
    for (entry, one) in entries.iter().enumerate() {
        let found = object(&one.raw).map(|entry| form.pairs(&entry));
        let found = found.unwrap_or_default();
        let is_model = found.iter().any(|(owner, _)| *owner == IdOwner::Call);
        // Items of one turn follow each other. In a protocol with messages, each assistant message is a
        // turn.
        let mut begins_turn = is_model && (!in_turn || !form.has_items());
        in_turn = is_model;
        for (nth, (owner, id)) in found.into_iter().enumerate() {
            all.push(IdUse {
                entry,
                nth,
                owner,
                id,
                is_repeated: false,
                begins_turn: std::mem::take(&mut begins_turn),
            });
        }
    }
    for turn in turns(&all) {
        take_repeated(all.get_mut(turn).unwrap_or_default());
    }
    if all.iter().all(|one| one.id.is_some()) {
        return;
    }
    assign(&mut all, form);
    for of_entry in all.chunk_by(|one, other| one.entry == other.entry) {
        let entry = of_entry.first().and_then(|one| entries.get_mut(one.entry));
        let Some(entry) = entry else {
            continue;
        };
        if let Some(new) = with_ids(entry, of_entry, form, notes) {
            entry.raw = Cow::Owned(new);
        }
    }
}

/// Returns the ranges of the turns.
fn turns(all: &[IdUse]) -> Vec<Range<usize>> {
    let begins = all.iter().enumerate().filter(|(_, one)| one.begins_turn);
    let mut begins: Vec<usize> = begins.map(|(at, _)| at).collect();
    if begins.first() != Some(&0) {
        begins.insert(0, 0);
    }
    let ends = begins.iter().skip(1).copied().chain([all.len()]);
    let turns = begins.iter().copied().zip(ends);
    turns.map(|(begin, end)| begin..end).collect()
}

/// Takes the id from calls of a turn whose id an earlier one has, if there is a result for each.
fn take_repeated(turn: &mut [IdUse]) {
    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    for one in turn.iter().filter(|one| one.owner == IdOwner::Result) {
        if let Some(id) = &one.id {
            *results.entry(id.clone()).or_default() += 1;
        }
    }
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for one in turn.iter_mut().filter(|one| one.owner == IdOwner::Call) {
        let Some(id) = &one.id else {
            continue;
        };
        let earlier = calls.entry(id.clone()).or_default();
        if *earlier > 0 && results.get(id).is_some_and(|results| results > earlier) {
            one.id = None;
            one.is_repeated = true;
        }
        *earlier += 1;
    }
}

fn assign(all: &mut [IdUse], form: &dyn WireForm) {
    let in_lists = matches!(form.id_place(IdOwner::Result), IdPlace::List(..));
    let ids = |owner: IdOwner| {
        let of = all.iter().filter(move |one| one.owner == owner);
        of.filter_map(|one| one.id.clone()).collect::<BTreeSet<_>>()
    };
    let (call_ids, result_ids) = (ids(IdOwner::Call), ids(IdOwner::Result));
    let mut taken: BTreeSet<String> = call_ids.union(&result_ids).cloned().collect();
    for turn in turns(all) {
        let turn = all.get_mut(turn).unwrap_or_default();
        let mut named: BTreeSet<String> = BTreeSet::new();
        for one in turn.iter_mut().filter(|one| one.owner == IdOwner::Result) {
            one.is_repeated = one.id.clone().is_some_and(|id| !named.insert(id));
        }
        if !in_order(turn, &call_ids, &result_ids, &mut taken) {
            as_they_wait(turn, &call_ids, &result_ids, &mut taken);
        }
        for one in turn.iter_mut().filter(|one| one.id.is_none()) {
            // A result in a separate message is left without an id.
            if in_lists {
                one.id = Some(spare(one, &mut taken));
            }
        }
    }
}

/// Returns `true` if a result names an unknown call. It is treated as a result without an id.
fn is_unknown(one: &IdUse, call_ids: &BTreeSet<String>) -> bool {
    let id = one.id.as_ref().filter(|_| !one.is_repeated);
    one.owner == IdOwner::Result && id.is_some_and(|id| !call_ids.contains(id))
}

/// Pairs the calls of a turn with its results in their order.
///
/// Does so only if the number of results without a call equals the number of calls without an id, and
/// nothing else in the turn is unpaired.
fn in_order(
    turn: &mut [IdUse],
    call_ids: &BTreeSet<String>,
    result_ids: &BTreeSet<String>,
    taken: &mut BTreeSet<String>,
) -> bool {
    let calls = turn.iter().filter(|one| one.owner == IdOwner::Call);
    let mut waiting = calls.filter(|one| one.id.as_ref().is_none_or(|id| !result_ids.contains(id)));
    let is_open = |one: &&mut IdUse| {
        one.owner == IdOwner::Result
            && (one.id.is_none() || one.is_repeated || is_unknown(one, call_ids))
    };
    let nameless = waiting.clone().filter(|one| one.id.is_none()).count();
    let is_named = waiting.any(|one| one.id.is_some());
    let results = turn.iter_mut().filter(|one| is_open(one));
    let known = results.map(|one| one.id.clone().filter(|_| !one.is_repeated));
    let mut known: VecDeque<Option<String>> = known.collect();
    if is_named || known.len() != nameless {
        return false;
    }
    let mut assigned: VecDeque<String> = VecDeque::new();
    let calls = turn.iter_mut().filter(|one| one.owner == IdOwner::Call);
    for call in calls.filter(|one| one.id.is_none()) {
        let id = known.pop_front().flatten();
        let id = id.unwrap_or_else(|| spare(call, taken));
        assigned.push_back(id.clone());
        call.id = Some(id);
    }
    for result in turn.iter_mut().filter(is_open) {
        result.id = assigned.pop_front().or(result.id.take());
    }
    true
}

/// Gives the calls of a turn the ids that its results name, and the remaining results the remaining
/// calls.
fn as_they_wait(
    turn: &mut [IdUse],
    call_ids: &BTreeSet<String>,
    result_ids: &BTreeSet<String>,
    taken: &mut BTreeSet<String>,
) {
    let unknown = turn.iter().filter(|one| is_unknown(one, call_ids));
    let mut unknown: VecDeque<String> = unknown.filter_map(|one| one.id.clone()).collect();
    let mut open: VecDeque<String> = VecDeque::new();
    let mut spares: BTreeSet<String> = BTreeSet::new();
    for one in turn.iter_mut() {
        match (one.owner, &one.id) {
            (IdOwner::Call, Some(id)) if !result_ids.contains(id) => open.push_back(id.clone()),
            (IdOwner::Call, None) => {
                let id = unknown.pop_front().unwrap_or_else(|| {
                    let id = spare(one, taken);
                    open.push_back(id.clone());
                    spares.insert(id.clone());
                    id
                });
                one.id = Some(id);
            }
            _ => {}
        }
    }
    for one in turn.iter_mut().filter(|one| one.id.is_none()) {
        one.id = open.pop_front();
    }
    // A repeated result does not belong to a call that had an id.
    open.retain(|id| spares.contains(id));
    let repeated = |one: &&mut IdUse| one.owner == IdOwner::Result && one.is_repeated;
    for one in turn.iter_mut().filter(repeated) {
        one.id = open.pop_front().or(one.id.take());
    }
}

/// Creates an id from the position.
fn spare(one: &IdUse, taken: &mut BTreeSet<String>) -> String {
    let mut id = format!("call_{}_{}", one.entry, one.nth);
    while !taken.insert(id.clone()) {
        id.push('_');
    }
    id
}

/// Returns the entry with the missing ids. `None` if none is missing.
fn with_ids(
    entry: &LenientEntry<'_>,
    uses: &[IdUse],
    form: &dyn WireForm,
    notes: &mut Notes,
) -> Option<String> {
    let whole = object(&entry.raw)?;
    let mut changed = false;
    let mut give = |object: &RawObject<'_>, one: Option<&IdUse>, key: &str| {
        let one = one?;
        let id = one
            .id
            .as_deref()
            .filter(|id| text(object.get(key)).as_deref() != Some(*id))?;
        let done = match one.owner {
            IdOwner::Call if one.is_repeated => {
                format!("gave its call the id `{id}`: another call had its id before it")
            }
            IdOwner::Call => format!("gave its call the id `{id}`: it had none"),
            IdOwner::Result if one.is_repeated => {
                format!("took it for the result of `{id}`: another had its id before it")
            }
            IdOwner::Result => format!("took it for the result of `{id}`: it named no call"),
        };
        note(notes, entry.place.clone(), done);
        changed = true;
        Some(object.with(&[(key, Some(quoted(id)))]))
    };
    let first = uses.first()?;
    let (key, id_key) = match form.id_place(first.owner) {
        IdPlace::Entry(key) => return give(&whole, Some(first), key),
        IdPlace::List(key, id_key) => (key, id_key),
    };
    let mut uses = uses.iter();
    let list = whole.get(key).and_then(list)?.into_iter().map(|raw| {
        let block = object(raw)?;
        let id_key = id_key(block.get("type"))?;
        give(&block, uses.next(), id_key)
    });
    let list: Vec<Option<String>> = list.collect();
    let raws = whole.get(key).and_then(super::list)?.into_iter().zip(list);
    let raws: Vec<String> = raws
        .map(|(raw, new)| new.unwrap_or_else(|| raw.to_owned()))
        .collect();
    let list = format!("[{}]", raws.join(","));
    changed.then(|| whole.with(&[(key, Some(list))]))
}
