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
    let mut rules = Vec::new();
    for paragraph in paragraphs(clip(text, FILE_MAX)) {
        for at in sentences(&paragraph) {
            let line = paragraph.get(at).unwrap_or_default().trim();
            if is_whole(line) && Cues::of(line).has("must") {
                rules.push(format!("{source}: {}", one_line(line, RULE_MAX)));
            }
        }
    }
    rules
}

/// Returns the paragraphs and list entries of a file, with their wrapped lines joined, without
/// headings, tables and code.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    let mut is_code = false;
    for line in text.lines() {
        // The number of a line, as tools print it.
        let numbered = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let line = numbered.strip_prefix(['→', '\t', ':']).unwrap_or(line);
        let line = line.trim().replace("**", "");
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if is_fence || is_code || line.is_empty() || line.starts_with(['#', '|', '<']) {
            is_open = false;
            continue;
        }
        let entry = ["- ", "* ", "> "]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let is_new = entry.is_some() || line.starts_with(|c: char| c.is_ascii_digit());
        match found.last_mut().filter(|_| is_open && !is_new) {
            Some(before) => {
                before.push(' ');
                before.push_str(&line);
            }
            None => found.push(entry.unwrap_or(&line).to_owned()),
        }
        is_open = true;
    }
    found
}

/// Returns `true` unless a sentence is a lead-in, one word, or the rest of another one.
fn is_whole(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    let is_long = words.next().is_some() || !line.is_ascii();
    is_long
        && !line.starts_with(char::is_lowercase)
        && !line.ends_with([':', '：'])
        && !is_in("leans", &first)
}

/// Returns the obligations that the agent notes in its own text.
pub(crate) fn of_agent(text: &str) -> Vec<String> {
    if !any_in("own", text) {
        return Vec::new();
    }
    let sentences = sentences(text).into_iter();
    let rules = sentences.filter_map(|at| {
        let line = text.get(at).unwrap_or_default().trim();
        (any_in("own", line) && Cues::of(line).has("must"))
            .then(|| format!("agent's note: {}", one_line(line, RULE_MAX)))
    });
    rules.collect()
}
