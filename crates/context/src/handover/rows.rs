//! The entries that may stand in a handover: the user's words, and lines about the work.

use super::format::Section;

/// A position in the transcript: a text, and a line in it.
pub(crate) type Order = (usize, usize);

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
    /// The number of earlier occurrences.
    pub(crate) repeated: u32,
    /// The texts with names for this line, the most important last. An object in JSON stands for its
    /// values.
    pub(crate) sources: Vec<&'t str>,
}

impl Row<'_> {
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
}
