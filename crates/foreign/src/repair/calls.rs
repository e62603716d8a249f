//! The fix-ups `ids`, `orphans`, `unanswered`, `order` and `hosted`: every call has an id of its own and one
//! result, directly behind its turn, and every result has a call.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::ops::Range;

use plimsoll_wire::__internals::anthropic::{OpenCalls, calls_server, named_caller};
use plimsoll_wire::__internals::is_word;
use plimsoll_wire::openai_chat::CallIds;
use plimsoll_wire::{CallIdForm, CallIdMap, Target};

use super::piece::{
    calls, closing, is_models, kind, output_kind, result, set, set_call_id, set_result_id, text,
};
use super::{Patient, Repair};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::unit::{Role, Unit};

/// A call, with the unit of its result.
#[derive(Debug)]
struct Call {
    /// The index of its unit.
    unit: usize,
    /// Its number within the unit.
    nth: usize,
    id: Option<String>,
    result: Option<usize>,
}

/// The calls of a chat, and the results that belong to none.
#[derive(Debug, Default)]
struct Pairs {
    calls: Vec<Call>,
    orphans: Vec<usize>,
}

/// Gives every call an id, drops results without a call, closes calls without a result, and moves results
/// that do not stand directly behind their call, if the protocol requires that.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    let protocol = patient.protocol();
    let mut found = pairs(patient.chat);
    patient.fix = "ids";
    rename(patient, &mut found.calls);
    patient.fix = "orphans";
    for at in found.orphans {
        let id = patient.left(at).and_then(|unit| result(protocol, unit));
        let id = id.flatten().unwrap_or_default();
        let why = format!("this result answers no open call `{id}`; dropped it");
        patient.remove(at, why);
    }
    patient.fix = "unanswered";
    let open: Vec<&Call> = found
        .calls
        .iter()
        .filter(|one| one.result.is_none())
        .collect();
    let mut added = Added::default();
    let mut turns = Turns::of(patient.chat);
    for call in open {
        close(patient, call, &mut turns, &mut added);
    }
    patient.fix = "order";
    let is_free = protocol == Protocol::Responses;
    // Responses only requires that a result stands behind its call.
    let is_wrong = |call: &Call| !is_free || call.result < Some(call.unit);
    move_late(
        patient,
        found.calls.iter().filter(|call| is_wrong(call)),
        &mut turns,
        &mut added,
    );
    added.insert_into(patient.chat);
    if protocol == Protocol::Messages {
        patient.fix = "hosted";
        hosted(patient);
    }
}

/// Moves every result directly behind the turn of its call, also if the protocol does not require that.
pub(crate) fn order(chat: &mut Chat<'_>, target: &Target) -> Vec<Repair> {
    let mut patient = Patient::new(chat, target);
    patient.fix = "order";
    let found = pairs(patient.chat);
    let mut turns = Turns::of(patient.chat);
    let mut added = Added::default();
    move_late(&mut patient, found.calls.iter(), &mut turns, &mut added);
    added.insert_into(patient.chat);
    patient.repairs
}

/// Gives ids to calls without one, to the second of two calls with one id, and to calls whose id has a form
/// that the server refuses, together with their results.
fn rename(patient: &mut Patient<'_, '_>, calls: &mut [Call]) {
    let protocol = patient.protocol();
    let rule = IdRule::of(patient.target);
    let mut taken: HashSet<(usize, String)> = HashSet::new();
    // The number of the next new id from a seed.
    let mut numbers: HashMap<(usize, String), usize> = HashMap::new();
    for call in calls {
        let scope = if rule.is_per_message {
            call.unit + 1
        } else {
            0
        };
        let own = call.id.take().filter(|id| rule.accepts(id));
        let is_free = |id: &str| !taken.contains(&(scope, id.to_owned()));
        let id = match own {
            Some(id) if is_free(&id) => id,
            own => {
                let seed = own.unwrap_or_else(|| format!("call_{}_{}", call.unit, call.nth));
                let number = numbers.entry((scope, seed.clone())).or_insert(1);
                let id = rule.new_id(&seed, number, is_free);
                patient.edit(call.unit, format!("gave a call the id `{id}`"), |value| {
                    set_call_id(protocol, value, call.nth, &id);
                });
                id
            }
        };
        if let Some(at) = call.result
            && let Some(unit) = patient.left(at)
            && result(protocol, unit) != Some(Some(id.clone()))
        {
            patient.edit(
                at,
                format!("gave the result of a call the id `{id}`"),
                |value| {
                    set_result_id(protocol, value, &id);
                },
            );
        }
        retype(patient, call);
        taken.insert((scope, id.clone()));
        call.id = Some(id);
    }
}

