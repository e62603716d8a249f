//! [`Attempt`]: one try at a valid request. Every message is kept as it came until the validator
//! says that it cannot stay, and is then written as the wire renders it. So what is valid keeps its
//! bytes, and no rule is known here.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::{Message, Part, Repair as Mended, repair};
use plimsoll_wire::__internals::{Raw, RawObject};
use plimsoll_wire::WireError;
use serde_json::Value;

use super::drawn::Drawn;
use super::form::Rewritten;
use super::given::Given;
use super::order::as_they_came;
use super::own;
use super::patch::without_thinking;
use super::repair::Finding;
use super::target::Target;
use crate::fault::{Fault, Rule, all, is_within};

/// What is said beside the messages, and what that asks for.
const TOLD_BESIDE: [&str; 5] = ["system", "instructions", "tools", "thinking", "store"];

/// One try.
pub(super) struct Attempt<'g, 'a> {
    pub(super) given: &'g Given<'a>,
    /// Reads the messages as they came.
    read: &'g dyn Fn() -> Result<Vec<Message>, WireError>,
    /// The messages that lose their thinking.
    pub(super) stripped: BTreeSet<usize>,
    target: &'g Target,
    /// For each message of the mended transcript, where it was read.
    pub(super) origins: Vec<Option<usize>>,
    /// Whether each message of the mended transcript is a system message.
    pub(super) is_system: Vec<bool>,
    /// What was mended in it.
    pub(super) findings: Vec<Finding>,
    /// Messages that lost something, as they were read.
    pub(super) touched: BTreeSet<usize>,
    pub(super) drawn: Drawn,
    /// For each turn, the units that may stand for it; `None` where none may.
    pub(super) keeps: Vec<Option<Vec<usize>>>,
    /// Which turns are written as they are rendered, and what was wrong with what they were.
    pub(super) written: BTreeMap<usize, Option<Fault>>,
    /// For each turn, the units that it says something of.
    units: Vec<Vec<usize>>,
    /// For each unit, how many turns say something of it.
    turns_of: Vec<usize>,
    /// For each message of the mended transcript, how many turns say it.
    said: Vec<usize>,
    /// Whether the system prompt beside the messages is written anew.
    pub(super) system: bool,
    /// The texts of each turn that is written, as it is rendered.
    pub(super) raws: BTreeMap<usize, Vec<String>>,
    /// What stands for each turn that is not kept as it was.
    pub(super) stands: BTreeMap<usize, Vec<String>>,
    /// Which turn each entry of the list is of.
    turn_at: Vec<usize>,
    /// What is still wrong.
    pub(super) faults: Vec<Fault>,
    /// The request.
    pub(super) text: String,
}

impl<'g, 'a> Attempt<'g, 'a> {
    /// Repairs a request with the messages that `read` returns; those in `stripped` lose their thinking.
    pub(super) fn new(
        given: &'g Given<'a>,
        read: &'g dyn Fn() -> Result<Vec<Message>, WireError>,
        messages: Vec<Message>,
        stripped: BTreeSet<usize>,
    ) -> Result<Self, WireError> {
        let target = &given.target;
        let Prepared {
            origins,
            messages,
            findings,
            touched,
        } = Prepared::of(given, messages, &stripped);
        let is_system = messages
            .iter()
            .map(|message| matches!(message, Message::System { .. }));
        let is_system: Vec<bool> = is_system.collect();
        let mut drawn = Drawn::of(&messages, target, model(given))?;
        drawn.notes.sort_by_key(|(of, _)| *of);
        // They are read again if they are needed again, which is seldom.
        drop(messages);
        let mut attempt = Self {
            given,
            read,
            stripped,
            target,
            origins,
            is_system,
            findings,
            touched,
            drawn,
            keeps: Vec::new(),
            written: BTreeMap::new(),
            units: Vec::new(),
            turns_of: vec![0; given.units.len()],
            said: Vec::new(),
            system: false,
            raws: BTreeMap::new(),
            stands: BTreeMap::new(),
            turn_at: Vec::new(),
            faults: Vec::new(),
            text: String::new(),
        };
        attempt.look();
        attempt.keep_what_may_stay();
        attempt.settle()?;
        Ok(attempt)
    }

