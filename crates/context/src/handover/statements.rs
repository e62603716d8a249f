//! Sentences that do not come from the user: results and decisions of the agent, its open question, and
//! rules from files of instructions and the agent's notes.

use super::sentences::{clip, is_machine, one_line, prose, sentences, words_of};
use super::words::{any_in, behind, is_in};

/// The minimum length of a statement: words, or characters in scripts without blanks.
const WORDS_MIN: usize = 4;
const CHARS_MIN: usize = 8;
/// The maximum number of sentences of one message that are examined.
const SENTENCES_MAX: usize = 400;
/// The maximum length of a rule, in bytes.
const RULE_MAX: usize = 240;
/// The length up to which a file is read, in bytes.
const FILE_MAX: usize = 60_000;
/// The folder of a host's notes for the agent.
const MEMORY: &str = "/memory/";

/// Returns the statements of a text: decisions, causes and results. Passing states ("2 tests still
/// fail") may end later. They are left out, except in the last text of the agent, where every sentence
/// counts.
pub(crate) fn statements(text: &str, is_last: bool) -> Vec<&str> {
    let sentences = prose(text).take(SENTENCES_MAX);
    let sentences = sentences.map(|text| text.trim_start_matches("THOUGHT:").trim_start());
    let stated = sentences.filter(|text| {
        let words = words_of(text);
        let is_result = any_in("finding", &words) && !any_in("passing", &words);
        is_sentence(text) && behind("lead_in", &words).is_none() && (is_result || is_last)
    });
    stated.collect()
}

/// Returns `true` unless the text is a question, a lead-in, a fragment, or written by a machine.
fn is_sentence(text: &str) -> bool {
    let is_wide = text.chars().any(|c| u32::from(c) >= 0x2e80);
    let is_long = match is_wide {
        true => text.chars().count() >= CHARS_MIN,
        false => text.split_whitespace().count() >= WORDS_MIN,
    };
    let open = ["?", "？", ":", "：", ",", "|", "、", "，", "..."];
    is_long && !open.iter().any(|end| text.ends_with(end)) && !is_machine(text)
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

/// Returns the name of a file of instructions.
pub(crate) fn instructions(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_listed = is_in("instruction_files", &name.to_lowercase());
    (is_listed || path.contains(MEMORY) || path.starts_with("memory/")).then_some(name)
}

/// Returns the rules in a text from this file: whole sentences that oblige or forbid something.
pub(crate) fn rules_of_file(source: &str, text: &str) -> Vec<String> {
    let mut joined = String::new();
    for line in clip(text, FILE_MAX).replace("**", "").lines() {
        // Tools print the number of each line.
        let is_digit = |c: char| c.is_ascii_digit();
        let numbered = line.trim_start().trim_start_matches(is_digit);
        let numbered = numbered.strip_prefix(['→', '\t', ':']);
        let line = numbered.unwrap_or(line).trim();
        let is_item = line.is_empty() || line.starts_with(['-', '*', '#', '|', '<', '>', '`']);
        let is_wrapped = !is_item && !line.starts_with(is_digit);
        joined.extend([if is_wrapped { " " } else { "\n" }, line]);
    }
    let rules = prose(&joined).filter_map(|line| rule(source, line));
    rules.collect()
}

/// Returns the obligations that the agent notes in its own text.
pub(crate) fn rules_of_agent(text: &str) -> Vec<String> {
    let text = if any_in("own", text) { text } else { "" };
    let notes = prose(text).filter(|line| any_in("own", line));
    let rules = notes.filter_map(|line| rule("agent's note", line));
    rules.collect()
}

/// Returns a sentence with its source if it obliges or forbids something, and is no lead-in, word, or
/// rest of another one.
fn rule(source: &str, line: &str) -> Option<String> {
    let line = one_line(line, RULE_MAX);
    let mut words = line.split(' ');
    let first = words.next().unwrap_or_default().to_lowercase();
    let is_long = words.next().is_some() || !line.is_ascii();
    let is_torn = line.starts_with(char::is_lowercase) || line.ends_with([':', '：']);
    let is_whole = is_long && !is_torn && !is_in("leans", &first);
    let is_rule = is_whole && any_in("must", &words_of(&line));
    is_rule.then(|| format!("{source}: {line}"))
}
