//! The user's words: which of them are kept, and where. Always as they were said, in the order in
//! which they were said; words that a later one updated are gone (`stale.rs`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::cues::{self, Rule};
use super::layout::{GAP, Section};
use super::pieces::{normal, pieces};
use super::purse::Purse;
use super::stale::{Told, stale};

/// A message of at most so many bytes is kept whole or not at all; longer ones go sentence by
/// sentence where there is no room for the whole.
const SHORT: usize = 400;
/// Nobody writes more sentences into one message by hand: what is behind is a dump, in which no rule
/// and no value is looked for.
const BY_HAND: usize = 4_000;
/// Short messages are as good as equally short within so many bytes.
const LINE: usize = 100;
/// A long message is kept whole if it takes at most this share of the room, in percent.
const WHOLE: u64 = 50;
/// What the sign for left-out words weighs, at most.
const GAP_COST: u64 = 2;
/// A sentence of fewer characters says little by itself.
const PHRASE: usize = 20;

/// What the user said, and what of it is kept.
#[derive(Debug, Default)]
pub(super) struct Said {
    messages: Vec<Utterance>,
}

#[derive(Debug)]
struct Utterance {
    text: String,
    pieces: Vec<Piece>,
    kept: Kept,
    /// What its kept pieces cost.
    paid: u64,
    is_former_rule: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    No,
    Rule,
    Whole,
    Pieces,
}

#[derive(Debug)]
struct Piece {
    at: Range<usize>,
    rule: Option<Rule>,
    /// Kept among the rules, kept with its message, or not kept.
    kept: Option<Section>,
    is_stale: bool,
    /// How often it stands in all that the user said; none where it stands earlier.
    times: u32,
    is_machine: bool,
}

impl Said {
    /// Of messages in order, each with whether it stood among the rules of a former extract.
    pub(super) fn of(texts: Vec<(String, Standing)>) -> Self {
        // Said again is said last.
        let mut seen = HashSet::new();
        let mut last: Vec<(String, Standing)> = texts
            .into_iter()
            .rev()
            .filter(|(text, _)| !text.trim().is_empty() && seen.insert(normal(text)))
            .collect();
        last.reverse();
        let mut messages = Vec::with_capacity(last.len());
        let mut told = Vec::new();
        for (text, standing) in last {
            let (utterance, values) = Utterance::of(text.trim().to_owned(), standing);
            let m = messages.len();
            told.extend(values.into_iter().map(|(n, one)| ((m, n), one)));
            messages.push(utterance);
        }
        for (m, n) in stale(told) {
            let piece = messages
                .get_mut(m)
                .and_then(|one: &mut Utterance| one.pieces.get_mut(n));
            if let Some(piece) = piece {
                piece.is_stale = true;
            }
        }
        count_again(&mut messages);
        Self { messages }
    }

    /// Keeps nothing again.
    pub(super) fn reset(&mut self) {
        for message in &mut self.messages {
            message.kept = Kept::No;
            message.paid = 0;
            message
                .pieces
                .iter_mut()
                .for_each(|piece| piece.kept = None);
        }
    }

    /// All that is kept or could be, to see whether a value still stands anywhere.
    pub(super) fn live(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(|message| {
            let live = message.pieces.iter().filter(|piece| !piece.is_stale);
            live.map(|piece| message.text_of(piece))
        })
    }

    /// What was updated later.
    pub(super) fn stale(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flat_map(|message| {
            let stale = message.pieces.iter().filter(|piece| piece.is_stale);
            stale.map(|piece| message.text_of(piece))
        })
    }