    /// The turn in which a fault is, if it is in one.
    pub(super) fn turn_of(&self, fault: &Fault) -> Option<usize> {
        let rest = fault.place.strip_prefix(self.target.list())?;
        let rest = rest.strip_prefix(['[', '.'])?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let entry: usize = digits.parse().ok()?;
        self.turn_at.get(entry).copied()
    }

    /// Returns the request with this list and the keys that it has besides.
    fn compose(&self, list: &[&str]) -> String {
        let key = self.target.list();
        let system = self.drawn.system.as_deref().filter(|_| self.system);
        let list = Raw::List(list);
        match (&self.given.object, system) {
            (Some(object), None) if !self.system => object.with_raw(&[(key, Some(list))]),
            (Some(object), system) => {
                object.with_raw(&[("system", system.map(Raw::Text)), (key, Some(list))])
            }
            (None, Some(system)) => {
                let keys = [("system", Some(Raw::Text(system))), (key, Some(list))];
                RawObject::default().with_raw(&keys)
            }
            (None, None) => list.to_text(),
        }
    }

    /// Which unit, which turn and which message have to do with each other.
    fn look(&mut self) {
        self.said = vec![0; self.origins.len()];
        for turn in &self.drawn.turns {
            let mut units: Vec<usize> = Vec::new();
            for index in &turn.from {
                if let Some(said) = self.said.get_mut(*index) {
                    *said += 1;
                }
                let origin = self.origins.get(*index).copied().flatten();
                let unit = origin.and_then(|at| self.given.unit_of.get(at).copied().flatten());
                if let Some(unit) = unit.filter(|unit| !units.contains(unit)) {
                    units.push(unit);
                }
            }
            for unit in &units {
                if let Some(turns) = self.turns_of.get_mut(*unit) {
                    *turns += 1;
                }
            }
            self.units.push(units);
        }
    }

    /// The units whose bytes may stand for a turn: those whose messages it says, all of them, in
    /// their order, and no others.
    fn keep_what_may_stay(&mut self) {
        let mut messages_of: Vec<Vec<usize>> = vec![Vec::new(); self.given.units.len()];
        for (message, unit) in self.given.unit_of.iter().enumerate() {
            if let Some(list) = unit.and_then(|unit| messages_of.get_mut(unit)) {
                list.push(message);
            }
        }
        let legacy_stays = self.given.units.iter().all(|unit| !unit.legacy)
            || (self.findings.is_empty() && self.touched.is_empty());
        let keep = |from: &[usize]| -> Option<Vec<usize>> {
            let mut units: Vec<usize> = Vec::new();
            let mut origins = Vec::new();
            for index in from {
                let origin = self.origins.get(*index).copied().flatten()?;
                if self.touched.contains(&origin) || self.said.get(*index) != Some(&1) {
                    return None;
                }
                let unit = self.given.unit_of.get(origin).copied().flatten()?;
                if units.last() != Some(&unit) {
                    units.push(unit);
                }
                origins.push(origin);
            }
            let whole = units.iter().filter_map(|unit| messages_of.get(*unit));
            let whole: Vec<usize> = whole.flatten().copied().collect();
            let legacy = |unit: &usize| self.given.units.get(*unit).is_some_and(|u| u.legacy);
            let fits = whole == origins && (legacy_stays || !units.iter().any(legacy));
            fits.then_some(units)
        };
        let keeps = self.drawn.turns.iter().map(|turn| keep(&turn.from));
        self.keeps = keeps.collect();
        for (turn, keep) in self.keeps.iter().enumerate() {
            if keep.is_none() {
                self.written.insert(turn, None);
            }
        }
        // A system message among the others that is said beside them.
        let said_beside = self.origins.iter().enumerate().any(|(index, origin)| {
            let unit = origin.and_then(|origin| self.given.unit_of.get(origin).copied().flatten());
            unit.is_some()
                && self.said.get(index) == Some(&0)
                && self.is_system.get(index) == Some(&true)
        });
        self.system = said_beside && self.target.form().system_key().is_some();
    }

