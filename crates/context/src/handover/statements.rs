//! Sentences of the agent that state a result or a decision.

use super::cues::{Cues, is_machine};
use super::sentences::sentences;

/// The minimum length of a statement: words, or characters in scripts without blanks.
const WORDS_MIN: usize = 4;
const CHARS_MIN: usize = 8;
/// The maximum number of sentences of one message that are examined.
const SENTENCES_MAX: usize = 400;

/// Returns the statements of a text: decisions, causes and results. Passing states ("2 tests still
/// fail") may end later. They are left out, except in the last text of the agent, where every sentence
/// counts.
pub(crate) fn statements(text: &str, is_last: bool) -> Vec<&str> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for sentence in sentences(text).into_iter().take(SENTENCES_MAX) {
        is_fenced ^= sentence.trim_start().starts_with("```");
        let sentence = sentence.trim_start_matches(['-', '*', '•', ' ', '✅']);
        let sentence = sentence.strip_prefix("THOUGHT:").unwrap_or(sentence).trim();
        if is_fenced || !is_sentence(sentence) {
            continue;
        }
        let cues = Cues::of(sentence);
        let is_result = cues.has("finding") && !cues.has("passing");
        if !cues.begins("lead_in") && (is_result || is_last) {
            found.push(sentence);
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
    let is_row = text.starts_with(['#', '>', '`', '=', '─', '│', '┌', '└', '├']);
    let is_open =
        text.ends_with(['?', '？', ':', '：', ',', '|', '、', '，']) || text.ends_with("...");
    is_long && !is_row && !is_open && !is_machine(text)
}

/// Returns the question with which a text ends, with the list of options around it.
pub(crate) fn open_question(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let asked = lines.iter().rposition(|line| line.ends_with(['?', '？']))?;
    let (before, behind) = (lines.get(..asked)?, lines.get(asked + 1..)?);
    if !behind.iter().all(|line| is_option(line)) {
        return None;
    }
    let options = before.iter().rev().take_while(|line| is_option(line));
    let options = before.get(before.len() - options.count()..)?;
    let question = sentences(lines.get(asked)?).pop()?;
    Some([options, &[question], behind].concat().join(" "))
}

/// Checks whether a line begins with a mark or a number of a list: `- a`, `(b) c`, `1. d`.
fn is_option(line: &str) -> bool {
    let number = line.split(['.', ')', ':', ' ']).next().unwrap_or_default();
    line.starts_with(['-', '*', '(']) || number.len() <= 2 && number.len() < line.len()
}
