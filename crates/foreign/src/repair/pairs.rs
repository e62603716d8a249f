//! [`pair`]: which result answers which call.

use serde_json::Value;

use super::piece::{calls, is_models, kind, output_kind, result};
use crate::chat::Chat;
use plimsoll_wire::Protocol;

/// A call, with the unit of its result.
#[derive(Debug)]
pub(super) struct Call {
    /// The index of its unit.
    pub(super) unit: usize,
    /// Its number within the unit.
    pub(super) nth: usize,
    pub(super) id: Option<String>,
    /// The type of its output. Empty outside of Responses.
    output: &'static str,
    pub(super) result: Option<usize>,
}

/// Returns the calls of a chat, and the results that belong to none. A result belongs to the first open call with its
/// id in the newest turn of the model, otherwise to the last one before; without an id, to the next open call. Outside
/// of Chat Completions, in which ids may be used again, a result that fits no earlier call belongs to a later one.
pub(super) fn pair(chat: &Chat<'_>) -> (Vec<Call>, Vec<usize>) {
    let protocol = chat.protocol;
    let (mut all, mut orphans): (Vec<Call>, Vec<usize>) = Default::default();
    let (mut newest, mut last) = (0, None);
    let units = chat.units.iter().enumerate();
    for (at, unit) in units.filter(|(_, unit)| unit.is_left()) {
        let turn = is_models(protocol, unit).then_some(match protocol {
            Protocol::Chat => at,
            Protocol::Messages => unit.turn,
            Protocol::Responses => 0,
        });
        if turn.is_some() && turn != last {
            newest = all.len();
        }
        last = turn;
        let calls = calls(protocol, unit).into_iter().enumerate();
        all.extend(calls.map(|(nth, id)| Call {
            unit: at,
            nth,
            id,
            output: output_kind(protocol, unit.value()),
            result: None,
        }));
        let Some(id) = result(protocol, unit) else {
            continue;
        };
        let fits = |call: &&mut Call| (id.is_none() || call.id == id) && call.takes(unit.value());
        let (before, of_turn) = all.split_at_mut(newest);
        let of_turn = of_turn.iter_mut().find(fits);
        match of_turn.or_else(|| before.iter_mut().rfind(fits)) {
            Some(call) => call.result = Some(at),
            None => orphans.push(at),
        }
    }
    if protocol != Protocol::Chat {
        orphans.retain(|at| {
            let unit = chat.units.get(*at);
            let id = unit.and_then(|unit| result(protocol, unit)).flatten();
            let fits = |call: &&mut Call| {
                call.id == id && unit.is_some_and(|unit| call.takes(unit.value()))
            };
            let call = all.iter_mut().find(fits).filter(|_| id.is_some());
            call.map(|call| call.result = Some(*at)).is_none()
        });
    }
    (all, orphans)
}

impl Call {
    /// Checks whether the call is open, and an output has its type. Codex answers a local shell as a function, which
    /// the API accepts.
    fn takes(&self, output: &Value) -> bool {
        let is_of_codex = self.output == "local_shell_call_output";
        let is_of_type = self.output.is_empty()
            || kind(output) == self.output
            || is_of_codex && kind(output) == "function_call_output";
        self.result.is_none() && is_of_type
    }
}
