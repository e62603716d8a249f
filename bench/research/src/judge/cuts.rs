//! Judges cuts: places in a session at which a text replaces all earlier messages. They are the
//! agents' own compactions, and the half and three quarters of every large session.
//!
//! Every figure is given for both halves of the sessions, so that a rule that was tuned on one of
//! them is reported on the other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_context::{Bpe, Message, TokenCounter, Tokens};
use sha2::{Digest, Sha256};

use super::lines::LineScanner;
use super::measure::{Finder, Score, Share, WantedContent, normal};
use super::sessions::Session;
use super::{LARGE, ours};
use crate::error::Error;

/// Budgets in tokens of o200k, besides the size of the agent's own summary.
const BUDGETS: [u64; 2] = [8_000, 20_000];
/// Budgets of the cuts that no agent made, in tokens.
const MADE_BUDGETS: [u64; 4] = [1_000, 3_000, 8_000, 20_000];
/// The places of those cuts, in percent of the session's messages.
const MADE_CUTS: [usize; 2] = [50, 75];
/// A span is only cut if it is at least this many times the budget.
const SPAN: u64 = 2;
/// The size of an agent's own summary as a budget.
const OWN: &str = "own size";
/// Maximum length of a call's signature in the mechanical rule, in characters.
const SIGNATURE_MAX: usize = 300;

/// One text that was judged.
struct CutRow {
    cuts: &'static str,
    budget: String,
    rule: &'static str,
    half: char,
    tokens: u64,
    score: Score,
    /// The kept identifiers by kind.
    kinds: BTreeMap<&'static str, Share>,
}

/// Judges all cuts and prints the tables.
pub(super) fn print(sessions: &[Session], texts: Option<&Path>) -> Result<(), Error> {
    let mut judge = CutJudge {
        finder: Finder::new()?,
        lines: LineScanner::new()?,
        texts,
        rows: Vec::new(),
    };
    for session in sessions {
        judge.compactions(session)?;
        judge.made_cuts(session)?;
    }
    tables(&judge.rows);
    Ok(())
}

struct CutJudge<'a> {
    finder: Finder,
    lines: LineScanner,
    texts: Option<&'a Path>,
    rows: Vec<CutRow>,
}

/// A place in a session, with the content that a text for it must preserve.
struct SessionCut<'s> {
    cuts: &'static str,
    session: &'s Session,
    at: usize,
    wanted: WantedContent,
}

impl CutJudge<'_> {
    /// Judges the cuts that the agent made itself.
    fn compactions(&mut self, session: &Session) -> Result<(), Error> {
        for (i, compaction) in session.compactions.iter().enumerate() {
            let next = session.compactions.get(i + 1);
            let until = next.map_or(session.messages.len(), |next| next.at);
            let from = compaction.at.max(compaction.summary_at + 1);
            let cut = SessionCut {
                cuts: "compactions",
                session,
                at: compaction.at,
                wanted: self.finder.wanted(session, compaction.at, from, until),
            };
            let Some(own) = session.messages.get(compaction.summary_at) else {
                continue;
            };
            let own = own.text();
            let size = Bpe::o200k().text(&own).0;
            self.take(&cut, OWN, "agent's own summary", &own)?;
            self.both(&cut, OWN, Tokens(size))?;
            for budget in BUDGETS {
                self.both(&cut, &budget.to_string(), Tokens(budget))?;
            }
        }
        Ok(())
    }

    /// Judges cuts at half and three quarters of a large session.
    fn made_cuts(&mut self, session: &Session) -> Result<(), Error> {
        let total = session.messages.len();
        if session.span(total) < LARGE {
            return Ok(());
        }
        for percent in MADE_CUTS {
            let at = total * percent / 100;
            let cut = SessionCut {
                cuts: "made cuts",
                session,
                at,
                wanted: self.finder.wanted(session, at, at, total),
            };
            for budget in MADE_BUDGETS {
                if session.span(at) >= SPAN * budget {
                    self.both(&cut, &budget.to_string(), Tokens(budget))?;
                }
            }
        }
        Ok(())
    }

    /// Judges the mechanical rule and `extract` at one budget.
    fn both(&mut self, cut: &SessionCut<'_>, budget: &str, max: Tokens) -> Result<(), Error> {
        let before = cut.session.messages.get(..cut.at).unwrap_or_default();
        let views: Vec<&Message> = before.iter().collect();
        let text = mechanical(&views, max, &Bpe::o200k());
        self.take(cut, budget, "mechanical rule", &text)?;
        self.take(cut, budget, "`extract`", &ours(&views, max))
    }

    fn take(
        &mut self,
        cut: &SessionCut<'_>,
        budget: &str,
        rule: &'static str,
        text: &str,
    ) -> Result<(), Error> {
        if let Some(folder) = self.texts {
            let name = format!(
                "{} {} {} {budget} {rule}.md",
                cut.cuts, cut.session.id, cut.at
            );
            let path = folder.join(name.replace(['/', ' ', '`', '\''], "_"));
            std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
            std::fs::write(&path, text).map_err(Error::file(&path))?;
            let path = path.with_extension("lost.txt");
            std::fs::write(&path, cut.wanted.lost(text)).map_err(Error::file(&path))?;
        }
        let plain = normal(text);
        let mut kinds: BTreeMap<&'static str, Share> = BTreeMap::new();
        for one in &cut.wanted.identifiers {
            let share = kinds.entry(one.kind).or_default();
            share.count(plain.contains(&one.text));
        }
        self.rows.push(CutRow {
            cuts: cut.cuts,
            budget: budget.to_owned(),
            rule,
            half: half(&cut.session.id),
            tokens: Bpe::o200k().text(text).0,
            score: cut.wanted.score(text, &self.lines.without_lists(text)),
            kinds,
        });
        Ok(())
    }
}