    /// Writes anew what the validator refuses, until it refuses nothing more. It names all faults at a
    /// time, so that two or three rounds are the rule; in each, something is written that was not, so
    /// the messages are the bound.
    fn settle(&mut self) -> Result<(), WireError> {
        loop {
            self.stand()?;
            let (list, turn_at) = self.list();
            self.text = self.compose(&list);
            self.turn_at = turn_at;
            self.faults = all(|| judge(&self.text, self.target));
            let faults = self.of_messages();
            let mut more = false;
            for fault in &faults {
                more |= self.refuse(fault);
            }
            if !more && !faults.is_empty() {
                // Perhaps another than the one that is named is to blame.
                for turn in 0..self.drawn.turns.len() {
                    more |= self.write(turn, faults.first());
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// The faults that writing a message anew may cure.
    fn of_messages(&self) -> Vec<Fault> {
        let mut faults = self.faults.clone();
        faults.retain(|fault| self.is_of_messages(fault));
        // Where it is only the request's `thinking`, which goes, no message is to blame (AM9).
        let thinks = faults.iter().any(|fault| fault.rule == Rule::Am9);
        if let Some(without) = thinks.then(|| without_thinking(&self.text)).flatten() {
            let left = all(|| judge(&without, self.target));
            let left = left.iter().filter(|fault| fault.rule == Rule::Am9);
            let told = |fault: &Fault| (fault.place.clone(), fault.words.clone());
            let left: BTreeSet<(String, String)> = left.map(told).collect();
            faults.retain(|fault| fault.rule != Rule::Am9 || left.contains(&told(fault)));
        }
        faults
    }

    /// Whether writing a message anew may cure a fault: none of settings, of the size or of
    /// breakpoints.
    fn is_of_messages(&self, fault: &Fault) -> bool {
        let mut keys = ["system", self.target.list()].into_iter();
        keys.any(|key| is_within(&fault.place, key)) && fault.rule != Rule::Am11
    }

    /// Writes anew what a fault is about; says whether that is new.
    fn refuse(&mut self, fault: &Fault) -> bool {
        if is_within(&fault.place, "system") && self.given.key("system").is_some() {
            return !std::mem::replace(&mut self.system, true);
        }
        let Some(turn) = self.turn_of(fault) else {
            return false;
        };
        let mut more = self.write(turn, Some(fault));
        // What only makes room stands next to what needs it.
        for next in [turn.checked_sub(1), turn.checked_add(1)] {
            let room = next.filter(|next| {
                let turn = self.drawn.turns.get(*next);
                turn.is_some_and(|turn| turn.from.is_empty())
            });
            more |= room.is_some_and(|next| self.write(next, Some(fault)));
        }
        more
    }

    fn write(&mut self, turn: usize, fault: Option<&Fault>) -> bool {
        let restored = self.target.form().has_items() && fault.is_some();
        match self.written.get(&turn) {
            Some(None) if restored => {}
            Some(_) => return false,
            None => {}
        }
        self.written.insert(turn, fault.cloned());
        true
    }

    /// Whether a turn is written only because something of it is gone.
    fn is_unblamed(&self, turn: usize) -> bool {
        matches!(self.written.get(&turn), Some(None))
    }

    /// Notes what stands for each turn that is written. Most turns never are, so that the rendered
    /// request is dropped before the list is put together, and rendered again if more are.
    fn stand(&mut self) -> Result<(), WireError> {
        let is_unknown = |turn: &&usize| !self.raws.contains_key(*turn);
        let unknown: Vec<usize> = self.written.keys().filter(is_unknown).copied().collect();
        if !unknown.is_empty() && self.drawn.is_forgotten() {
            let prepared = Prepared::of(self.given, (self.read)()?, &self.stripped);
            let again = Drawn::of(&prepared.messages, self.target, model(self.given))?;
            self.drawn.remember(again);
        }
        for turn in unknown {
            let raws = self.drawn.raws(turn);
            self.raws.insert(turn, raws);
        }
        self.drawn.forget();
        let stands = self
            .raws
            .iter()
            .map(|(turn, raws)| (*turn, self.stands_for(*turn, raws)));
        self.stands = stands.collect();
        Ok(())
    }

    /// Returns what stands for a turn that is rendered as `raws`.
    fn stands_for(&self, turn: usize, raws: &[String]) -> Vec<String> {
        let units = self.units_of(turn);
        self.target.form().stands_for(&Rewritten {
            units: &units,
            raws,
            is_only: self.is_only(turn),
            is_unblamed: self.is_unblamed(turn),
        })
    }

    /// Returns the list of the request, and the turn of each entry.
    fn list(&self) -> (Vec<&str>, Vec<usize>) {
        let (mut texts, mut turn_at) = (Vec::new(), Vec::new());
        for turn in 0..self.drawn.turns.len() {
            if let Some(stands) = self.stands.get(&turn) {
                texts.extend(stands.iter().map(String::as_str));
            } else {
                let units = self.units_of(turn).into_iter();
                texts.extend(units.flat_map(|unit| &unit.raws).copied());
            }
            turn_at.resize(texts.len(), turn);
        }
        (texts, turn_at)
    }

    /// The units that a turn says something of.
    pub(super) fn units_of(&self, turn: usize) -> Vec<&'g super::given::Unit<'a>> {
        let units = self.units.get(turn).into_iter().flatten();
        units
            .filter_map(|unit| self.given.units.get(*unit))
            .collect()
    }

    /// Whether a turn says the one unit that it is of, and nothing else does.
    pub(super) fn is_whole(&self, turn: usize) -> bool {
        let units = self.units.get(turn).into_iter().flatten();
        let mut units = units.map(|unit| self.turns_of.get(*unit));
        units.all(|turns| turns == Some(&1))
    }

    /// The messages that a turn says.
    pub(super) fn from(&self, turn: usize) -> &[usize] {
        let turn = self.drawn.turns.get(turn);
        turn.map(|turn| turn.from.as_slice()).unwrap_or_default()
    }

    /// Whether nobody else says what a turn says.
    fn is_only(&self, turn: usize) -> bool {
        let mut from = self.from(turn).iter();
        from.all(|index| self.said.get(*index) == Some(&1))
    }
}

/// The messages of a request, whole and without what cannot stay.
struct Prepared {
    origins: Vec<Option<usize>>,
    messages: Vec<Message>,
    findings: Vec<Finding>,
    touched: BTreeSet<usize>,
}

impl Prepared {
    fn of(given: &Given<'_>, mut messages: Vec<Message>, stripped: &BTreeSet<usize>) -> Self {
        let target = &given.target;
        let mut touched = BTreeSet::new();
        for index in stripped {
            if messages.get_mut(*index).is_some_and(strip) {
                touched.insert(*index);
            }
        }
        let mut findings = own::clean(&mut messages, target, given.is_stored());
        touched.extend(findings.iter().map(|finding| finding.at));
        let mended = as_they_came(repair(messages));
        for one in &mended.repairs {
            if let Mended::DroppedCall { at, .. } = one {
                touched.insert(*at);
            }
            findings.push(Finding::of(one, target));
        }
        let (origins, messages): (Vec<_>, Vec<_>) = mended.messages.into_iter().unzip();
        Self {
            origins,
            messages,
            findings,
            touched,
        }
    }
}

/// Returns the model that a request names.
fn model<'a>(given: &Given<'a>) -> &'a str {
    given.key("model").unwrap_or_default().trim_matches('"')
}

/// Whether nothing has to be repaired in messages that the validator accepts. Results that stand apart
/// from their calls stay there if a provider allows it.
pub(super) fn is_whole(given: &Given<'_>, mut messages: Vec<Message>) -> bool {
    let fits = own::clean(&mut messages, &given.target, given.is_stored()).is_empty();
    let moved = |one: &Mended| matches!(one, Mended::MovedResult { .. });
    fits && repair(messages).repairs.iter().all(moved)
}

/// The faults of a request; a history is judged as if somebody sent it, with no keys but its own.
pub(super) fn judge(text: &str, target: &Target) -> Vec<Fault> {
    let mut request: Value = serde_json::from_str(text).unwrap_or_default();
    judge_parsed(&mut request, target)
}

/// The faults of a request, which is made the one that is judged.
pub(super) fn judge_parsed(request: &mut Value, target: &Target) -> Vec<Fault> {
    let form = target.form();
    form.wrap(request);
    let history = request.get("model").is_none();
    if let Some(keys) = request.as_object_mut() {
        if history {
            // What stands beside it is nobody's setting.
            keys.retain(|key, _| key == form.list() || TOLD_BESIDE.contains(&key.as_str()));
        }
        keys.entry("model").or_insert_with(|| "-".into());
        if let Some((key, value)) = form.required_setting() {
            keys.entry(key).or_insert(value);
        }
    }
    form.validate(request)
}

/// Takes the thinking out of a message; says whether there was any.
fn strip(message: &mut Message) -> bool {
    let Message::Assistant { parts } = message else {
        return false;
    };
    let before = parts.len();
    parts.retain(|part| !matches!(part, Part::Thinking(_)));
    parts.len() < before
}
