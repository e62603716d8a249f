//! The measures of a handover as tables and as a file of examples.

use std::path::Path;

use super::percent;
use crate::error::Error;
use crate::judge::handover::{Faults, Handover, Handovers};
use crate::judge::kit::Survival;
use crate::judge::measure::Share;

/// A measure's name, its requirement, and its share.
type Measure = (&'static str, &'static str, fn(&Handover) -> Share);

const MEASURES: [Measure; 9] = [
    ("answers present", "80 at 3 %, 95 at 8,000", |one| {
        one.answers
    }),
    ("reasons of refusals present", "the same", |one| one.reasons),
    ("edits of plans present", "the same", |one| one.plan_edits),
    ("all of these present", "the same", Handover::words),
    ("all of these as the user's words", "", |one| one.as_users),
    ("user lines that a person typed", "≥ 95", |one| {
        one.typed_lines
    }),
    ("lines that are clutter", "≤ 5", |one| one.clutter),
    ("failed edits told as made", "0", |one| one.false_edits),
    ("summaries that use 95 % of the budget", "100", |one| {
        one.used
    }),
];

/// Prints the measures by budget, by source, and over five rounds.
pub(super) fn tables(handovers: &Handovers) {
    println!("\n### What can be trusted, by budget\n");
    println!("Sessions with made-up exchanges in them; a share of all lines, words or tokens.\n");
    let columns: Vec<(&str, &Handover)> = handovers
        .by_budget
        .iter()
        .map(|(name, handover)| (name.as_str(), handover))
        .collect();
    table("budget", &columns);
    println!("\n### What can be trusted, by source, at 10 % of the session\n");
    let columns: Vec<(&str, &Handover)> = handovers
        .by_source
        .iter()
        .map(|(name, handover)| (name.as_str(), handover))
        .collect();
    table("source", &columns);
    let rounds = handovers.rounds;
    println!("\n### Five rounds of summaries at 20 %: lost of what the first kept\n");
    println!("| rules | words through tools | sentences of the user |");
    println!("|--:|--:|--:|");
    println!(
        "| {} | {} | {} |",
        cell(rounds.rules),
        cell(rounds.words),
        cell(rounds.sentences)
    );
}

fn table(what: &str, columns: &[(&str, &Handover)]) {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    println!("| {what} | required | {} |", names.join(" | "));
    println!("|---|---|{}", "--:|".repeat(columns.len()));
    let sessions: Vec<String> = columns
        .iter()
        .map(|(_, one)| one.sessions.to_string())
        .collect();
    println!("| sessions | | {} |", sessions.join(" | "));
    for (name, required, share) in MEASURES {
        let cells: Vec<String> = columns.iter().map(|(_, one)| cell(share(one))).collect();
        println!("| {name} | {required} | {} |", cells.join(" | "));
    }
}

/// Writes examples of each fault into `faults.txt` of a folder.
pub(in crate::judge) fn faults(
    folder: &Path,
    faults: &Faults,
    survivals: &[Survival],
) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let mut text = String::new();
    for (measure, examples) in &faults.0 {
        text.push_str(&format!("# {measure}\n{}\n\n", examples.join("\n")));
    }
    for chats in survivals {
        let heading = format!("{}, {} %", chats.language, chats.percent);
        text.push_str(&format!(
            "# Chats: {heading}\n{}\n\n",
            chats.faults.join("\n")
        ));
    }
    let path = folder.join("faults.txt");
    std::fs::write(&path, text).map_err(Error::file(&path))
}

fn cell(share: Share) -> String {
    format!("{} of {}", percent(share.part()), share.of)
}
