//! The results of a scenario, as a row of the table and as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll::machine::Entry;
use serde_json::{Value, json};

/// Maximum number of printed violations. All are counted.
const SHOWN: usize = 50;

/// The results of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) seed: u64,
    /// The numbers of killed processes, by kind.
    pub(crate) kills: Vec<(&'static str, u64)>,
    /// The numbers of paused processes, by kind.
    pub(crate) pauses: Vec<(&'static str, u64)>,
    /// The number of sessions that were begun, and of those that have ended.
    pub(crate) sessions: u64,
    pub(crate) ended: u64,
    /// The number of entries in all logs.
    pub(crate) entries: u64,
    /// The number of requests to the model, and of those that repeated a turn.
    pub(crate) requests: u64,
    pub(crate) repeated: u64,
    /// The number of lines in the ledger, and of calls with unknown outcome.
    pub(crate) effects: u64,
    pub(crate) unknown: u64,
    pub(crate) took: Duration,
    pub(crate) violations: Vec<Violation>,
    /// Reasons why less was done than requested.
    pub(crate) notes: Vec<String>,
}

/// A violation.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) session: Option<String>,
    pub(crate) what: String,
    /// The session's log as JSON lines.
    pub(crate) log: Option<PathBuf>,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(name: &'static str, seed: u64) -> Self {
        Self {
            name,
            seed,
            ..Self::default()
        }
    }

    /// Adds violations of a session, and writes its log into the folder.
    pub(crate) fn blame(&mut self, folder: &Path, session: &str, log: &[Entry], what: Vec<String>) {
        if what.is_empty() {
            return;
        }
        let path = folder.join(format!("seed-{}-{session}.jsonl", self.seed));
        let lines: String = log
            .iter()
            .filter_map(|entry| serde_json::to_string(entry).ok())
            .map(|line| line + "\n")
            .collect();
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, lines));
        if let Err(error) = written {
            self.notes
                .push(format!("{} cannot be written: {error}", path.display()));
        }
        for what in what {
            self.violations.push(Violation {
                session: Some(session.to_owned()),
                what,
                log: Some(path.clone()),
            });
        }
    }

    /// Adds a violation that belongs to no particular session.
    pub(crate) fn blame_all(&mut self, what: impl Into<String>) {
        self.violations.push(Violation {
            session: None,
            what: what.into(),
            log: None,
        });
    }

    /// Returns the report as JSON.
    pub(crate) fn json(&self) -> Value {
        let counts = |counts: &[(&'static str, u64)]| -> Value {
            let pairs = counts
                .iter()
                .map(|(name, n)| ((*name).to_owned(), json!(n)));
            Value::Object(pairs.collect())
        };
        let violations: Vec<Value> = self
            .violations
            .iter()
            .map(|violation| {
                json!({
                    "session": violation.session,
                    "what": violation.what,
                    "log": violation.log,
                    "seed": self.seed,
                })
            })
            .collect();
        json!({
            "scenario": self.name,
            "seed": self.seed,
            "kills": counts(&self.kills),
            "pauses": counts(&self.pauses),
            "sessions": self.sessions,
            "ended": self.ended,
            "entries": self.entries,
            "requests": self.requests,
            "repeated": self.repeated,
            "effects": self.effects,
            "unknown": self.unknown,
            "seconds": self.took.as_secs(),
            "violations": violations,
            "notes": self.notes,
        })
    }

    fn row(&self) -> String {
        let counts = |counts: &[(&'static str, u64)]| {
            let named: Vec<String> = counts
                .iter()
                .filter(|(_, n)| *n > 0)
                .map(|(name, n)| format!("{n} {name}"))
                .collect();
            if named.is_empty() {
                "0".to_owned()
            } else {
                named.join(", ")
            }
        };
        format!(
            "| {} | {} | {} | {} of {} | {} | {} ({}) | {} ({}) | {} | {} |",
            self.name,
            counts(&self.kills),
            counts(&self.pauses),
            self.ended,
            self.sessions,
            self.entries,
            self.requests,
            self.repeated,
            self.effects,
            self.unknown,
            self.took.as_secs(),
            self.violations.len(),
        )
    }
}

/// Returns the table, followed by the violations and notes.
pub(crate) fn table(reports: &[Report]) -> String {
    let mut text = String::from(
        "| scenario | kills | pauses | sessions ended | entries | requests (again) | effects (unknown) | seconds | violations |\n\
         |---|---|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for report in reports {
        text.push_str(&report.row());
        text.push('\n');
    }
    for report in reports {
        for note in &report.notes {
            text.push_str(&format!("{}: {note}\n", report.name));
        }
        for violation in report.violations.iter().take(SHOWN) {
            let session = violation.session.as_deref().unwrap_or("all sessions");
            text.push_str(&format!(
                "VIOLATION: {}, {session}: {} (seed {}",
                report.name, violation.what, report.seed
            ));
            if let Some(log) = &violation.log {
                text.push_str(&format!(", log {}", log.display()));
            }
            text.push_str(")\n");
        }
        if report.violations.len() > SHOWN {
            let more = report.violations.len() - SHOWN;
            text.push_str(&format!("{}: and {more} more\n", report.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_its_session_its_log_and_the_seed() {
        let folder = tempfile::tempdir().unwrap();
        let mut report = Report::new("local", 7);
        report.kills = vec![("run", 3)];
        report.blame(folder.path(), "s-0001", &[], vec!["it is lost".to_owned()]);
        let text = table(&[report]);
        let log = folder.path().join("seed-7-s-0001.jsonl");
        assert!(log.is_file());
        assert!(text.contains("| local | 3 run | 0 |"), "{text}");
        let line = format!("local, s-0001: it is lost (seed 7, log {})", log.display());
        assert!(text.contains(&line), "{text}");
    }
}
