//! [`Lines`]: cuts the results of the kept turns to a maximum number of lines once a plan is due.
//!
//! Results that the model has not read yet are not changed; [`Cap`](crate::Cap) has already limited
//! them.

use crate::budget::Budget;
use crate::draft::Draft;
use crate::exchange::{Exchange, ExchangeKind};
use crate::message::{Message, Part, ToolResult};
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::stages::sections::{RunStarts, follows_gap};
use crate::tokens::Bytes;
use crate::truncate::{Marker, with_text};

/// The number of bytes from which on a line counts as several lines, because a single line could
/// have any length. It is twice the width of an editor, so hardly a line of code counts twice.
pub const LINE_BYTES: usize = 256;
/// The minimum size of a cut result in bytes, so that not only a marker remains. Smaller results
/// are not cut, regardless of their number of lines.
const LEAST: usize = 160;
/// How often the limit in bytes is lowered until there are few enough lines.
const TRIES: u32 = 12;

/// Cuts the results of the newest turns that the model has read to at most `max` lines, keeping
/// head and tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// The maximum number of lines of one result, including its marker.
    pub max: usize,
    /// The number of turns at the end of the newest run whose results are cut.
    pub of_turns: usize,
    /// The number of turns at the beginning of the newest run whose results are not cut.
    pub after_turns: usize,
}

impl Stage for Lines {
    fn name(&self) -> &str {
        "lines"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if !draft.is_due(budget) {
            return;
        }
        let unsent = draft.first_unsent();
        for at in newest_results(draft, self.of_turns, self.after_turns) {
            if at >= unsent {
                continue;
            }
            let Some((Message::ToolResult(result), _)) = draft.current(at) else {
                continue;
            };
            if let Some(short) = shortened(result, self.max, &draft.marker(at)) {
                draft.shrink(at, short);
            }
        }
    }
}

/// Returns the positions of the results of the newest run's last turns, without its first turns if
/// there are others.
///
/// After a gap or a summary, counting begins anew: the first turns after it were already cut when
/// the messages before them were removed, and the removal must not turn an earlier turn into one of
/// the last.
fn newest_results(draft: &Draft<'_>, of_turns: usize, after_turns: usize) -> Vec<usize> {
    let exchanges = draft.exchanges();
    let begins_anew = |exchange: &Exchange| {
        exchange.kind == ExchangeKind::Summary || follows_gap(draft.items(), exchange.at.start)
    };
    let anew = exchanges.iter().rposition(begins_anew).unwrap_or(0);
    let turns = RunStarts::of(draft).turns(exchanges);
    let turns: Vec<usize> = turns.into_iter().filter(|index| *index >= anew).collect();
    let after = after_turns.min(turns.len().saturating_sub(1));
    let first = turns.len().saturating_sub(of_turns).max(after);
    let last = turns.iter().skip(first);
    let last = last.filter_map(|index| exchanges.get(*index));
    last.flat_map(|turn| turn.at.clone()).collect()
}

/// Cuts a result that consists only of texts to at most `max` lines. Returns `None` if it has no
/// more already.
fn shortened(result: &ToolResult, max: usize, marker: &Marker) -> Option<Message> {
    let texts: Option<Vec<&str>> = result.parts.iter().map(Part::as_text).collect();
    let text = texts?.join("\n");
    let short = in_lines(&text, max, marker)?;
    Some(with_text(result, short))
}

/// Returns head and tail of a text in at most `max` lines, or in the smallest useful number of
/// lines. Returns `None` if it has no more already.
fn in_lines(text: &str, max: usize, marker: &Marker) -> Option<String> {
    let lines = lines_of(text);
    if lines <= max || text.len() <= LEAST {
        return None;
    }
    let scaled = |bytes: usize, lines: usize| {
        let scaled = bytes as u128 * max as u128 / lines.max(1) as u128;
        usize::try_from(scaled).unwrap_or(usize::MAX).max(LEAST)
    };
    let mut bytes = scaled(text.len(), lines);
    for _ in 0..TRIES {
        let short = marker.shorten_bytes(text, Bytes(bytes as u64))?;
        let lines = lines_of(&short);
        if lines <= max || bytes == LEAST {
            return Some(short);
        }
        bytes = scaled(short.len(), lines)
            .min(bytes - bytes / 10)
            .max(LEAST);
    }
    marker.shorten_bytes(text, Bytes(LEAST as u64))
}

/// Counts the lines of a text; a long line counts as several.
fn lines_of(text: &str) -> usize {
    text.lines()
        .map(|line| line.len().div_ceil(LINE_BYTES).max(1))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max: usize) -> Option<String> {
        in_lines(text, max, &Marker::default())
    }

    #[test]
    fn lines_are_bounded_head_and_tail_stay() {
        let numbered: String = (0..400).map(|n| format!("line number {n}\n")).collect();
        let giant = "x".repeat(400_000);
        let skewed = format!("{}{}", "a\n".repeat(3_000), "b".repeat(90_000));
        let crabs = "🦀".repeat(50_000);
        for text in [&numbered, &giant, &skewed, &crabs] {
            for max in [4, 50, 51, 200] {
                let short = cut(text, max).unwrap();
                // Lines of one letter: a cut would leave nothing useful.
                let few = max == 4 && lines_of(text) > 390 && text.len() != giant.len();
                assert!(lines_of(&short) <= if few { 85 } else { max }, "{max}");
                assert!(short.len() <= max * (LINE_BYTES + 1));
                assert!(short.contains("[pruned: "));
                assert_eq!(cut(&short, max), None, "twice is once");
                assert_eq!(short.chars().next(), text.chars().next());
                assert_eq!(
                    short.trim_end().chars().last(),
                    text.trim_end().chars().last()
                );
            }
        }
        let short = cut(&numbered, 50).unwrap();
        assert!(lines_of(&short) >= 40, "no more leaves than must:\n{short}");
        assert!(short.starts_with("line number 0\n"));
        assert!(short.ends_with("line number 399\n"));
    }

    #[test]
    fn what_is_within_stays() {
        for text in ["", "\n\n", "a\nb\nc", &"x".repeat(3 * LINE_BYTES)] {
            assert_eq!(cut(text, 3), None);
        }
    }

    #[test]
    fn json_stays_json() {
        let rows: Vec<_> = (0..500)
            .map(|n| serde_json::json!({"row": n, "name": format!("n{n}")}))
            .collect();
        let one_line = serde_json::to_string(&rows).unwrap();
        let pretty = serde_json::to_string_pretty(&rows).unwrap();
        for text in [one_line, pretty] {
            let short = cut(&text, 30).unwrap();
            assert!(lines_of(&short) <= 30);
            serde_json::from_str::<serde_json::Value>(&short).unwrap();
        }
    }
}
