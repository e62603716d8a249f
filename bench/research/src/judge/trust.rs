//! Measures whether a colleague can rely on a summary.
//!
//! It must contain the user's words from every place and no foreign text as the user's, no clutter
//! and no edit that was not made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use plimsoll_context::{Bpe, Message, TokenCounter, Tokens};

use super::authors::{commands, typed};
use super::lines::LineScanner;
use super::measure::{Share, normal, plain};
use super::planted::{PlantedSession, plant};
use super::sessions::Session;
use super::summary::{Summary, SummaryItemKind};
use super::{ours, percent};
use crate::error::Error;

/// Budgets in percent of a session.
const PERCENT: [u64; 4] = [3, 5, 10, 20];
/// A budget in tokens, for sessions that are at least twice as large.
const FIXED: u64 = 8_000;
/// Maximum number of sessions of one source, so that none outweighs the others.
const SOURCE_MAX: usize = 12;
/// Minimum size of a session, in tokens.
const LEAST: u64 = 5_000;
/// Minimum size of a summary, in tokens.
const BUDGET_MIN: u64 = 400;
/// Minimum part of a budget that counts as used, in percent.
const USED: u64 = 95;
/// Maximum length of an example, in characters.
const EXAMPLE_MAX: usize = 240;
/// Tools that change a file.
const EDITS: [&str; 9] = [
    "edit",
    "write",
    "multiedit",
    "str_replace_editor",
    "apply_patch",
    "apply_diff",
    "insert",
    "create",
    "notebookedit",
];
/// Part of a command that edits a file in place.
const IN_PLACE: &str = "sed -i";
/// Arguments that contain a file name.
const PATHS: [&str; 4] = ["file_path", "path", "filePath", "filename"];
/// The beginnings of results without an error flag whose edit was not made.
const NOT_MADE: [&str; 8] = [
    "ERROR:",
    "Error:",
    "<tool_use_error>",
    "Your proposed edit has introduced",
    "No changes made",
    "Could not find",
    "apply_patch verification failed",
    "The user doesn't want",
];
/// The beginnings of labels in brackets before the user's words.
const LABELS: [&str; 4] = ["refused", "rejected", "approved", "answered"];
/// Words that report an action.
const DONE: [&str; 9] = [
    "edited", "wrote", "written", "created", "changed", "updated", "modified", "patched", "applied",
];
/// Words that report a failure of the action.
const NOT_DONE: [&str; 12] = [
    "failed",
    "fail",
    "refused",
    "rejected",
    "aborted",
    "denied",
    "declined",
    "cancelled",
    "interrupted",
    "not",
    "error",
    "no",
];

/// The measures at one budget.
#[derive(Debug, Clone, Default)]
struct Trust {
    /// Answers, reasons and plan edits that the text contains, and those that it marks as the
    /// user's.
    answers: Share,
    reasons: Share,
    plan_edits: Share,
    as_users: Share,
    /// Lines marked as the user's that a person typed.
    typed_lines: Share,
    clutter: Share,
    /// Of the mentioned files with a failed edit, those for which the text reports an edit although none was
    /// made.
    false_edits: Share,
    /// Summaries that use at least 95 % of their budget.
    used: Share,
}

/// A measure's name, its requirement, and its share.
type Measure = (&'static str, &'static str, fn(&Trust) -> Share);