/// Gives the output of a call of Responses the type that the call requires, if both are texts. Codex answers a
/// local shell as a function, which the API accepts.
fn retype(patient: &mut Patient<'_, '_>, call: &Call) {
    let of = |at: usize| patient.left(at).map(|unit| unit.value());
    let (Some(asked), Some(at)) = (of(call.unit), call.result) else {
        return;
    };
    let wanted = output_kind(patient.protocol(), asked);
    let is_right = match of(at).map_or("", kind) {
        "function_call_output" if wanted == "local_shell_call_output" => true,
        own => own == wanted || wanted.is_empty(),
    };
    if !is_right {
        patient.edit(at, format!("changed its type to `{wanted}`"), |value| {
            set(value, "type", wanted);
        });
    }
}

/// Adds a result to a call without one.
fn close(patient: &mut Patient<'_, '_>, call: &Call, turns: &mut Turns, added: &mut Added<'_>) {
    let protocol = patient.protocol();
    let Some(unit) = patient.left(call.unit) else {
        return;
    };
    let id = call.id.clone().unwrap_or_default();
    let Some(value) = closing(protocol, unit.value(), &id) else {
        patient.remove(call.unit, format!("call `{id}` has no result; dropped it"));
        return;
    };
    let done = format!("call `{id}` has no result; closed it as aborted");
    patient.note(call.unit, done);
    let role = match protocol {
        Protocol::Messages => Role::User,
        Protocol::Chat | Protocol::Responses => Role::Own,
    };
    let (at, turn) = added.place(patient.chat, turns, call);
    added
        .units
        .insert((at, call.unit, call.nth), Unit::inserted(role, turn, value));
}

/// Takes results that do not stand directly behind the turn of their call, to be added there. In Messages
/// they come first in the next message of the user.
fn move_late<'a, 'c>(
    patient: &mut Patient<'_, 'a>,
    calls: impl Iterator<Item = &'c Call>,
    turns: &mut Turns,
    added: &mut Added<'a>,
) {
    for call in calls {
        let Some(at) = call.result else { continue };
        if turns.answers(patient.chat, call.unit).range.contains(&at) {
            continue;
        }
        let (before, turn) = added.place(patient.chat, turns, call);
        let id = call.id.as_deref().unwrap_or_default();
        patient.note(at, format!("moved this result to its call `{id}`"));
        let Some(unit) = patient.chat.units.get_mut(at) else {
            continue;
        };
        // Its place stays in the list as that of a removed unit.
        let gone = unit.without_content();
        let mut unit = mem::replace(unit, gone);
        if patient.chat.protocol == Protocol::Messages {
            unit.turn = turn;
        }
        added.units.insert((before, call.unit, call.nth), unit);
    }
}

/// Units that are added behind the turns of their calls.
#[derive(Default)]
struct Added<'a> {
    /// The units, by the index before which they belong, and by their call.
    units: BTreeMap<(usize, usize, usize), Unit<'a>>,
    /// The messages of results that had none, by the index before which they belong.
    turns: HashMap<usize, usize>,
}

impl<'a> Added<'a> {
    /// Returns the index before which the result of a call belongs, and the number of its message.
    fn place(&mut self, chat: &mut Chat<'_>, turns: &mut Turns, call: &Call) -> (usize, usize) {
        let answers = turns.answers(chat, call.unit);
        let before = answers.range.end;
        let new = || *self.turns.entry(before).or_insert_with(|| chat.new_turn());
        (before, answers.turn.unwrap_or_else(new))
    }

    fn insert_into(self, chat: &mut Chat<'a>) {
        let mut added = self.units.into_iter().peekable();
        if added.peek().is_none() {
            return;
        }
        let old = mem::take(&mut chat.units);
        for (at, unit) in old.into_iter().enumerate() {
            while let Some((_, new)) = added.next_if(|((before, ..), _)| *before <= at) {
                chat.units.push(new);
            }
            chat.units.push(unit);
        }
        chat.units.extend(added.map(|(_, unit)| unit));
    }
}

/// The number of the turn of each unit. Items of the model that follow each other are one turn.
struct Turns {
    numbers: Vec<usize>,
    answers: HashMap<usize, Answers>,
}

/// The results directly behind a turn of the model.
#[derive(Clone)]
struct Answers {
    range: Range<usize>,
    /// The number of their message in Messages, if it exists.
    turn: Option<usize>,
}