    /// Spends on short messages with a rule in them, the strong ones first and of those the newest.
    pub(super) fn spend_on_rules(&mut self, purse: &mut Purse<'_>) {
        let mut found = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if message.is_short() && message.kept == Kept::No {
                let live = message.pieces.iter().filter(|piece| !piece.is_stale);
                let strength = live.filter_map(|piece| piece.rule).max();
                let strength = strength.max(message.is_former_rule.then_some(Rule::Weak));
                found.extend(strength.map(|strength| (strength, m)));
            }
        }
        found.sort_by_key(|found| std::cmp::Reverse(*found));
        for (_, m) in found {
            if purse.is_spent() {
                break;
            }
            if let Some(message) = self.messages.get_mut(m)
                && purse.pay(&Section::Rules.item(&message.live()))
            {
                message.kept = Kept::Rule;
            }
        }
    }

    /// Spends on the strong rules in long messages that are not kept whole. In a long text "use" and
    /// "keep" are everywhere; there they are no rules.
    pub(super) fn spend_on_inner_rules(&mut self, purse: &mut Purse<'_>) {
        for message in self.messages.iter_mut().rev() {
            if !message.is_open() {
                continue;
            }
            for n in (0..message.pieces.len()).rev() {
                if purse.is_spent() {
                    return;
                }
                let Some((text, piece)) = message.piece_mut(n) else {
                    continue;
                };
                let is_rule = piece.rule > Some(Rule::Weak) && piece.is_fresh();
                if !is_rule || piece.kept.is_some() {
                    continue;
                }
                let cost = purse.weigh(&Section::Rules.item(text.trim()));
                if purse.pay_tokens(cost) {
                    piece.kept = Some(Section::Rules);
                    message.paid += cost;
                }
            }
        }
    }

    /// Spends on short messages: those of one line first, and of each size the newest, so the room
    /// holds many.
    pub(super) fn spend_on_short(&mut self, purse: &mut Purse<'_>) {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if message.is_short() && message.kept == Kept::No {
                found.push((message.text.len() / LINE, m));
            }
        }
        found.sort_by_key(|(size, m)| (*size, std::cmp::Reverse(*m)));
        for (_, m) in found {
            if purse.is_spent() {
                break;
            }
            if let Some(message) = self.messages.get_mut(m) {
                let text = message.live();
                if text.is_empty() || purse.pay(&Section::Said.item(&text)) {
                    message.kept = Kept::Whole;
                }
            }
        }
    }

    /// Spends on long messages that fit whole, the shorter ones first.
    pub(super) fn spend_on_whole(&mut self, purse: &mut Purse<'_>) {
        let mut long: Vec<usize> = (0..self.messages.len()).collect();
        long.retain(|m| self.messages.get(*m).is_some_and(Utterance::is_open));
        long.sort_by_key(|m| self.messages.get(*m).map(|message| message.text.len()));
        for m in long {
            let Some(message) = self.messages.get_mut(m) else {
                continue;
            };
            let room = purse.of_share() * WHOLE / 100 + message.paid;
            // Even a very dense counter takes a token for a dozen bytes: no need to count those.
            if message.text.len() as u64 / 12 > room {
                break;
            }
            let cost = purse.weigh(&Section::Said.item(&message.live()));
            if cost <= room && purse.pay_tokens(cost.saturating_sub(message.paid)) {
                message.kept = Kept::Whole;
                message.paid = cost;
            }
        }
    }

    /// Spends on sentences of the others, by what they are worth for their length.
    pub(super) fn spend_on_pieces(&mut self, purse: &mut Purse<'_>) {
        let newest = self.messages.len().max(1) as f64;
        let mut found: Vec<(f64, usize, usize)> = Vec::new();
        for (m, message) in self.messages.iter().enumerate() {
            if !message.is_open() {
                continue;
            }
            let last = message.pieces.len().saturating_sub(1);
            for (p, piece) in message.pieces.iter().enumerate() {
                if piece.kept.is_some() || !piece.is_fresh() {
                    continue;
                }
                let text = message.text_of(piece).trim();
                let mut worth = f64::from(piece.times).powf(0.8);
                worth *= if text.chars().count() < PHRASE {
                    0.2
                } else {
                    1.0
                };
                worth *= if piece.is_machine { 0.6 } else { 1.0 };
                worth *= if piece.rule.is_some() { 1.6 } else { 1.0 };
                // What a text opens and closes with says most of it.
                worth *= if p == 0 || p == last { 3.0 } else { 1.0 };
                worth *= 1.0 + 0.5 * (m as f64 / newest);
                let cost = text.len() as f64 / 4.0 + 3.0;
                found.push((worth / cost, m, p));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, m, p) in found {
            if purse.is_spent() {
                break;
            }
            let Some(message) = self.messages.get_mut(m) else {
                continue;
            };
            let first = message.kept == Kept::No;
            let Some((text, piece)) = message.piece_mut(p) else {
                continue;
            };
            let cost = purse.weigh(text) + GAP_COST + if first { 2 } else { 0 };
            if purse.pay_tokens(cost) {
                piece.kept = Some(Section::Said);
                message.kept = Kept::Pieces;
                message.paid += cost;
            }
        }
    }

    /// The items of rules and of the rest, in the order in which they were said.
    pub(super) fn items(&self) -> (Vec<String>, Vec<String>) {
        let (mut rules, mut rest) = (Vec::new(), Vec::new());
        for message in &self.messages {
            match message.kept {
                Kept::Rule => rules.push(message.live()),
                Kept::Whole => rest.push(message.live()),
                // What is kept whole needs no sentence of it twice.
                Kept::Pieces | Kept::No => {
                    for piece in &message.pieces {
                        if piece.kept == Some(Section::Rules) {
                            rules.push(message.text_of(piece).trim().to_owned());
                        }
                    }
                    rest.push(message.joined(|piece| piece.kept == Some(Section::Said)));
                }
            }
        }
        rest.retain(|text| !text.is_empty());
        rules.retain(|text| !text.is_empty());
        (rules, rest)
    }
}