const MEASURES: [Measure; 8] = [
    ("answers present", "80 at 3 %, 95 at 8,000", |one| {
        one.answers
    }),
    ("reasons of refusals present", "the same", |one| one.reasons),
    ("edits of plans present", "the same", |one| one.plan_edits),
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

/// Examples of faults: the measure, the session and the text.
#[derive(Debug, Default)]
struct Faults(BTreeSet<String>);

impl Faults {
    fn add(&mut self, measure: &str, session: &str, text: &str) {
        let text: String = text.chars().take(EXAMPLE_MAX).collect();
        let text = text.replace('\n', "⏎");
        self.0.insert(format!("{measure}: {session}: {text}\n"));
    }
}

impl Trust {
    fn add(&mut self, other: &Self) {
        self.answers.add(other.answers);
        self.reasons.add(other.reasons);
        self.plan_edits.add(other.plan_edits);
        self.as_users.add(other.as_users);
        self.typed_lines.add(other.typed_lines);
        self.clutter.add(other.clutter);
        self.false_edits.add(other.false_edits);
        self.used.add(other.used);
    }
}

/// Judges the summaries of every large session with made-up exchanges planted in it, and prints the
/// measures. Writes examples of each fault into `faults.txt` in `texts`.
pub(super) fn print(sessions: &[Session], texts: Option<&Path>) -> Result<(), Error> {
    let lines = LineScanner::new()?;
    let counter = Bpe::o200k();
    let mut faults = Faults::default();
    let mut by_budget: BTreeMap<(bool, u64), Trust> = BTreeMap::new();
    for (n, session) in chosen(sessions).into_iter().enumerate() {
        let planted = plant(&session.as_sent, n);
        let views: Vec<&Message> = planted.messages.iter().collect();
        let total: u64 = views.iter().map(|view| counter.message(view).0).sum();
        let truth = Truth::of(session, &planted);
        let shares = PERCENT.map(|percent| (false, percent, total * percent / 100));
        let fixed = (total >= 2 * FIXED).then_some((true, FIXED, FIXED));
        let all = shares.into_iter().chain(fixed);
        for (is_fixed, name, budget) in all.filter(|(.., budget)| *budget >= BUDGET_MIN) {
            let text = ours(&views, Tokens(budget));
            let judge = Judge {
                lines: &lines,
                session: &session.id,
            };
            let mut trust = judge.judge(&text, &planted, &truth, &mut faults);
            trust
                .used
                .count(counter.text(&text).0 * 100 >= budget * USED);
            by_budget.entry((is_fixed, name)).or_default().add(&trust);
        }
    }
    println!("\n### What can be trusted, by budget\n");
    println!("Sessions with made-up exchanges in them; a share of all lines, words or tokens.\n");
    let names = by_budget.keys().map(|(is_fixed, name)| match is_fixed {
        true => name.to_string(),
        false => format!("{name} %"),
    });
    println!("| | required | {} |", names.collect::<Vec<_>>().join(" | "));
    println!("|---|---|{}", "--:|".repeat(by_budget.len()));
    for (name, required, share) in MEASURES {
        let cells = by_budget.values().map(|one| {
            let share = share(one);
            format!("{} of {}", percent(share.part()), share.of)
        });
        println!(
            "| {name} | {required} | {} |",
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    let Some(folder) = texts else {
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let text: String = faults.0.into_iter().collect();
    let path = folder.join("faults.txt");
    std::fs::write(&path, text).map_err(Error::file(&path))
}

/// Returns the sessions that are judged: not too small, and not too many of one source.
fn chosen(sessions: &[Session]) -> Vec<&Session> {
    let mut of_source: HashMap<&str, usize> = HashMap::new();
    let enough = sessions.iter().filter(|session| {
        let count = of_source.entry(session.source()).or_default();
        let is_taken = session.span(session.messages.len()) >= LEAST && *count < SOURCE_MAX;
        *count += usize::from(is_taken);
        is_taken
    });
    enough.collect()
}

/// The facts about a session, independent of its summary.
struct Truth {
    /// Everything that a person said, normalised.
    typed: String,
    /// The person's texts that came through tools, and the answered questions, normalised.
    words: Vec<String>,
    /// The lines of a plan that a person approved, normalised.
    plan: Vec<String>,
    /// Files with a failed edit, and the number of successful edits of each.
    edits: HashMap<String, u32>,
}

impl Truth {
    fn of(session: &Session, planted: &PlantedSession) -> Self {
        let mut all = typed(session);
        all.extend(planted.words().map(str::to_owned));
        for message in planted.messages.iter().filter(|message| message.is_user()) {
            let text = message.text();
            all.extend(commands(&text).map(str::to_owned));
        }
        let mut made: HashMap<String, u32> = HashMap::new();
        let mut failed: Vec<String> = Vec::new();
        // Commands that edit in place also count as successful edits.
        let mut in_place: Vec<String> = Vec::new();
        let mut open: HashMap<&str, String> = HashMap::new();
        for message in &planted.messages {
            for call in message.calls() {
                let name = call.name.to_lowercase();
                in_place
                    .extend(Some(plain(&call.arguments)).filter(|text| text.contains(IN_PLACE)));
                let is_view = call.arguments.contains("\"view\"");
                if EDITS.contains(&name.as_str()) && !is_view {
                    open.extend(path(&call.arguments).map(|path| (call.id.0.as_str(), path)));
                }
            }
            let Message::ToolResult(result) = message else {
                continue;
            };
            let Some(path) = open.remove(result.call.0.as_str()) else {
                continue;
            };
            let text = message.text();
            let text = text.trim_start_matches("OBSERVATION:").trim_start();
            if result.is_error || NOT_MADE.iter().any(|start| text.starts_with(start)) {
                failed.push(path);
            } else {
                *made.entry(path).or_default() += 1;
            }
        }
        failed.extend(planted.unedited.iter().cloned());
        let edits = failed.into_iter().map(|path| {
            // A command may name the file from another folder, and edit it several times.
            let name = path.rsplit('/').next().unwrap_or(&path);
            let by_command = in_place.iter().filter(|command| command.contains(name));
            let by_command = by_command.map(|command| command.matches(IN_PLACE).count());
            let by_command = u32::try_from(by_command.sum::<usize>()).unwrap_or(u32::MAX);
            let count = made.get(&path).copied().unwrap_or_default();
            (path, count.saturating_add(by_command))
        });
        Self {
            typed: normal(&all.join("\n")),
            words: planted
                .words()
                .chain(planted.questions.iter().map(String::as_str))
                .map(normal)
                .collect(),
            plan: planted.plan.lines().map(normal).collect(),
            edits: edits.collect(),
        }
    }

    /// Checks whether a person typed a line, which may have gaps. Returns `None` if the line only
    /// introduces the next ones, or repeats an approved plan.
    fn is_typed(&self, line: &str) -> Option<bool> {
        let line = normal(line);
        if self.words.iter().any(|words| line.contains(words)) {
            return Some(true);
        }
        let line = match line.strip_prefix('(').and_then(|line| line.split_once(')')) {
            Some((label, rest)) if LABELS.iter().any(|word| label.starts_with(word)) => rest,
            _ => line.as_str(),
        };
        let line = line.trim_start_matches("! ").trim();
        if line.is_empty() || self.plan.iter().any(|step| step == line) {
            return None;
        }
        let mut pieces = line.split('…').map(str::trim);
        Some(pieces.all(|piece| self.typed.contains(piece)))
    }
}

/// Returns the file in a call's arguments.
fn path(arguments: &str) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
    if let Some(patch) = arguments.get("input").and_then(serde_json::Value::as_str) {
        let line = patch.lines().find_map(|line| {
            let line = line.strip_prefix("*** Update File: ");
            line.map(str::to_owned)
        });
        return line;
    }
    let path = PATHS
        .iter()
        .find_map(|key| arguments.get(key).and_then(serde_json::Value::as_str));
    path.map(str::to_owned)
}

/// Judges one text.
struct Judge<'a> {
    lines: &'a LineScanner,
    session: &'a str,
}

impl Judge<'_> {
    fn judge(
        &self,
        text: &str,
        planted: &PlantedSession,
        truth: &Truth,
        faults: &mut Faults,
    ) -> Trust {
        let summary = Summary::of(text);
        let mut found = Trust::default();
        let whole = normal(text);
        let users: Vec<String> = summary
            .of_kind(SummaryItemKind::User)
            .map(|item| item.lines.join("\n"))
            .collect();
        let said = normal(&users.join("\n"));
        let kinds = [
            (&mut found.answers, &planted.answers, "answers lost"),
            (&mut found.reasons, &planted.reasons, "reasons lost"),
            (
                &mut found.plan_edits,
                &planted.plan_edits,
                "plan edits lost",
            ),
        ];
        for (share, words, lost) in kinds {
            for word in words {
                let word = normal(word);
                share.count(whole.contains(&word));
                found.as_users.count(said.contains(&word));
                if !whole.contains(&word) {
                    faults.add(lost, self.session, &word);
                }
            }
        }
        for line in users.iter().flat_map(|item| item.lines()) {
            let Some(is_typed) = truth.is_typed(line) else {
                continue;
            };
            found.typed_lines.count(is_typed);
            if !is_typed {
                faults.add("not typed by the user", self.session, line);
            }
        }
        found.clutter = self
            .lines
            .clutter(&summary, |line| faults.add("clutter", self.session, line));
        for (path, made) in &truth.edits {
            if let Some((told, line)) = self.edit_told(&summary, path, *made) {
                found.false_edits.count(told);
                if told {
                    faults.add("edits told that were not made", self.session, line);
                }
            }
        }
        found
    }

    /// Checks whether the summary reports an edit of a file that was not made. Returns `None` if it
    /// does not mention the file.
    fn edit_told<'t>(
        &self,
        summary: &Summary<'t>,
        path: &str,
        made: u32,
    ) -> Option<(bool, &'t str)> {
        let mut mentioned = None;
        for item in summary.of_kind(SummaryItemKind::Report) {
            let line = item.lines.first().copied().unwrap_or_default();
            if let Some((shown, acts)) = self.lines.file(line) {
                if shown != path && !path.ends_with(&format!("/{shown}")) {
                    continue;
                }
                let tells = acts.split(", ").any(|act| DONE.contains(&act));
                if tells && made == 0 {
                    return Some((true, line));
                }
                mentioned = Some((false, line));
                continue;
            }
            if !line.contains(path) {
                continue;
            }
            let lower = plain(line).to_lowercase();
            let words: Vec<&str> = lower
                .split(|c: char| !c.is_ascii_alphabetic() && c != '_')
                .filter(|word| !word.is_empty())
                .collect();
            let tells = words.iter().any(|word| DONE.contains(word));
            let denies = words.iter().any(|word| NOT_DONE.contains(word));
            if made == 0 && tells && !denies {
                return Some((true, line));
            }
            mentioned = Some((false, line));
        }
        mentioned
    }
}