/// Returns the half of the sessions to which one belongs.
pub(super) fn half(id: &str) -> char {
    match Sha256::digest(id.as_bytes()).first() {
        Some(first) if first.is_multiple_of(2) => 'a',
        _ => 'b',
    }
}

/// The rival of `extract`, which fits one paragraph: the user's text and the signatures of tool
/// calls, newest first, until the budget is full. The last text is cut to fit. The output is in
/// chronological order. It is meant to be fair, not good.
fn mechanical(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> String {
    let mut lines = Vec::new();
    let mut left = max.0;
    'all: for message in messages.iter().rev() {
        let texts: Vec<String> = match message {
            Message::User { .. } => vec![format!("User: {}\n", message.text())],
            Message::Assistant { .. } => {
                let calls = message.calls().map(|call| {
                    let line = format!("{}({})", call.name, call.arguments);
                    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
                    let line: String = line.chars().take(SIGNATURE_MAX).collect();
                    line + "\n"
                });
                calls.collect::<Vec<_>>().into_iter().rev().collect()
            }
            _ => continue,
        };
        for text in texts {
            if let Some(after) = left.checked_sub(counter.text(&text).0) {
                left = after;
                lines.push(text);
            } else {
                let rest = plimsoll_context::shorten(&text, Tokens(left), counter);
                lines.extend(rest);
                break 'all;
            }
        }
    }
    lines.reverse();
    lines.concat()
}

/// Prints what each rule keeps at each budget, and the identifiers by kind.
fn tables(rows: &[CutRow]) {
    println!("\n### Cuts: the mean of all, then of half *a* and half *b*\n");
    println!(
        "| cuts | budget | n | rule | user messages | user sentences | identifiers used next | \
         without bare lists | tokens |"
    );
    println!("|---|--:|--:|---|--:|--:|--:|--:|--:|");
    let groups = groups(rows);
    for (cuts, budget, rule) in &groups {
        let here = of_group(rows, cuts, budget, rule);
        let cell = |share: fn(&Score) -> Share| {
            let mean = |half: Option<char>| {
                let rows = here
                    .iter()
                    .filter(|row| half.is_none_or(|half| row.half == half));
                let parts: Vec<f64> = rows.filter_map(|row| share(&row.score).part()).collect();
                if parts.is_empty() {
                    return "–".to_owned();
                }
                format!(
                    "{:.0}",
                    100.0 * parts.iter().sum::<f64>() / parts.len() as f64
                )
            };
            format!("{} ({}, {})", mean(None), mean(Some('a')), mean(Some('b')))
        };
        let tokens = here.iter().map(|row| row.tokens).sum::<u64>() / here.len().max(1) as u64;
        println!(
            "| {cuts} | {budget} | {} | {rule} | {} | {} | {} | {} | {tokens} |",
            here.len(),
            cell(|score| score.messages),
            cell(|score| score.sentences),
            cell(|score| score.identifiers),
            cell(|score| score.told),
        );
    }
    println!("\n### Identifiers by kind, of half *a* and half *b* together\n");
    let kinds: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.kinds.keys().copied())
        .collect();
    let names: Vec<&str> = kinds.iter().copied().collect();
    println!("| cuts | budget | rule | {} |", names.join(" | "));
    println!("|---|--:|---|{}", "--:|".repeat(names.len()));
    for (cuts, budget, rule) in &groups {
        let here = of_group(rows, cuts, budget, rule);
        let cells = kinds.iter().map(|kind| {
            let mut halves = [Share::default(), Share::default()];
            for row in &here {
                let [a, b] = &mut halves;
                let share = if row.half == 'a' { a } else { b };
                share.add(row.kinds.get(kind).copied().unwrap_or_default());
            }
            let parts = halves.map(|share| {
                let part = share.part().map(|part| format!("{:.0}", 100.0 * part));
                part.unwrap_or_else(|| "–".to_owned())
            });
            parts.join(", ")
        });
        let cells: Vec<String> = cells.collect();
        println!("| {cuts} | {budget} | {rule} | {} |", cells.join(" | "));
    }
}

/// Returns the different cuts, budgets and rules, in order of first occurrence.
fn groups(rows: &[CutRow]) -> Vec<(&'static str, &str, &'static str)> {
    let mut groups = Vec::new();
    for row in rows {
        let group = (row.cuts, row.budget.as_str(), row.rule);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|(cuts, ..)| *cuts);
    groups
}

fn of_group<'r>(rows: &'r [CutRow], cuts: &str, budget: &str, rule: &str) -> Vec<&'r CutRow> {
    let rows = rows.iter();
    let here = rows.filter(|row| row.cuts == cuts && row.budget == budget && row.rule == rule);
    here.collect()
}
