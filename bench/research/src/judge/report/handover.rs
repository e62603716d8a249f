//! The measures of a handover as tables, as JSON and as a file of examples.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::percent;
use crate::error::Error;
use crate::judge::handover::{Faults, Handover, Handovers};
use crate::judge::kit::Survival;
use crate::judge::measure::Share;

/// A measure's name, its requirement, and its share.
type Measure = (&'static str, &'static str, fn(&Handover) -> Share);

const MEASURES: [Measure; 16] = [
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
    ("lines that are clutter", "≤ 5", |one| one.clutter.any),
    ("of these, announcements", "", |one| {
        one.clutter.announcements
    }),
    ("of these, lead-ins", "", |one| one.clutter.lead_ins),
    ("of these, torn rows", "", |one| one.clutter.torn_rows),
    ("lines that begin in mid-thought", "", |one| {
        one.clutter.dangling
    }),
    ("items that stand twice", "", |one| one.repeated),
    ("tokens in bare lists", "≤ 5", |one| one.names.bare),
    ("tokens of numbers alone", "≤ 1", |one| one.names.numbers),
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
    let debris = columns.iter().map(|(_, one)| one.names.debris.kept);
    let debris: Vec<String> = debris.map(|tokens| tokens.to_string()).collect();
    println!("| tokens of debris | 0 | {} |", debris.join(" | "));
}

/// Returns the measures as JSON.
pub(super) fn json(handovers: &Handovers) -> Value {
    let share = |share: Share| json!({ "kept": share.kept, "of": share.of });
    let one = |handover: &Handover| {
        let mut measures: BTreeMap<&str, Value> = MEASURES
            .iter()
            .map(|(name, _, of)| (*name, share(of(handover))))
            .collect();
        measures.insert("sessions", handover.sessions.into());
        measures.insert("tokens of debris", share(handover.names.debris));
        json!(measures)
    };
    let by_budget: BTreeMap<&str, Value> = handovers
        .by_budget
        .iter()
        .map(|(name, handover)| (name.as_str(), one(handover)))
        .collect();
    let by_source: BTreeMap<&str, Value> = handovers
        .by_source
        .iter()
        .map(|(name, handover)| (name.as_str(), one(handover)))
        .collect();
    json!({
        "by_budget": by_budget,
        "by_source": by_source,
        "lost_in_five_rounds": {
            "rules": share(handovers.rounds.rules),
            "words": share(handovers.rounds.words),
            "sentences": share(handovers.rounds.sentences),
        },
    })
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
