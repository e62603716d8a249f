//! [`RepairAttempt`]: one iteration of repairing a request.
//!
//! Every message keeps its original bytes until the validator rejects it; rejected messages are
//! rendered anew. Validation rules live in the validator, not here.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Part, Repair as TranscriptRepair, repair};
use plimsoll_wire::WireError;
use serde_json::Value;

use super::form::Rewritten;
use super::opaque;
use super::order::as_they_came;
use super::parsed_request::{ParsedRequest, Unit};
use super::patch::without_thinking;
use super::rendered_request::{RenderedRequest, RenderedTurn};
use super::repair::Finding;
use super::{Form, Target};
use crate::fault::{Fault, Rule, all, is_within};

/// The keys beside the list of a history that the validator judges.
const KEYS_OF_HISTORIES: [&str; 5] = ["system", "instructions", "tools", "thinking", "store"];

/// One attempt at a valid request.
pub(super) struct RepairAttempt<'p, 'a> {
    pub(super) request: &'p ParsedRequest<'a>,
    /// Reads the original messages.
    read: &'p dyn Fn() -> Result<Vec<Message>, WireError>,
    /// The messages that lose their thinking.
    pub(super) stripped: BTreeSet<usize>,
    /// The messages after the repair of calls and results.
    pub(super) messages: Vec<RepairedMessage>,
    /// The repairs of calls, results and the provider's own blocks.
    pub(super) findings: Vec<Finding>,
    /// The messages that lost something, by their index in the request.
    pub(super) touched: BTreeSet<usize>,
    pub(super) rendered: RenderedRequest,
    pub(super) turns: Vec<RepairedTurn>,
    /// The number of turns, for each unit, that contain messages from it.
    turns_of: Vec<usize>,
    /// Whether the system prompt beside the messages is rendered anew.
    pub(super) system: bool,
    /// For each entry of the list, the index of its turn.
    turn_at: Vec<usize>,
    /// The faults that are left.
    pub(super) faults: Vec<Fault>,
    /// The request.
    pub(super) text: String,
}

/// A message after the repair of calls and results.
pub(super) struct RepairedMessage {
    /// Its index in the request. `None` for an added message.
    pub(super) origin: Option<usize>,
    pub(super) is_system: bool,
    /// The number of turns that contain parts of the message.
    pub(super) turns: usize,
}

/// A turn of the request.
pub(super) struct RepairedTurn {
    rendered: RenderedTurn,
    /// The units that contain its messages.
    units: Vec<usize>,
    /// How it is written anew. `None` if its units stay.
    pub(super) rewrite: Option<Rewrite>,
}

/// A turn that is written anew.
#[derive(Default)]
pub(super) struct Rewrite {
    /// The fault for which the turn was rejected. `None` if only a part of the turn was removed.
    pub(super) fault: Option<Fault>,
    /// The entries as the protocol renders them, as soon as they are known.
    pub(super) raws: Option<Vec<String>>,
    /// The entries that are written.
    pub(super) entries: Vec<String>,
}

impl<'p, 'a> RepairAttempt<'p, 'a> {
    /// Repairs a request with the messages that `read` returns; those in `stripped` lose their thinking.
    pub(super) fn new(
        request: &'p ParsedRequest<'a>,
        read: &'p dyn Fn() -> Result<Vec<Message>, WireError>,
        messages: Vec<Message>,
        stripped: BTreeSet<usize>,
    ) -> Result<Self, WireError> {
        let prepared = PreparedMessages::of(request, messages, &stripped);
        let mut rendered = prepared.render(request)?;
        rendered.notes.sort_by_key(|(of, _)| *of);
        let turns = std::mem::take(&mut rendered.turns).into_iter();
        // The messages are read again if they are needed again, which is rare.
        let messages = prepared.messages.into_iter().zip(prepared.origins);
        let messages = messages.map(|(message, origin)| RepairedMessage {
            origin,
            is_system: matches!(message, Message::System { .. }),
            turns: 0,
        });
        let mut attempt = Self {
            request,
            read,
            stripped,
            messages: messages.collect(),
            findings: prepared.findings,
            touched: prepared.touched,
            rendered,
            turns: Vec::new(),
            turns_of: vec![0; request.units.len()],
            system: false,
            turn_at: Vec::new(),
            faults: Vec::new(),
            text: String::new(),
        };
        for turn in turns {
            attempt.add(turn);
        }
        attempt.reject_incomplete();
        attempt.settle()?;
        Ok(attempt)
    }

