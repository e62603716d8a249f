//! Prints the figures of the judge as tables.

mod compacted;
mod handover;

use std::collections::BTreeMap;

use super::canary::SurvivalRates;
use super::handover::Handovers;
use super::kit::Survival;
use super::mean;
use super::measure::{Score, Share, WantedContent, normal};
use super::outcomes::Outcomes;
use super::whole::Whole;

pub(super) use handover::faults;

/// Minimum length of a long user message in the table of losses, in characters.
const LONG: usize = 400;

/// All results.
pub(super) struct Figures {
    pub(super) rows: Vec<ReportRow>,
    pub(super) losses: Vec<Loss>,
    pub(super) canaries: Vec<(u64, &'static str, SurvivalRates)>,
    pub(super) outcomes: Outcomes,
    pub(super) handovers: Handovers,
    pub(super) survivals: Vec<Survival>,
    pub(super) wholes: Vec<Whole>,
}

/// A text that was judged.
pub(super) struct ReportRow {
    pub(super) table: &'static str,
    pub(super) budget: String,
    pub(super) rule: &'static str,
    pub(super) tokens: u64,
    pub(super) score: Score,
}

/// The losses of one text, by kind.
pub(super) struct Loss {
    table: &'static str,
    rule: &'static str,
    budget: String,
    /// The share of kept content, by kind.
    kinds: BTreeMap<String, Share>,
}

impl Loss {
    pub(super) fn of(
        table: &'static str,
        rule: &'static str,
        budget: &str,
        wanted: &WantedContent,
        text: &str,
    ) -> Self {
        let text = normal(text);
        let mut kinds: BTreeMap<String, Share> = BTreeMap::new();
        let mut count = |kind: String, one: &str| {
            kinds.entry(kind).or_default().add(Share {
                kept: usize::from(text.contains(one)),
                of: 1,
            });
        };
        for message in &wanted.messages {
            let size = if message.chars().count() > LONG {
                "long"
            } else {
                "short"
            };
            count(format!("user messages, {size}"), message);
        }
        for sentence in &wanted.sentences {
            let host = wanted
                .messages
                .iter()
                .find(|message| message.contains(sentence));
            let long = host.is_some_and(|host| host.chars().count() > LONG);
            let size = if long { "long" } else { "short" };
            count(format!("sentences of {size} messages"), sentence);
        }
        for one in &wanted.identifiers {
            count(format!("identifiers by kind: {}", one.kind), &one.text);
            count(format!("identifiers seen from: {}", one.origin), &one.text);
        }
        Self {
            table,
            rule,
            budget: budget.to_owned(),
            kinds,
        }
    }
}

/// Prints everything as Markdown.
pub(super) fn tables(figures: &Figures) {
    let Figures {
        rows,
        losses,
        canaries,
        outcomes,
        handovers,
        survivals,
        wholes,
    } = figures;
    println!("\nMean of the shares of all cuts; in brackets the share of all taken together.");
    for table in distinct(rows.iter().map(|row| row.table)) {
        println!("\n### {table}\n");
        println!(
            "| budget | n | rule | user messages | user sentences | identifiers used next | without bare lists | tokens |"
        );
        println!("|--:|--:|---|--:|--:|--:|--:|--:|");
        let here: Vec<&ReportRow> = rows.iter().filter(|row| row.table == table).collect();
        for budget in distinct(here.iter().map(|row| row.budget.as_str())) {
            let mut rules: Vec<&str> = distinct(
                here.iter()
                    .filter(|row| row.budget == budget)
                    .map(|row| row.rule),
            );
            rules.sort_unstable();
            for rule in rules {
                let rows: Vec<&&ReportRow> = here
                    .iter()
                    .filter(|row| row.budget == budget && row.rule == rule)
                    .collect();
                let scores: Vec<Score> = rows.iter().map(|row| row.score).collect();
                let mut all = Score::default();
                scores.iter().for_each(|score| all.add(*score));
                let tokens =
                    rows.iter().map(|row| row.tokens).sum::<u64>() / rows.len().max(1) as u64;
                println!(
                    "| {budget} | {} | {rule} | {} | {} | {} | {} | {tokens} |",
                    rows.len(),
                    cell(mean(&scores, |score| score.messages), all.messages),
                    cell(mean(&scores, |score| score.sentences), all.sentences),
                    cell(mean(&scores, |score| score.identifiers), all.identifiers),
                    cell(mean(&scores, |score| score.told), all.told),
                );
            }
        }
    }
    println!("\n### What each rule keeps, by kind\n");
    for (table, rule) in distinct(losses.iter().map(|loss| (loss.table, loss.rule))) {
        let is_here = |loss: &&Loss| loss.table == table && loss.rule == rule;
        let here: Vec<&Loss> = losses.iter().filter(is_here).collect();
        let budgets = distinct(here.iter().map(|loss| loss.budget.as_str()));
        println!("| {table}, {rule} | {} |", budgets.join(" | "));
        println!("|---|{}", "--:|".repeat(budgets.len()));
        let mut kinds: BTreeMap<&str, Vec<Share>> = BTreeMap::new();
        for loss in &here {
            let column = budgets.iter().position(|budget| *budget == loss.budget);
            for (kind, share) in &loss.kinds {
                let columns = kinds
                    .entry(kind)
                    .or_insert_with(|| vec![Share::default(); budgets.len()]);
                if let Some(sum) = column.and_then(|column| columns.get_mut(column)) {
                    sum.add(*share);
                }
            }
        }
        for (kind, columns) in kinds {
            let cells: Vec<String> = columns
                .iter()
                .map(|share| format!("{} of {}", percent(share.part()), share.of))
                .collect();
            println!("| {kind} | {} |", cells.join(" | "));
        }
        println!();
    }
    println!("### Canaries\n");
    println!("| budget | rule | rules there | new values there | stale values there |");
    println!("|--:|---|--:|--:|--:|");
    for (budget, rule, survived) in canaries {
        let fraction = |share: Share| format!("{}/{}", share.kept, share.of);
        println!(
            "| {budget} % | {rule} | {} | {} | {} |",
            fraction(survived.rules),
            fraction(survived.new),
            fraction(survived.stale)
        );
    }
    compacted::tables(survivals);
    compacted::whole_tables(wholes);
    handover::tables(handovers);
    println!("\n### Failures, of 200 marked results\n");
    println!("| half | reported that failed | failed that are reported | false alarms |");
    println!("|---|--:|--:|--:|");
    for (half, found) in [
        ("all", outcomes.all()),
        ("open", outcomes.open),
        ("held out", outcomes.held_out),
    ] {
        let cell = |share: Share| format!("{} of {}", percent(share.part()), share.of);
        println!(
            "| {half} | {} | {} | {} |",
            cell(found.precision),
            cell(found.recall),
            cell(found.false_alarms)
        );
    }
    println!(
        "\nWith each result as often as its kind occurs, {} of the reported did fail.",
        percent(outcomes.precision_as_occurring())
    );
}

fn cell(mean: Option<f64>, all: Share) -> String {
    format!("{} ({})", percent(mean), percent(all.part()))
}

fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", 100.0 * part))
}

/// Returns each text once, in order of first occurrence.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}
