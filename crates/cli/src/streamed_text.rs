//! [`StreamedText`]: the model's text as it arrives, so that the end of a run prints only the text
//! that was not printed before.

use plimsoll::machine::Outcome;

/// The text of a run.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    /// Text of the current turn.
    turn: String,
    /// The last complete text.
    said: String,
}

impl StreamedText {
    /// Adds a piece of text to the turn.
    pub(crate) fn push(&mut self, text: &str) {
        self.turn.push_str(text);
    }

    /// Discards the text of the turn. Returns `true` if there was any.
    pub(crate) fn discard(&mut self) -> bool {
        let had_text = !self.turn.is_empty();
        self.turn.clear();
        had_text
    }

    /// Completes the text of the turn, and returns it unless it is blank.
    pub(crate) fn complete(&mut self) -> Option<&str> {
        let text = std::mem::take(&mut self.turn);
        if text.trim().is_empty() {
            return None;
        }
        self.said = text;
        Some(&self.said)
    }

    /// Ends the run. Returns any text that it adds to the model's answer or gives instead of it,
    /// behind the gap if there was a text before.
    pub(crate) fn rest(&mut self, outcome: &Outcome, gap: &str) -> Option<String> {
        let said = std::mem::take(&mut self.said);
        let rest = outcome.text.strip_prefix(said.trim());
        let rest = rest.unwrap_or(&outcome.text).trim();
        let answered = outcome.reason.is_answer() || outcome.reason.is_limit();
        let gap = if said.is_empty() { "" } else { gap };
        (answered && !rest.is_empty()).then(|| format!("{gap}{rest}"))
    }
}
