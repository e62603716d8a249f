//! The entries that may stand in a handover: the user's words, and lines about the work.

use foldhash::HashSet;
use serde_json::Value;

use super::DENSE;
use super::format::{Section, SectionItem};
use super::names::each_name;
use super::sentences::clip;
use super::tokens::TokenBudget;
use super::words::is_in;
use super::work::Order;

/// The separator between a line and the names in the result of its call.
pub(crate) const NAMES: &str = "; names: ";
/// The separator between a file and names in it.
const NAMES_OF_FILE: &str = ": ";

/// The maximum number of texts in which names for a line are searched.
const SOURCES_MAX: usize = 8;

/// The length up to which a text is read as JSON, in bytes.
const JSON_MAX: usize = 100_000;

/// The number of names beside a line, and whether numbers of lines are among them.
pub(crate) type NameLimit = (usize, bool);

/// A possible entry of the handover.
#[derive(Debug, Default)]
pub(crate) struct Row<'t> {
    /// The position in the transcript, that of the last use.
    pub(crate) order: Order,
    pub(crate) section: Section,
    /// The place within the section of files. The other sections are in the order of the transcript.
    pub(crate) rank: u8,
    pub(crate) text: String,
    /// Whether it contains the user's words, and whether they answer a question.
    pub(crate) is_user: bool,
    pub(crate) is_answer: bool,
    /// The kept part of the user's words, if they are too long.
    part: Option<String>,
    /// The number of earlier occurrences.
    pub(crate) repeated: u32,
    /// The texts with names for this line, the most important last. An object in JSON stands for its
    /// values.
    pub(crate) sources: Vec<&'t str>,
    /// The chosen names.
    names: Vec<String>,
    /// The tokens of the whole entry without names, once they are counted.
    cost: Option<u64>,
    /// The spent tokens, without those for names.
    spent: u64,
    pub(crate) is_kept: bool,
}

impl<'t> Row<'t> {
    pub(crate) fn new(section: Section, order: Order, text: String) -> Self {
        Self {
            order,
            section,
            text,
            ..Self::default()
        }
    }

    /// Returns the line `n` of a section whose first lines matter most.
    pub(crate) fn ranked(section: Section, n: usize, text: String) -> Self {
        Self::new(section, (usize::MAX - n, 0), text)
    }

    /// Discards the choice. Returns the tokens that were spent for it.
    pub(crate) fn reset(&mut self) -> u64 {
        self.is_kept = false;
        self.part = None;
        self.names.clear();
        std::mem::take(&mut self.spent)
    }

    /// Returns the tokens of the whole entry without names.
    pub(crate) fn cost(&mut self, budget: &TokenBudget<'_>) -> u64 {
        let cost = self.cost;
        let cost = cost.unwrap_or_else(|| budget.count(&self.item().written()));
        self.cost = Some(cost);
        cost
    }

    /// Keeps the entry if there are enough tokens for it.
    pub(crate) fn keep(&mut self, budget: &mut TokenBudget<'_>) {
        // Even a very dense counter has a token for a dozen bytes.
        let is_far = self.text.len() as u64 / DENSE > budget.share;
        if self.is_kept || is_far {
            return;
        }
        let cost = self.cost(budget);
        if budget.spend(cost) {
            (self.is_kept, self.spent) = (true, cost);
        }
    }

    /// Keeps a part of the user's words, for which `spent` tokens were spent.
    pub(crate) fn keep_part(&mut self, part: String, spent: u64) {
        (self.is_kept, self.part, self.spent) = (true, Some(part), spent);
    }

    /// Adds names that are not `known` yet, up to a limit.
    pub(crate) fn add_names(
        &mut self,
        (most, with_lines): NameLimit,
        known: &mut HashSet<String>,
        budget: &mut TokenBudget<'_>,
    ) {
        let first = self.separator();
        let mut tell = |name: &str| {
            if self.names.len() >= most || budget.is_spent() {
                return false;
            }
            let separator = if self.names.is_empty() { first } else { ", " };
            if !known.contains(name) && budget.spend(budget.count(&format!("{separator}{name}"))) {
                known.insert(name.to_owned());
                self.names.push(name.to_owned());
            }
            true
        };
        for source in self.sources.iter().rev().take(SOURCES_MAX) {
            match serde_json::from_str(clip(source, JSON_MAX)) {
                Ok(value @ Value::Object(_)) => each_name_in(&value, with_lines, &mut tell),
                _ => each_name(source, with_lines, &mut tell),
            }
        }
    }

    /// Returns the separator before the names.
    fn separator(&self) -> &'static str {
        if self.section == Section::Files {
            NAMES_OF_FILE
        } else {
            NAMES
        }
    }

    /// Returns the kept entry as an item.
    pub(crate) fn item(&self) -> SectionItem {
        let mut text = self.part.as_ref().unwrap_or(&self.text).clone();
        if self.repeated > 0 && !self.is_user {
            text.push_str(&format!(" (×{})", self.repeated.saturating_add(1)));
        }
        if !self.names.is_empty() {
            text.push_str(self.separator());
            text.push_str(&self.names.join(", "));
        }
        SectionItem::new(self.is_user, &text)
    }
}

/// Calls `tell` with the names in the texts of a value, and with its numbers if `with_lines`.
fn each_name_in(value: &Value, with_lines: bool, tell: &mut dyn FnMut(&str) -> bool) {
    match value {
        Value::String(text) => each_name(text, with_lines, tell),
        Value::Number(number) if with_lines => each_name(&format!("={number}"), true, tell),
        Value::Array(list) => list
            .iter()
            .for_each(|value| each_name_in(value, with_lines, tell)),
        // The line of a file has its path already.
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| !is_in("paths", key))
            .for_each(|(_, value)| each_name_in(value, with_lines, tell)),
        _ => {}
    }
}