    /// Adds a turn, and counts its messages and units.
    fn add(&mut self, rendered: RenderedTurn) {
        let mut units: Vec<usize> = Vec::new();
        for index in &rendered.from {
            if let Some(message) = self.messages.get_mut(*index) {
                message.turns += 1;
            }
            let unit = self.origin(*index);
            let unit = unit.and_then(|origin| self.request.unit_of(origin));
            units.extend(unit.filter(|unit| !units.contains(unit)));
        }
        for unit in &units {
            if let Some(turns) = self.turns_of.get_mut(*unit) {
                *turns += 1;
            }
        }
        self.turns.push(RepairedTurn {
            rendered,
            units,
            rewrite: None,
        });
    }

    /// Marks turns to be written anew if they do not consist of whole units, and the system prompt if a
    /// message was moved into it.
    fn reject_incomplete(&mut self) {
        let legacy_stays = self.request.units.iter().all(|unit| !unit.legacy)
            || (self.findings.is_empty() && self.touched.is_empty());
        let stays = self
            .turns
            .iter()
            .map(|turn| self.may_stay(turn, legacy_stays));
        let stays: Vec<bool> = stays.collect();
        for (turn, stays) in self.turns.iter_mut().zip(stays) {
            turn.rewrite = (!stays).then(Rewrite::default);
        }
        let moved = self.messages.iter().any(|message| {
            let unit = message
                .origin
                .and_then(|origin| self.request.unit_of(origin));
            unit.is_some() && message.turns == 0 && message.is_system
        });
        self.system = moved && self.target().form().facts().system_key.is_some();
    }

    /// Returns `true` if a turn consists of all messages of its units, in their order.
    fn may_stay(&self, turn: &RepairedTurn, legacy_stays: bool) -> bool {
        let origin = |index: &usize| {
            let message = self.messages.get(*index)?;
            let origin = message
                .origin
                .filter(|origin| !self.touched.contains(origin))?;
            let is_whole = message.turns == 1 && self.request.unit_of(origin).is_some();
            is_whole.then_some(origin)
        };
        let origins: Option<Vec<usize>> = turn.rendered.from.iter().map(origin).collect();
        let units = turn
            .units
            .iter()
            .filter_map(|unit| self.request.units.get(*unit));
        let units: Vec<&Unit<'_>> = units.collect();
        let whole = units.iter().flat_map(|unit| &unit.messages).copied();
        origins.is_some_and(|origins| whole.eq(origins))
            && (legacy_stays || !units.iter().any(|unit| unit.legacy))
    }

