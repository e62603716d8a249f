//! The lines that may stand in a handover besides the user's words.

use foldhash::HashSet;

use super::files::FileRecord;
use super::format::{Section, SectionItem};
use super::names::each_name;
use super::tokens::TokenBudget;
use super::work::Order;

/// The separator between a line and the names in the result of its call.
pub(crate) const NAMES: &str = "; names: ";
/// The separator between a file and names in it.
const NAMES_OF_FILE: &str = ": ";

/// A possible line of the handover.
#[derive(Debug)]
pub(crate) struct Row<'t> {
    /// The position in the transcript, that of the last use.
    pub(crate) order: Order,
    pub(crate) section: Section,
    /// The place within the section of files. The other sections are in the order of the transcript.
    pub(crate) rank: u8,
    pub(crate) text: String,
    /// The number of occurrences.
    pub(crate) times: u32,
    /// The texts in which names for this line are searched, the most important last.
    pub(crate) sources: Vec<&'t str>,
    /// The chosen names.
    names: Vec<String>,
    /// The tokens of the line without names, once they are counted.
    cost: Option<u64>,
    pub(crate) is_kept: bool,
}

impl<'t> Row<'t> {
    pub(crate) fn line(order: Order, text: String) -> Self {
        Self {
            order,
            section: Section::Transcript,
            rank: u8::MAX,
            text,
            times: 1,
            sources: Vec::new(),
            names: Vec::new(),
            cost: None,
            is_kept: false,
        }
    }

    /// Returns a line of a summary by another program.
    pub(crate) fn former(order: Order, text: String) -> Self {
        Self {
            section: Section::Former,
            ..Self::line(order, text)
        }
    }

    /// Returns a line of a section whose first lines matter most.
    pub(crate) fn ranked(section: Section, n: usize, text: String) -> Self {
        Self {
            section,
            ..Self::line((usize::MAX - n, 0), text)
        }
    }

    /// Returns the line of a file.
    pub(crate) fn file(file: FileRecord<'t>) -> Self {
        let line = Self::line(file.last, file.words());
        Self {
            section: Section::Files,
            rank: file.rank(),
            sources: file.sources,
            ..line
        }
    }

    /// Discards the choice.
    pub(crate) fn reset(&mut self) {
        self.is_kept = false;
        self.names.clear();
    }

    /// Keeps the line, if there are enough tokens for it.
    pub(crate) fn keep(
        &mut self,
        heading: u64,
        known: &mut HashSet<String>,
        budget: &mut TokenBudget<'_>,
    ) {
        let cost = match self.cost {
            Some(cost) => cost,
            None => budget.count(&self.item().written()),
        };
        self.cost = Some(cost);
        self.is_kept = budget.spend_tokens(heading + cost);
        if self.is_kept {
            each_name(&self.text, &mut |name| {
                known.insert(name.to_owned());
                true
            });
        }
    }

    /// Adds names that are not `known` yet, until there are `most`.
    pub(crate) fn add_names(
        &mut self,
        most: usize,
        known: &mut HashSet<String>,
        budget: &mut TokenBudget<'_>,
    ) {
        for source in self.sources.iter().rev() {
            each_name(source, &mut |name| {
                if self.names.len() >= most || budget.is_spent() {
                    return false;
                }
                if known.contains(name) {
                    return true;
                }
                let separator = match self.section {
                    _ if !self.names.is_empty() => ", ",
                    Section::Files => NAMES_OF_FILE,
                    _ => NAMES,
                };
                if budget.spend(&format!("{separator}{name}")) {
                    known.insert(name.to_owned());
                    self.names.push(name.to_owned());
                }
                true
            });
        }
    }

    /// Returns the line as an item.
    pub(crate) fn item(&self) -> SectionItem {
        let mut text = self.text.clone();
        if self.times > 1 {
            text.push_str(&format!(" (×{})", self.times));
        }
        if !self.names.is_empty() {
            let is_file = self.section == Section::Files;
            text.push_str(if is_file { NAMES_OF_FILE } else { NAMES });
            text.push_str(&self.names.join(", "));
        }
        SectionItem::note(text)
    }
}
