//! [`Pairs`]: which result answers which call.

use std::collections::HashMap;
use std::mem;

use super::piece::{calls, is_models, kind, output_kind, result};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::unit::Unit;

/// The outputs of Responses that are texts. Each can become another one of them.
const TEXTS: [&str; 3] = [
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
];

/// A call, with the unit of its result.
#[derive(Debug)]
pub(super) struct Call {
    /// The index of its unit.
    pub(super) unit: usize,
    /// Its number within the unit.
    pub(super) nth: usize,
    pub(super) id: Option<String>,
    /// The type of its output. Empty outside of Responses.
    pub(super) output: &'static str,
    pub(super) result: Option<usize>,
}

/// The calls of a chat, and the results that belong to none.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) calls: Vec<Call>,
    pub(super) orphans: Vec<usize>,
    /// The calls that may be open, by their ids. Those without one are found under an empty id.
    by_id: HashMap<String, Vec<usize>>,
    /// All calls that may be open.
    open: Vec<usize>,
}

impl Pairs {
    /// Finds the call of each result: the first open one with its id in the newest turn of the model, otherwise
    /// the last one before. A result without an id belongs to the next call that waits for one.
    pub(super) fn of(chat: &Chat<'_>) -> Self {
        let protocol = chat.protocol;
        let mut pairs = Self::default();
        let (mut newest, mut last) = (0, None);
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
            for (nth, id) in calls(protocol, unit).into_iter().enumerate() {
                let call = pairs.calls.len();
                let own = pairs.by_id.entry(id.clone().unwrap_or_default());
                own.or_default().push(call);
                pairs.open.push(call);
                pairs.calls.push(Call {
                    unit: at,
                    nth,
                    id,
                    output: output_kind(protocol, unit.value()),
                    result: None,
                });
            }
            if let Some(id) = result(protocol, unit) {
                pairs.answer(protocol, at, unit, id.as_deref(), newest);
            }
        }
        // Chat Completions may use an id again, so there a result never belongs to a later call.
        if protocol != Protocol::Chat {
            for at in mem::take(&mut pairs.orphans) {
                let unit = chat.units.get(at);
                let id = unit.and_then(|unit| result(protocol, unit)).flatten();
                match (unit, id.filter(|id| pairs.by_id.contains_key(id))) {
                    (Some(unit), Some(id)) => pairs.answer(protocol, at, unit, Some(&id), 0),
                    _ => pairs.orphans.push(at),
                }
            }
        }
        pairs
    }

    /// Gives a result to its call, or adds it to the orphans.
    fn answer(
        &mut self,
        protocol: Protocol,
        at: usize,
        unit: &Unit<'_>,
        id: Option<&str>,
        newest: usize,
    ) {
        let own = match protocol {
            Protocol::Responses => kind(unit.value()),
            Protocol::Chat | Protocol::Messages => "",
        };
        let is_known = id.is_none_or(|id| self.by_id.contains_key(id));
        let waiting = match id {
            None => Some(&mut self.open),
            Some(id) if is_known => self.by_id.get_mut(id),
            // It names a call that does not exist, perhaps one of this turn that lost its id.
            Some(_) => self.by_id.get_mut(""),
        };
        let calls = &mut self.calls;
        let call = waiting.and_then(|waiting| {
            waiting.retain(|call| calls.get(*call).is_some_and(|call| call.result.is_none()));
            let fits = |call: &&usize| calls.get(**call).is_some_and(|call| call.may_have(own));
            let of_turn = waiting.partition_point(|call| *call < newest);
            let (before, of_turn) = waiting.split_at_checked(of_turn)?;
            let before = before.iter().rfind(fits).filter(|_| is_known);
            of_turn.iter().find(fits).or(before).copied()
        });
        match call.and_then(|call| calls.get_mut(call)) {
            Some(call) => call.result = Some(at),
            None => self.orphans.push(at),
        }
    }
}

impl Call {
    /// Checks whether an output of this type can be the result: it has the right one, or can get it.
    fn may_have(&self, own: &str) -> bool {
        self.output == own || (TEXTS.contains(&self.output) && TEXTS.contains(&own))
    }
}