/// Where a message stood before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    New,
    /// Among the rules of a former extract.
    Rule,
}

impl Utterance {
    /// With what its sentences say of values.
    fn of(text: String, standing: Standing) -> (Self, Vec<(usize, Told)>) {
        let mut found = Vec::new();
        let mut values = Vec::new();
        for (n, at) in pieces(&text).into_iter().enumerate() {
            let piece = text.get(at.clone()).unwrap_or_default();
            let is_machine = n >= BY_HAND || cues::is_machine(piece);
            let mut rule = None;
            if !is_machine {
                let told = Told::of(piece);
                let is_stated = told.as_ref().is_some_and(Told::is_stated);
                rule = cues::rule(piece).max(is_stated.then_some(Rule::Value));
                values.extend(told.map(|told| (n, told)));
            }
            found.push(Piece {
                at,
                rule,
                kept: None,
                is_stale: false,
                times: 1,
                is_machine,
            });
        }
        let utterance = Self {
            text,
            pieces: found,
            kept: Kept::No,
            paid: 0,
            is_former_rule: standing == Standing::Rule,
        };
        (utterance, values)
    }

    fn text_of(&self, piece: &Piece) -> &str {
        self.text.get(piece.at.clone()).unwrap_or_default()
    }

    fn piece_mut(&mut self, n: usize) -> Option<(&str, &mut Piece)> {
        let piece = self.pieces.get_mut(n)?;
        Some((self.text.get(piece.at.clone())?, piece))
    }

    fn is_short(&self) -> bool {
        self.text.len() <= SHORT
    }

    /// Whether more of it could be kept, sentence by sentence.
    fn is_open(&self) -> bool {
        !self.is_short() && matches!(self.kept, Kept::No | Kept::Pieces)
    }

    /// All of it that is not stale.
    fn live(&self) -> String {
        if self.pieces.iter().all(|piece| !piece.is_stale) {
            return self.text.clone();
        }
        self.joined(|piece| !piece.is_stale)
    }

    /// The pieces that are wanted, with a sign where others were left out.
    fn joined(&self, wanted: impl Fn(&Piece) -> bool) -> String {
        let mut joined = String::new();
        let mut gap = false;
        for piece in &self.pieces {
            if !wanted(piece) {
                gap = true;
                continue;
            }
            if std::mem::take(&mut gap) {
                let end = joined.trim_end().len();
                let blanks = joined.split_off(end);
                if end > 0 {
                    joined.push(' ');
                }
                joined.push(GAP);
                joined.push_str(if blanks.contains('\n') { "\n" } else { " " });
            }
            joined.push_str(self.text_of(piece));
        }
        let end = joined.trim_end().len();
        joined.truncate(end);
        if gap && end > 0 {
            joined.push(' ');
            joined.push(GAP);
        }
        joined
    }
}

impl Piece {
    fn is_fresh(&self) -> bool {
        !self.is_stale && self.times > 0
    }
}

/// Notes of each sentence of long messages how often it stands in all of them, and that it is one
/// that stands earlier.
fn count_again(messages: &mut [Utterance]) {
    // Of each text, in the order in which they first stand, how often it stands.
    let mut number: HashMap<String, usize> = HashMap::new();
    let mut times: Vec<u32> = Vec::new();
    let mut order = Vec::new();
    for message in messages.iter().filter(|message| !message.is_short()) {
        for piece in &message.pieces {
            let next = times.len();
            let n = *number.entry(normal(message.text_of(piece))).or_insert(next);
            if n == next {
                times.push(0);
            }
            if let Some(times) = times.get_mut(n) {
                *times += 1;
            }
            order.push(n);
        }
    }
    let long = messages.iter_mut().filter(|message| !message.is_short());
    let pieces = long.flat_map(|message| message.pieces.iter_mut());
    for (piece, n) in pieces.zip(order) {
        // All at the first of them.
        piece.times = times.get_mut(n).map_or(0, std::mem::take);
    }
}