impl Turns {
    fn of(chat: &Chat<'_>) -> Self {
        let (mut number, mut last) = (0, None);
        let units = chat.units.iter().enumerate();
        let numbers = units.map(|(at, unit)| {
            let key = match chat.protocol {
                Protocol::Messages => (unit.turn, unit.role == Role::Own),
                Protocol::Responses if is_models(chat.protocol, unit) => (usize::MAX, true),
                Protocol::Chat | Protocol::Responses => (at, false),
            };
            if unit.is_left() && last.replace(key).is_some_and(|last| last != key) {
                number += 1;
            }
            number
        });
        Self {
            numbers: numbers.collect(),
            answers: HashMap::new(),
        }
    }

    /// Returns the results that directly follow the turn of a unit, as they were when first asked for.
    fn answers(&mut self, chat: &Chat<'_>, unit: usize) -> Answers {
        let number = self.numbers.get(unit).copied().unwrap_or_default();
        let start = self.numbers.partition_point(|turn| *turn <= number);
        let answers = self.answers.entry(number);
        answers
            .or_insert_with(|| Answers::from(start, chat))
            .clone()
    }
}

impl Answers {
    /// Returns the results that begin at a unit.
    fn from(start: usize, chat: &Chat<'_>) -> Self {
        let (mut range, mut turn) = (start..start, None);
        let rest = chat.units.iter().enumerate().skip(start);
        for (at, unit) in rest.filter(|(_, unit)| unit.is_left()) {
            if chat.protocol == Protocol::Messages
                && (unit.role != Role::User || *turn.get_or_insert(unit.turn) != unit.turn)
            {
                break;
            }
            if result(chat.protocol, unit).is_none() {
                break;
            }
            range.end = at + 1;
        }
        Self { range, turn }
    }
}

/// Removes calls of the provider's own tools without a result, and results without such a call.
fn hosted(patient: &mut Patient<'_, '_>) {
    let mut waiting: OpenCalls<usize> = OpenCalls::default();
    let mut gone: Vec<(usize, &str)> = Vec::new();
    let mut open: Option<usize> = None;
    let units = patient.chat.units.iter().enumerate();
    for (at, unit) in units.filter(|(_, unit)| unit.is_left()) {
        let (value, is_answer) = (unit.value(), unit.role == Role::Assistant);
        let begins = open.replace(unit.turn) != Some(unit.turn);
        if begins && is_answer {
            waiting.turn();
        }
        match kind(value) {
            "tool_result" if !is_answer && begins => waiting.answered(),
            "tool_result" if !is_answer => {}
            _ if !is_answer => waiting.other_message(),
            kind if calls_server(kind) => waiting.call(text(value, "id"), at),
            "tool_use" => waiting.host_call(named_caller(value)),
            kind if !kind.ends_with("_tool_result") => waiting.other(),
            _ if waiting.result(text(value, "tool_use_id")) => {}
            _ => gone.push((at, "nothing asked for it")),
        }
    }
    gone.extend(waiting.refused().map(|(_, at)| (*at, "it has no result")));
    gone.sort_unstable();
    for (at, why) in gone {
        let block = patient.left(at).map(|unit| kind(unit.value()).to_owned());
        let block = block.unwrap_or_default();
        patient.remove(at, format!("left out its block `{block}`: {why}"));
    }
}

/// The ids that a server accepts.
struct IdRule {
    form: CallIdForm,
    /// The maximum length, in characters.
    longest: usize,
    /// Whether an id may be used again in another message.
    is_per_message: bool,
}

impl IdRule {
    fn of(target: &Target) -> Self {
        let (form, longest, is_per_message) = match target {
            Target::Chat(dialect) => match dialect.call_ids {
                CallIds::NineAlphanumeric => (CallIdForm::NineAlphanumeric, usize::MAX, true),
                CallIds::Visible => (CallIdForm::Visible, 40, true),
            },
            Target::Responses(_) => (CallIdForm::Visible, 64, false),
            Target::Messages(_) => (CallIdForm::Word, usize::MAX, false),
        };
        Self {
            form,
            longest,
            is_per_message,
        }
    }

    fn accepts(&self, id: &str) -> bool {
        let fits = match self.form {
            CallIdForm::Visible => !id.is_empty(),
            CallIdForm::Word => is_word(id),
            CallIdForm::NineAlphanumeric => self.form.accepts(id),
        };
        fits && id.chars().count() <= self.longest
    }

    fn new_id(&self, seed: &str, number: &mut usize, is_free: impl Fn(&str) -> bool) -> String {
        loop {
            let name = match *number {
                1 => seed.to_owned(),
                number => format!("{seed}_{number}"),
            };
            *number += 1;
            let id = CallIdMap::new(self.form).call(&name).into_owned();
            if is_free(&id) {
                return id;
            }
        }
    }
}

