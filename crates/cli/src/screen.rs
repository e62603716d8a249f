//! What a run shows of itself, in words: its status line, and texts cut to one line. Where that is
//! written is decided by [`Paper`](crate::chat::paper::Paper).

use std::fmt::Display;

use console::measure_text_width;
use plimsoll::{Money, Tokens, Usage};

use crate::chat::paper::clean;
use crate::outcome::about;

/// A tool's arguments or result on one line, at most.
const LINE: usize = 100;
/// Characters of a word that is left out of a line whole, at most; a longer one is cut.
const LONGEST_CUT: usize = 15;
/// What stands between the parts of a line.
pub(crate) const SEPARATOR: &str = " │ ";
/// Columns of a line that is made of parts, at most: it fits the narrowest usual terminal, whose last
/// column is left free.
const COLUMNS: usize = 79;
/// Cells of the context gauge.
const GAUGE: u64 = 12;

/// What the status line of a run shows.
#[derive(Debug, Default)]
pub(crate) struct RunStatus {
    /// The number of the turn.
    pub(crate) turn: u64,
    /// Tokens that are sent.
    pub(crate) tokens: Tokens,
    /// Tokens at which a plan is due.
    pub(crate) trigger: Option<Tokens>,
    /// The model's window.
    pub(crate) window: Option<Tokens>,
    /// Usage that the provider did not report.
    pub(crate) estimated: Usage,
    /// The cost so far, if it is known.
    pub(crate) cost: Option<Money>,
    /// What is under way.
    pub(crate) doing: String,
}

impl RunStatus {
    /// turn 4 │ ████████░░┊░ 1812 of 3000 tokens │ $0.0012 │ the model reads
    pub(crate) fn line(&self) -> String {
        let mut parts = vec![format!("turn {}", self.turn.max(1))];
        parts.push(match self.window {
            Some(window) => {
                let gauge = gauge(self.tokens, self.trigger, window);
                format!("{gauge} {} of {window} tokens", self.tokens)
            }
            None => format!("{} tokens", self.tokens),
        });
        if let Some(cost) = self.cost {
            parts.push(format!("{}{cost}", about(self.estimated)));
        }
        if !self.doing.is_empty() {
            parts.push(self.doing.clone());
        }
        parts.join(SEPARATOR)
    }
}

/// Joins parts to lines that fit a terminal of 80 columns. A part is never broken.
pub(crate) fn lines_of(parts: &[String]) -> String {
    let mut lines = String::new();
    let mut columns = 0;
    for part in parts {
        let separator = measure_text_width(SEPARATOR);
        let wide = measure_text_width(part);
        match columns {
            0 => columns = wide,
            _ if columns + separator + wide <= COLUMNS => {
                lines.push_str(SEPARATOR);
                columns += separator + wide;
            }
            _ => {
                lines.push('\n');
                columns = wide;
            }
        }
        lines.push_str(part);
    }
    lines
}

/// Filled up to what is sent, with a mark where a plan is due.
fn gauge(tokens: Tokens, trigger: Option<Tokens>, window: Tokens) -> String {
    let cell = |tokens: Tokens| tokens.0.saturating_mul(GAUGE) / window.0.max(1);
    let filled = cell(tokens);
    let mark = trigger.map(cell);
    (0..GAUGE)
        .map(|at| match at {
            _ if at < filled => '█',
            _ if mark == Some(at) => '┊',
            _ => '░',
        })
        .collect()
}

/// The first words on one line, without what a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    let text = clean(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let Some((end, _)) = line.char_indices().nth(LINE) else {
        return line;
    };
    let cut = line.get(..end).unwrap_or_default();
    // Ends behind a word if one ends near.
    match cut.rsplit_once(' ') {
        Some((words, last)) if last.chars().count() <= LONGEST_CUT => format!("{words} …"),
        _ => format!("{cut}…"),
    }
}

/// Returns a number with its noun: 1 turn, 2 turns, 2 entries.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix("ry") {
        Some(stem) => format!("{count} {stem}ries"),
        None => format!("{count} {noun}s"),
    }
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
            ..RunStatus::default()
        };
        let line = status.line();
        assert_eq!(
            line,
            "turn 12 │ ████░░░░░┊░░ 80000 of 200000 tokens │ $0.0123 │ the model writes"
        );
        // Two columns for the spinner, and the last is left free.
        assert!(line.chars().count() + 2 < 80, "{line}");
    }

    #[test]
    fn the_gauge_shows_fill_and_trigger() {
        assert_eq!(
            gauge(Tokens(600), Some(Tokens(900)), Tokens(1_200)),
            "██████░░░┊░░"
        );
        assert_eq!(gauge(Tokens(9_999), None, Tokens(1_200)), "█".repeat(12));
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(1_u64, "turn"), "1 turn");
        assert_eq!(counted(0_usize, "tool call"), "0 tool calls");
        assert_eq!(counted(2_u64, "entry"), "2 entries");
    }

    #[test]
    fn long_text_is_one_short_line() {
        assert_eq!(one_line("a\n b\t c"), "a b c");
        assert_eq!(one_line("a\u{1b}[2Jb\r\n c"), "a\u{fffd}[2Jb c");
        assert_eq!(one_line(&"x".repeat(200)).chars().count(), LINE + 1);
        let words = format!("{} is there anything?", "x".repeat(90));
        assert_eq!(one_line(&words), format!("{} is there …", "x".repeat(90)));
    }
}