    /// Writes rejected turns anew until the validator accepts the rest.
    ///
    /// The validator reports all faults at once, so two or three rounds are usual. Each round writes at
    /// least one kept turn anew, so the number of rounds is at most the number of turns.
    fn settle(&mut self) -> Result<(), WireError> {
        loop {
            self.render_rewrites()?;
            let (entries, turn_at) = self.entries();
            let system = self.rendered.system.as_deref().filter(|_| self.system);
            let system = self.system.then_some(("system", system));
            self.text = self.request.document.with_entries(&entries, system);
            self.turn_at = turn_at;
            self.faults = all(|| judge(&self.text, self.target()));
            let faults = self.of_messages();
            let mut more = false;
            for fault in &faults {
                more |= self.refuse(fault);
            }
            if !more && !faults.is_empty() {
                // Perhaps another turn than the one that the fault names is to blame.
                for turn in 0..self.turns.len() {
                    more |= self.rewrite(turn, faults.first());
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Returns the faults that writing a message anew may cure.
    fn of_messages(&self) -> Vec<Fault> {
        let mut faults = self.faults.clone();
        faults.retain(|fault| self.is_of_messages(fault));
        // If only the request's `thinking` is at fault, which is taken out, no message is to blame (AM9).
        let thinks = faults.iter().any(|fault| fault.rule == Rule::Am9);
        if let Some(without) = thinks.then(|| without_thinking(&self.text)).flatten() {
            let left = all(|| judge(&without, self.target()));
            let left = left.iter().filter(|fault| fault.rule == Rule::Am9);
            let identity = |fault: &Fault| (fault.place.clone(), fault.words.clone());
            let left: BTreeSet<(String, String)> = left.map(identity).collect();
            faults.retain(|fault| fault.rule != Rule::Am9 || left.contains(&identity(fault)));
        }
        faults
    }

    /// Returns `false` for faults of settings, of the size and of breakpoints.
    fn is_of_messages(&self, fault: &Fault) -> bool {
        let mut keys = ["system", self.target().list()].into_iter();
        keys.any(|key| is_within(&fault.place, key)) && fault.rule != Rule::Am11
    }

    /// Writes the turn of a fault anew. Returns `false` if it is already.
    fn refuse(&mut self, fault: &Fault) -> bool {
        if is_within(&fault.place, "system") && self.request.key("system").is_some() {
            return !std::mem::replace(&mut self.system, true);
        }
        let Some(turn) = self.turn_of(fault) else {
            return false;
        };
        let mut more = self.rewrite(turn, Some(fault));
        // A turn without messages only exists because a neighbouring turn needs it.
        for next in [turn.checked_sub(1), turn.checked_add(1)]
            .into_iter()
            .flatten()
        {
            if self
                .turns
                .get(next)
                .is_some_and(|_| self.from(next).is_empty())
            {
                more |= self.rewrite(next, Some(fault));
            }
        }
        more
    }

    fn rewrite(&mut self, turn: usize, fault: Option<&Fault>) -> bool {
        let is_restored = self.target().form().has_items() && fault.is_some();
        let Some(turn) = self.turns.get_mut(turn) else {
            return false;
        };
        match &mut turn.rewrite {
            Some(rewrite) if rewrite.fault.is_some() || !is_restored => return false,
            Some(rewrite) => rewrite.fault = fault.cloned(),
            None => {
                turn.rewrite = Some(Rewrite {
                    fault: fault.cloned(),
                    ..Rewrite::default()
                });
            }
        }
        true
    }

    /// Notes the entries of each turn that is written anew.
    ///
    /// Most turns are kept, so the rendered request is dropped before the list is put together, and
    /// rendered again if more turns are rejected.
    fn render_rewrites(&mut self) -> Result<(), WireError> {
        let is_unknown = |turn: &RepairedTurn| {
            let rewrite = turn.rewrite.as_ref();
            rewrite.is_some_and(|rewrite| rewrite.raws.is_none())
        };
        if self.rendered.is_forgotten() && self.turns.iter().any(is_unknown) {
            let prepared = PreparedMessages::of(self.request, (self.read)()?, &self.stripped);
            self.rendered.remember(prepared.render(self.request)?);
        }
        for turn in &mut self.turns {
            if let Some(rewrite) = &mut turn.rewrite
                && rewrite.raws.is_none()
            {
                rewrite.raws = Some(self.rendered.raws(&turn.rendered));
            }
        }
        self.rendered.forget();
        let entries: Vec<Option<Vec<String>>> = (0..self.turns.len())
            .map(|turn| self.rewritten(turn))
            .collect();
        for (turn, entries) in self.turns.iter_mut().zip(entries) {
            if let (Some(rewrite), Some(entries)) = (&mut turn.rewrite, entries) {
                rewrite.entries = entries;
            }
        }
        Ok(())
    }

    /// Returns the entries of a turn that is written anew.
    fn rewritten(&self, turn: usize) -> Option<Vec<String>> {
        let rewrite = self.turns.get(turn)?.rewrite.as_ref()?;
        let mut from = self
            .from(turn)
            .iter()
            .map(|index| self.messages.get(*index));
        Some(self.target().form().stands_for(&Rewritten {
            units: &self.units_of(turn),
            raws: rewrite.raws.as_deref()?,
            is_only: from.all(|message| message.is_some_and(|message| message.turns == 1)),
            is_unblamed: rewrite.fault.is_none(),
        }))
    }

    /// Returns the entries of the list, and the turn of each.
    fn entries(&self) -> (Vec<&str>, Vec<usize>) {
        let (mut entries, mut turn_at) = (Vec::new(), Vec::new());
        for (index, turn) in self.turns.iter().enumerate() {
            if let Some(rewrite) = &turn.rewrite {
                entries.extend(rewrite.entries.iter().map(String::as_str));
            } else {
                let units = self.units_of(index).into_iter();
                entries.extend(units.flat_map(|unit| &unit.raws).copied());
            }
            turn_at.resize(entries.len(), index);
        }
        (entries, turn_at)
    }

    fn target(&self) -> &'p Target {
        &self.request.target
    }

    /// Returns the index in the request of a repaired message.
    pub(super) fn origin(&self, message: usize) -> Option<usize> {
        self.messages.get(message)?.origin
    }

    /// Returns the messages that a turn contains.
    pub(super) fn from(&self, turn: usize) -> &[usize] {
        let turn = self.turns.get(turn);
        turn.map(|turn| turn.rendered.from.as_slice())
            .unwrap_or_default()
    }

    /// Returns the turn that a fault names, if it names one.
    pub(super) fn turn_of(&self, fault: &Fault) -> Option<usize> {
        let rest = fault.place.strip_prefix(self.target().list())?;
        let rest = rest.strip_prefix(['[', '.'])?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let entry: usize = digits.parse().ok()?;
        self.turn_at.get(entry).copied()
    }

    /// Returns the units that contain messages of a turn.
    pub(super) fn units_of(&self, turn: usize) -> Vec<&'p Unit<'a>> {
        let units = self
            .turns
            .get(turn)
            .into_iter()
            .flat_map(|turn| &turn.units);
        units
            .filter_map(|unit| self.request.units.get(*unit))
            .collect()
    }

    /// Returns the units of a turn if they are kept.
    pub(super) fn kept(&self, turn: usize) -> Option<&[usize]> {
        let turn = self.turns.get(turn)?;
        turn.rewrite.is_none().then_some(turn.units.as_slice())
    }

    /// Returns `true` if no other turn contains messages of the units of a turn.
    pub(super) fn is_whole(&self, turn: usize) -> bool {
        let mut units = self
            .turns
            .get(turn)
            .into_iter()
            .flat_map(|turn| &turn.units);
        units.all(|unit| self.turns_of.get(*unit) == Some(&1))
    }
}

impl RepairedTurn {
    /// Returns the fault for which the turn is written anew.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.rewrite.as_ref()?.fault.as_ref()
    }
}

/// The messages of a request after the repair of calls and results, without blocks that cannot stay.
struct PreparedMessages {
    origins: Vec<Option<usize>>,
    messages: Vec<Message>,
    findings: Vec<Finding>,
    touched: BTreeSet<usize>,
}

impl PreparedMessages {
    fn of(
        request: &ParsedRequest<'_>,
        mut messages: Vec<Message>,
        stripped: &BTreeSet<usize>,
    ) -> Self {
        let target = &request.target;
        let mut touched = BTreeSet::new();
        for index in stripped {
            if messages.get_mut(*index).is_some_and(strip) {
                touched.insert(*index);
            }
        }
        let mut findings = opaque::clean(&mut messages, target, request.is_stored());
        touched.extend(findings.iter().map(|finding| finding.at));
        let repaired = as_they_came(repair(messages));
        for one in &repaired.repairs {
            if let TranscriptRepair::DroppedCall { at, .. } = one {
                touched.insert(*at);
            }
            findings.push(Finding::of(one, target));
        }
        let (origins, messages): (Vec<_>, Vec<_>) = repaired.messages.into_iter().unzip();
        Self {
            origins,
            messages,
            findings,
            touched,
        }
    }

    fn render(&self, request: &ParsedRequest<'_>) -> Result<RenderedRequest, WireError> {
        let model = request.key("model").unwrap_or_default().trim_matches('"');
        RenderedRequest::of(&self.messages, &request.target, model)
    }
}

/// Returns `true` if messages that the validator accepts need no repair. Results that are separated
/// from their calls stay in place if a provider allows it.
pub(super) fn is_whole(request: &ParsedRequest<'_>, mut messages: Vec<Message>) -> bool {
    let fits = opaque::clean(&mut messages, &request.target, request.is_stored()).is_empty();
    let moved = |one: &TranscriptRepair| matches!(one, TranscriptRepair::MovedResult { .. });
    fits && repair(messages).repairs.iter().all(moved)
}

/// Returns the faults of a request. A history is judged as a request with no other keys.
pub(super) fn judge(text: &str, target: &Target) -> Vec<Fault> {
    let mut request: Value = serde_json::from_str(text).unwrap_or_default();
    judge_parsed(&mut request, target)
}

/// Returns the faults of a request. Converts it to the request that is judged.
pub(super) fn judge_parsed(request: &mut Value, target: &Target) -> Vec<Fault> {
    let form = target.form();
    form.wrap(request);
    let history = request.get("model").is_none();
    if let Some(keys) = request.as_object_mut() {
        if history {
            keys.retain(|key, _| key == form.list() || KEYS_OF_HISTORIES.contains(&key.as_str()));
        }
        keys.entry("model").or_insert_with(|| "-".into());
        if let Some((key, value)) = form.required_setting() {
            keys.entry(key).or_insert(value);
        }
    }
    form.validate(request)
}

/// Removes the thinking from a message. Returns `true` if there was any.
fn strip(message: &mut Message) -> bool {
    let Message::Assistant { parts } = message else {
        return false;
    };
    let before = parts.len();
    parts.retain(|part| !matches!(part, Part::Thinking(_)));
    parts.len() < before
}
