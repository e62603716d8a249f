//! Rules that did not come from the user: from files of instructions that a tool has read, and from
//! the agent's own notes. They are shown as data, with their source.

use super::cues::Cues;
use super::sentences::{clip, one_line, sentences};

const INSTRUCTION_FILES: &str = include_str!("words/instruction_files.txt");
/// Beginnings of the agent's notes about its obligations.
const OWN: [&str; 8] = [
    "I must",
    "I should never",
    "I should always",
    "I will never",
    "I may not",
    "I am not allowed",
    "I'm not allowed",
    "I have to keep",
];
/// The maximum length of a rule, in bytes.
const RULE_MAX: usize = 240;
/// The length up to which a file is read, in bytes.
const FILE_MAX: usize = 60_000;
/// The folder of a host's notes for the agent.
const MEMORY: &str = "/memory/";

/// Returns the name of a file of instructions.
pub(crate) fn source(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let low = name.to_lowercase();
    let is_listed = INSTRUCTION_FILES.lines().any(|listed| listed == low);
    (is_listed || path.contains(MEMORY) || path.starts_with("memory/")).then_some(name)
}

/// Returns the rules in a text from this file.
pub(crate) fn of_file(source: &str, text: &str) -> Vec<String> {
    let text = clip(text, FILE_MAX);
    let sentences = sentences(text).into_iter();
    let rules = sentences.filter_map(|at| {
        let line = text.get(at).unwrap_or_default().trim();
        // The number of a line, as tools print it.
        let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let line = numbered.strip_prefix(['→', '|', '\t', ':']).unwrap_or(line);
        let line = line.trim_start_matches(['-', '*', '#', '>', ' ', '\t']);
        let is_rule = line.split_whitespace().nth(1).is_some() || !line.is_ascii();
        (is_rule && Cues::of(line).has(Cues::MUST))
            .then(|| format!("{source}: {}", one_line(line, RULE_MAX)))
    });
    rules.collect()
}

/// Returns the obligations that the agent notes in its own text.
pub(crate) fn of_agent(text: &str) -> Vec<String> {
    if !text.contains("I ") && !text.contains("I'm") {
        return Vec::new();
    }
    let sentences = sentences(text).into_iter();
    let rules = sentences.filter_map(|at| {
        let line = text.get(at).unwrap_or_default().trim();
        let is_own = OWN.iter().any(|own| line.contains(own));
        (is_own && Cues::of(line).has(Cues::MUST))
            .then(|| format!("agent's note: {}", one_line(line, RULE_MAX)))
    });
    rules.collect()
}
