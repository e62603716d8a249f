//! The fix-up `ids`: every call has an id of its own, in the form that the server accepts, and its result
//! names it. Also finds out which result belongs to which call.

use std::collections::{HashMap, HashSet};

use plimsoll_wire::openai_chat::CallIds;
use plimsoll_wire::{CallIdForm, CallIdMap, Target};

use super::Patient;
use super::piece::{calls, is_models, output_kind, result, set_call_id, set_result_id};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::unit::Unit;

/// A call, with the unit of its result.
#[derive(Debug)]
pub(super) struct Call {
    /// The index of its unit.
    pub(super) unit: usize,
    /// Its number within the unit.
    nth: usize,
    pub(super) id: Option<String>,
    pub(super) result: Option<usize>,
}

/// The calls of a chat, and the results that belong to none.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) calls: Vec<Call>,
    pub(super) orphans: Vec<usize>,
}

/// Gives ids to calls without one, to the second of two calls with one id, and to calls whose id has a form
/// that the server refuses, together with their results.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    let protocol = patient.protocol();
    let rule = IdRule::of(patient.target);
    let mut taken: HashSet<(usize, String)> = HashSet::new();
    for call in pairs(patient.chat).calls {
        let scope = if rule.is_unique_in_message {
            call.unit + 1
        } else {
            0
        };
        let old = call.id.filter(|id| rule.accepts(id));
        if let Some(id) = &old
            && taken.insert((scope, id.clone()))
        {
            name_call(patient, call.result, id);
            continue;
        }
        let seed = old.unwrap_or_else(|| format!("call_{}_{}", call.unit, call.nth));
        let id = rule.new_id(&seed, |id| taken.contains(&(scope, id.to_owned())));
        if let Some(unit) = patient.chat.units.get_mut(call.unit) {
            set_call_id(protocol, unit.edit(), call.nth, &id);
        }
        patient.note(call.unit, format!("gave a call the id `{id}`"));
        name_call(patient, call.result, &id);
        taken.insert((scope, id));
    }
}

/// Lets a result name its call.
fn name_call(patient: &mut Patient<'_, '_>, at: Option<usize>, id: &str) {
    let protocol = patient.protocol();
    let unit = at.and_then(|at| Some((at, patient.chat.units.get_mut(at)?)));
    if let Some((at, unit)) = unit
        && result(protocol, unit) != Some(Some(id.to_owned()))
    {
        set_result_id(protocol, unit.edit(), id);
        patient.note(at, format!("gave the result of a call the id `{id}`"));
    }
}

/// The ids that a server accepts.
struct IdRule {
    form: CallIdForm,
    /// The maximum length, in bytes.
    longest: usize,
    is_any: bool,
    /// Whether an id may be used again in another message.
    is_unique_in_message: bool,
}

impl IdRule {
    fn of(target: &Target) -> Self {
        let rule = |form, longest| Self {
            form,
            longest,
            is_any: form == CallIdForm::Visible,
            is_unique_in_message: false,
        };
        match target {
            Target::Chat(dialect) => Self {
                is_unique_in_message: true,
                ..match dialect.call_ids {
                    CallIds::NineAlphanumeric => rule(CallIdForm::NineAlphanumeric, usize::MAX),
                    CallIds::Visible => rule(CallIdForm::Visible, 40),
                }
            },
            Target::Responses(_) => rule(CallIdForm::Visible, 64),
            Target::Messages(_) => rule(CallIdForm::Word, usize::MAX),
        }
    }

    fn accepts(&self, id: &str) -> bool {
        let is_word = |id: &str| {
            let mut bytes = id.bytes();
            bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        let fits = match self.form {
            CallIdForm::Word => is_word(id),
            form => self.is_any || form.accepts(id),
        };
        !id.is_empty() && id.chars().count() <= self.longest && fits
    }

    fn new_id(&self, seed: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let mut number = 1;
        let mut seed = seed.to_owned();
        loop {
            let id = CallIdMap::new(self.form).call(&seed).into_owned();
            if !is_taken(&id) {
                return id;
            }
            number += 1;
            seed = format!("{seed}_{number}");
        }
    }
}

/// Finds the result of each call: the first open call with its id in the newest turn of the model, otherwise
/// the last one before. A result without an id belongs to the next call that waits for one.
pub(super) fn pairs(chat: &Chat<'_>) -> Pairs {
    let protocol = chat.protocol;
    let mut pairs = Pairs::default();
    let mut open: HashMap<(Option<String>, &str), Vec<usize>> = HashMap::new();
    let mut newest = 0;
    let mut last = None;
    for (at, unit) in chat
        .units
        .iter()
        .enumerate()
        .filter(|(_, unit)| unit.is_left())
    {
        let turn = is_models(protocol, unit).then(|| turn(protocol, at, unit));
        if turn.is_some() && turn != last {
            newest = pairs.calls.len();
        }
        last = turn;
        let output = output_kind(protocol, unit.value());
        for (nth, id) in calls(protocol, unit).into_iter().enumerate() {
            let call = Call {
                unit: at,
                nth,
                id,
                result: None,
            };
            open.entry((call.id.clone(), output))
                .or_default()
                .push(pairs.calls.len());
            if call.id.is_some() {
                open.entry((None, output))
                    .or_default()
                    .push(pairs.calls.len());
            }
            pairs.calls.push(call);
        }
        let Some(id) = result(protocol, unit) else {
            continue;
        };
        let output = match protocol {
            Protocol::Responses => super::piece::kind(unit.value()),
            _ => "",
        };
        let waiting = open.get_mut(&(id, output));
        let call = waiting.and_then(|waiting| take(waiting, newest, &pairs.calls));
        match call.and_then(|call| pairs.calls.get_mut(call)) {
            Some(call) => call.result = Some(at),
            None => pairs.orphans.push(at),
        }
    }
    pairs
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

/// Returns a number that is the same for the units of one turn of the model.
fn turn(protocol: Protocol, at: usize, unit: &Unit<'_>) -> usize {
    match protocol {
        Protocol::Chat => at,
        Protocol::Messages => unit.turn,
        Protocol::Responses => 0,
    }
}
