//! Sentences of the agent that state a result, a decision or a passing state.

use super::cues::{Cues, is_machine};
use super::sentences::sentences;

/// The minimum length of a statement: words, or characters in scripts without blanks.
const WORDS_MIN: usize = 4;
const CHARS_MIN: usize = 8;
/// The maximum number of sentences of one message that are examined.
const SENTENCES_MAX: usize = 400;
/// First words of sentences that depend on the one before.
const LEANS: &str = "it its this that they them these those both which he she but so and or also then if however \
    actually maybe perhaps otherwise yes no no: wait";
/// Words of sentences that think aloud.
const HEDGES: [&str; 7] = [
    "might", "maybe", "perhaps", "could", "probably", "seems", "would",
];

/// A sentence of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statement<'t> {
    /// A finding, a decision or a result.
    Result(&'t str),
    /// A state that a later sentence may end: "2 tests still fail".
    Passing(&'t str),
}

/// Returns the statements of a text. If it is the `last` one of the agent, it reports the end of the
/// work, and every sentence of it that says something counts.
pub(crate) fn statements(text: &str, is_last: bool) -> Vec<Statement<'_>> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for at in sentences(text).into_iter().take(SENTENCES_MAX) {
        let sentence = text.get(at).unwrap_or_default().trim();
        if sentence.starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let sentence = sentence.trim_start_matches(['-', '*', '•', ' ', '✅']);
        let sentence = sentence.strip_prefix("THOUGHT:").unwrap_or(sentence).trim();
        if is_fenced || !is_sentence(sentence) {
            continue;
        }
        let cues = Cues::of(sentence);
        if cues.has(Cues::ANNOUNCEMENT) || depends(sentence) {
            continue;
        }
        if cues.has(Cues::PASSING) {
            found.push(Statement::Passing(sentence));
        } else if cues.has(Cues::FINDING) || is_last {
            found.push(Statement::Result(sentence));
        }
    }
    found
}

/// Returns `true` unless the text is a heading, a row, a question, a lead-in, or a fragment.
fn is_sentence(text: &str) -> bool {
    let is_wide = text.chars().any(|c| u32::from(c) >= 0x2e80);
    let is_long = if is_wide {
        text.chars().count() >= CHARS_MIN
    } else {
        text.split_whitespace().count() >= WORDS_MIN
    };
    let is_row = text.starts_with([
        '|', '#', '>', '<', '{', '}', '`', '+', '=', '─', '│', '┌', '└', '├',
    ]);
    let is_open = text.ends_with(['?', '？', ':', '：', ',', '(', '{', '|', '、', '，'])
        || text.ends_with("...");
    is_long && !is_row && !is_open && !is_machine(text)
}

/// Returns `true` if a sentence depends on the one before, or thinks aloud.
fn depends(text: &str) -> bool {
    let low = text.to_lowercase();
    let mut words = low.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let first = words.next().unwrap_or_default();
    LEANS.split(' ').any(|word| word == first) || words.any(|word| HEDGES.contains(&word))
}

/// Returns the question with which a text ends, with the list of options around it.
pub(crate) fn open_question(text: &str) -> Option<String> {
    let is_option = |line: &str| {
        let mark = line.trim_start_matches(['-', '*', '(']);
        let end = mark.find(['.', ')', ':', ' ']).unwrap_or(mark.len());
        let is_numbered =
            (1..=2).contains(&end) && mark.bytes().take(end).all(|b| b.is_ascii_alphanumeric());
        mark.len() < line.len() || is_numbered
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let asked = lines.iter().rposition(|line| line.ends_with(['?', '？']))?;
    let behind = lines.get(asked + 1..).unwrap_or_default();
    if !behind.iter().all(|line| is_option(line)) {
        return None;
    }
    let before = lines.get(..asked).unwrap_or_default();
    let options = before
        .iter()
        .rev()
        .take_while(|line| is_option(line))
        .count();
    let options = before.get(before.len() - options..).unwrap_or_default();
    let line = lines.get(asked)?;
    let question = sentences(line)
        .last()
        .and_then(|at| line.get(at.clone()))
        .unwrap_or(line);
    let all = options
        .iter()
        .copied()
        .chain([question])
        .chain(behind.iter().copied());
    Some(all.collect::<Vec<_>>().join(" "))
}
