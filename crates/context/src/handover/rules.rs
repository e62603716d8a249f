//! Rules that did not come from the user: from files of instructions that a tool has read, and from
//! the agent's own notes. They are shown as data, with their source.

use super::cues::Cues;
use super::sentences::{clip, one_line, sentences};
use super::words::{any_in, is_in};

/// The maximum length of a rule, in bytes.
const RULE_MAX: usize = 240;
/// The length up to which a file is read, in bytes.
const FILE_MAX: usize = 60_000;
/// The folder of a host's notes for the agent.
const MEMORY: &str = "/memory/";

/// Returns the name of a file of instructions.
pub(crate) fn source(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_listed = is_in("instruction_files", &name.to_lowercase());
    (is_listed || path.contains(MEMORY) || path.starts_with("memory/")).then_some(name)
}

/// Returns the rules in a text from this file: whole sentences that oblige or forbid something.
pub(crate) fn of_file(source: &str, text: &str) -> Vec<String> {
    let paragraphs = paragraphs(clip(text, FILE_MAX));
    rules(source, paragraphs.iter().flat_map(|text| sentences(text)))
}

/// Returns the obligations that the agent notes in its own text.
pub(crate) fn of_agent(text: &str) -> Vec<String> {
    if !any_in("own", text) {
        return Vec::new();
    }
    let notes = sentences(text).into_iter();
    rules("agent's note", notes.filter(|line| any_in("own", line)))
}

fn rules<'t>(source: &str, lines: impl Iterator<Item = &'t str>) -> Vec<String> {
    let rules = lines.map(str::trim).filter(|line| is_rule(line));
    let rules = rules.map(|line| format!("{source}: {}", one_line(line, RULE_MAX)));
    rules.collect()
}

/// Returns the paragraphs and list entries of a file, with their wrapped lines joined, without
/// headings, tables and code.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        // The number of a line, as tools print it.
        let is_digit = |c: char| c.is_ascii_digit();
        let numbered = line.trim_start().trim_start_matches(is_digit);
        let line = numbered.strip_prefix(['→', '\t', ':']).unwrap_or(line);
        let line = line.trim().replace("**", "");
        is_code ^= line.starts_with("```");
        if is_code || line.is_empty() || line.starts_with(['#', '|', '<', '`']) {
            found.push(String::new());
            continue;
        }
        let marks = ["- ", "* ", "> "].iter();
        let mut entries = marks.filter_map(|mark| line.strip_prefix(mark));
        let entry = entries.next();
        if entry.is_some() || line.starts_with(is_digit) {
            found.push(String::new());
        }
        if let Some(last) = found.last_mut() {
            last.extend([entry.unwrap_or(&line), " "]);
        }
    }
    found
}

/// Checks whether a sentence obliges or forbids something, and is no lead-in, word, or rest of another
/// one.
fn is_rule(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    let is_long = words.next().is_some() || !line.is_ascii();
    let is_torn = line.starts_with(char::is_lowercase) || line.ends_with([':', '：']);
    is_long && !is_torn && !is_in("leans", &first) && Cues::of(line).has("must")
}
