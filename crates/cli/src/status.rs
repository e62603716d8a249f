//! [`RunStatus`]: the status line of a run, with the gauge of its context.

use plimsoll::{Money, Tokens};

use crate::outcome::is_worth_telling;
use crate::terminal::text::SEPARATOR;

/// Width of the gauge, in cells.
const GAUGE: u64 = 12;

/// The state that the status line shows.
#[derive(Debug, Default)]
pub(crate) struct RunStatus {
    /// The number of the turn, from 1.
    pub(crate) turn: u64,
    /// Tokens of the current request.
    pub(crate) tokens: Tokens,
    /// Tokens at which a plan is due.
    pub(crate) trigger: Option<Tokens>,
    /// The model's window, in tokens.
    pub(crate) window: Option<Tokens>,
    /// The cost so far, if it is known.
    pub(crate) cost: Option<Money>,
    /// The current activity; empty if there is none.
    pub(crate) doing: String,
}

impl RunStatus {
    /// Formats the status line, for example:
    ///
    /// `turn 4 │ ███████░░░┊░ 1812 of 3000 tokens │ $0.0012 │ the model reads`
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![format!("turn {}", self.turn.max(1))];
        parts.push(match self.window {
            Some(window) => {
                let gauge = gauge(self.tokens, self.trigger, window, GAUGE);
                format!("{gauge} {} of {window} tokens", self.tokens)
            }
            None => format!("{} tokens", self.tokens),
        });
        if let Some(cost) = self.cost.filter(|cost| is_worth_telling(*cost)) {
            parts.push(cost.to_string());
        }
        if !self.doing.is_empty() {
            parts.push(self.doing.clone());
        }
        parts.join(SEPARATOR)
    }
}

/// Draws a gauge of so many cells, filled up to the current tokens, with a mark at the trigger.
pub(crate) fn gauge(tokens: Tokens, trigger: Option<Tokens>, window: Tokens, cells: u64) -> String {
    let cell = |tokens: Tokens| tokens.0.saturating_mul(cells) / window.0.max(1);
    let filled = cell(tokens);
    let mark = trigger.map(cell);
    let cells = (0..cells).map(|at| match at {
        _ if at < filled => '█',
        _ if mark == Some(at) => '┊',
        _ => '░',
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_fits_a_terminal_of_80_columns() {
        let status = RunStatus {
            turn: 12,
            tokens: Tokens(80_000),
            trigger: Some(Tokens(150_000)),
            window: Some(Tokens(200_000)),
            cost: Some(Money(12_345_000)),
            doing: "the model writes".to_owned(),
        };
        let line = status.line();
        assert_eq!(
            line,
            "turn 12 │ ████░░░░░┊░░ 80000 of 200000 tokens │ $0.0123 │ the model writes"
        );
        // Two columns for the spinner, and the last one is left free.
        assert!(line.chars().count() + 2 < 80, "{line}");
    }

    #[test]
    fn the_gauge_shows_fill_and_trigger() {
        let gauge = |tokens, trigger| gauge(Tokens(tokens), trigger, Tokens(1_200), GAUGE);
        assert_eq!(gauge(600, Some(Tokens(900))), "██████░░░┊░░");
        assert_eq!(gauge(9_999, None), "█".repeat(12));
    }
}