/// Finds the result of each call: the first open call with its id in the newest turn of the model, otherwise
/// the last one before. A result without an id belongs to the next call that waits for one.
fn pairs(chat: &Chat<'_>) -> Pairs {
    let protocol = chat.protocol;
    let mut pairs = Pairs::default();
    let mut open: HashMap<(Option<String>, &str), Vec<usize>> = HashMap::new();
    let mut newest = 0;
    let mut last = None;
    let units = chat.units.iter().enumerate();
    for (at, unit) in units.filter(|(_, unit)| unit.is_left()) {
        let turn = is_models(protocol, unit).then_some(match protocol {
            Protocol::Chat => at,
            Protocol::Messages => unit.turn,
            Protocol::Responses => 0,
        });
        if turn.is_some() && turn != last {
            newest = pairs.calls.len();
        }
        last = turn;
        let output = pairing_kind(output_kind(protocol, unit.value()));
        for (nth, id) in calls(protocol, unit).into_iter().enumerate() {
            let call = pairs.calls.len();
            // A call without an id is found under an empty one.
            for id in [None, Some(id.clone().unwrap_or_default())] {
                open.entry((id, output)).or_default().push(call);
            }
            pairs.calls.push(Call {
                unit: at,
                nth,
                id,
                result: None,
            });
        }
        let Some(id) = result(protocol, unit) else {
            continue;
        };
        let output = match protocol {
            Protocol::Responses => pairing_kind(kind(unit.value())),
            Protocol::Chat | Protocol::Messages => "",
        };
        let mut key = (id, output);
        let is_lost = !open.contains_key(&key);
        if is_lost {
            // It names a call that does not exist, perhaps one of this turn that lost its id.
            key.0 = Some(String::new());
        }
        let waiting = open.get_mut(&key);
        let waiting = waiting.filter(|calls| !is_lost || calls.iter().any(|call| *call >= newest));
        let call = waiting.and_then(|waiting| take(waiting, newest, &pairs.calls));
        match call.and_then(|call| pairs.calls.get_mut(call)) {
            Some(call) => call.result = Some(at),
            None => pairs.orphans.push(at),
        }
    }
    // Chat Completions may use an id again, so there a result never belongs to a later call.
    if protocol != Protocol::Chat {
        pair_early(&mut pairs, chat);
    }
    pairs
}

/// Checks whether an output of Responses can get the type that a call requires: both are texts, or alike.
fn may_answer(wanted: &str, own: &str) -> bool {
    const TEXTS: [&str; 2] = ["function_call_output", "custom_tool_call_output"];
    let (wanted, own) = (pairing_kind(wanted), pairing_kind(own));
    wanted == own || (TEXTS.contains(&wanted) && TEXTS.contains(&own))
}

/// Pairs results with calls behind them.
fn pair_early(pairs: &mut Pairs, chat: &Chat<'_>) {
    let calls = pairs.calls.iter().enumerate();
    let open = calls.filter(|(_, call)| call.result.is_none());
    let open = open.filter_map(|(at, call)| Some((call.id.clone()?, at)));
    let open: HashMap<String, usize> = open.collect();
    let Pairs { calls, orphans } = pairs;
    orphans.retain(|at| {
        let unit = chat.units.get(*at);
        let id = unit.and_then(|unit| result(chat.protocol, unit)).flatten();
        let call = id.and_then(|id| calls.get_mut(*open.get(&id)?));
        let wanted = |call: &Call| {
            let asked = chat.units.get(call.unit)?;
            Some(output_kind(chat.protocol, asked.value()))
        };
        let own = unit.map_or("", |unit| kind(unit.value()));
        let fits = |call: &Call| {
            chat.protocol != Protocol::Responses
                || wanted(call).is_some_and(|wanted| may_answer(wanted, own))
        };
        match call.filter(|call| call.result.is_none() && fits(call)) {
            Some(call) => {
                call.result = Some(*at);
                false
            }
            None => true,
        }
    });
}

/// Returns the kind by which an output of Responses is paired with its call. An output of another tool of the
/// caller gets the kind of its call.
fn pairing_kind(output: &str) -> &str {
    match output {
        "local_shell_call_output" | "custom_tool_call_output" => "function_call_output",
        other => other,
    }
}

/// Takes the call that a result answers.
fn take(waiting: &mut Vec<usize>, newest: usize, calls: &[Call]) -> Option<usize> {
    waiting.retain(|call| calls.get(*call).is_some_and(|call| call.result.is_none()));
    let at = waiting.partition_point(|call| *call < newest);
    if at < waiting.len() {
        Some(waiting.remove(at))
    } else {
        waiting.pop()
    }
}
