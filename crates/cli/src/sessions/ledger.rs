//! `plimsoll sessions ledger`: lists the messages that plans removed from a session's view or
//! shortened, with the time, the reason and the tokens.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use plimsoll::context::{Item, Seq};
use plimsoll::machine::Entry;
use plimsoll::model::CallId;
use plimsoll::policy::{Edit, Plan};
use plimsoll::recall::{MessageKind, RecallId, recall_text};
use plimsoll::store::{LogEntry, SessionReader};
use plimsoll::tokens::Bpe;
use plimsoll::{SessionId, Tokens};
use serde::Serialize;

use crate::error::{CliError, DONE};
use crate::sessions::entries::each_entry;
use crate::terminal::fitted;
use crate::terminal::text::counted;
use crate::view_reader::{ViewChange, ViewReader};

/// A message that a plan removed from the view or shortened.
#[derive(Debug, Serialize)]
struct LedgerRow {
    /// Seconds since 1970.
    at: u64,
    /// The plan's number in the session, from 1.
    plan: u64,
    id: RecallId,
    kind: MessageKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The most informative argument of the call.
    #[serde(skip)]
    argument: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    how: RemovalKind,
    /// The tokens in the view before the plan, and after it.
    tokens: Tokens,
    after: Tokens,
    /// The length of the original's text, in bytes.
    bytes: u64,
    why: &'static str,
    stages: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RemovalKind {
    Dropped,
    Shortened,
    Summarized,
}

/// Reads a log from its beginning and collects the rows.
struct LedgerReader {
    log: ViewReader,
    /// The length of each original's text, in bytes.
    bytes: HashMap<Seq, u64>,
    plans: u64,
    rows: Vec<LedgerRow>,
}

/// Runs the command.
pub(crate) async fn run(
    store: &impl SessionReader,
    id: &SessionId,
    json: bool,
) -> Result<u8, CliError> {
    let mut reader = LedgerReader::new();
    each_entry(store, id, 0, |line| reader.read(line)).await?;
    let rows = reader.rows;
    if json {
        for row in &rows {
            out!("{}", serde_json::to_string(row)?);
        }
        return Ok(DONE);
    }
    table(id, &rows, reader.plans)
}

impl LedgerReader {
    fn new() -> Self {
        Self {
            log: ViewReader::new(Bpe::o200k()),
            bytes: HashMap::new(),
            plans: 0,
            rows: Vec::new(),
        }
    }

    fn read(&mut self, line: &LogEntry) -> Result<(), CliError> {
        let ViewChange { added, replaced } =
            self.log.read(&line.entry).map_err(CliError::failed)?;
        for item in added {
            let bytes = recall_text(&item.message).len() as u64;
            self.bytes.insert(item.seq, bytes);
        }
        if let Entry::PlanApplied { plan } = &line.entry {
            self.plans += 1;
            self.add_rows(line.at, plan, &replaced);
        }
        Ok(())
    }

    /// Adds a row for each message that a plan removed or replaced.
    fn add_rows(&mut self, at: u64, plan: &Plan, replaced: &[Item]) {
        let view = self.log.view();
        let how = |seq: Seq| {
            let removed = plan.edits.iter().find_map(|edit| match edit {
                Edit::Drop { first, last, .. } => {
                    let is_dropped = (first..=last).contains(&&seq);
                    is_dropped.then_some(RemovalKind::Dropped)
                }
                Edit::Summarize { covers, .. } => {
                    let mut ranges = covers.iter();
                    let is_covered = ranges.any(|range| (range.first..=range.last).contains(&seq));
                    is_covered.then_some(RemovalKind::Summarized)
                }
                Edit::Shrink { .. } => None,
            });
            removed.unwrap_or(RemovalKind::Shortened)
        };
        for was in replaced {
            let now = view.get(was.seq);
            let how = how(was.seq);
            let (call, tool) = self.log.call(&was.message);
            self.rows.push(LedgerRow {
                at,
                plan: self.plans,
                id: RecallId(was.seq),
                kind: MessageKind::of(&was.message),
                tool,
                argument: self.log.argument(call.as_ref()),
                call,
                how,
                tokens: was.tokens,
                after: match (how, now) {
                    (RemovalKind::Shortened, Some(now)) => now.tokens,
                    _ => Tokens::ZERO,
                },
                bytes: self.bytes.get(&was.seq).copied().unwrap_or(0),
                why: plan.why.word(),
                stages: plan.stages.clone(),
            });
        }
    }
}

impl LedgerRow {
    /// Formats the row. The call comes last, because it is cut to the width of the terminal.
    fn line(&self) -> String {
        let what = match &self.tool {
            Some(tool) => format!("result of {tool} {}", self.argument),
            None => self.kind.to_string(),
        };
        let how = match self.how {
            RemovalKind::Dropped => "dropped",
            RemovalKind::Shortened => "shortened",
            RemovalKind::Summarized => "summarized",
        };
        let (id, tokens) = (
            self.id.to_string(),
            format!("{} -> {}", self.tokens, self.after),
        );
        format!(
            "  {id:<6} {how:<10} {tokens:>16} tokens  {}",
            what.trim_end()
        )
    }
}

fn table(id: &SessionId, rows: &[LedgerRow], plans: u64) -> Result<u8, CliError> {
    if rows.is_empty() {
        out!("session {id}: nothing was evicted");
        return Ok(DONE);
    }
    out!(
        "session {id}: {} removed or shortened {}",
        counted(plans, "plan"),
        counted(rows.len(), "message")
    );
    let terminal = console::Term::stdout();
    let mut plan = 0;
    for row in rows {
        if row.plan != plan {
            plan = row.plan;
            let (when, stages) = (when(row.at), row.stages.join(", "));
            let line = format!("plan {plan}, {when}, {}: {stages}", row.why);
            out!("{}", fitted(&line, &terminal));
        }
        out!("{}", fitted(&row.line(), &terminal));
    }
    if let Some(row) = rows.first() {
        out!("To get one back: plimsoll sessions recall {id} {}", row.id);
    }
    Ok(DONE)
}

/// Formats a time, for example `21 Nov 2026 13:02:11`.
pub(crate) fn when(at: u64) -> String {
    let Some(time) = UNIX_EPOCH.checked_add(Duration::from_secs(at.min(MAX_DATE))) else {
        return at.to_string();
    };
    let date = httpdate::fmt_http_date(time);
    let inner = date.split_whitespace().skip(1).take(4);
    inner.collect::<Vec<_>>().join(" ")
}

/// The end of the year 9999, the last date that can be formatted.
const MAX_DATE: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll::Message;

    use std::sync::Arc;

    use plimsoll::policy::Trigger;
    use plimsoll::tokens::TokenCounter;
    use serde_json::json;

    #[test]
    fn what_is_dropped_beside_a_summary_is_not_called_summarized() {
        let mut reader = LedgerReader::new();
        let mut n = 0;
        let mut read = |reader: &mut LedgerReader, entry: Entry| {
            n += 1;
            let line = LogEntry { n, at: 1, entry };
            assert!(reader.read(&line).is_ok());
        };
        for _ in 0..6 {
            let text = "all is well on the whole ship ".repeat(20);
            let message = Arc::new(Message::user(text));
            read(
                &mut reader,
                Entry::Message {
                    message,
                    queued: None,
                },
            );
        }
        let view = reader.log.view();
        let weight = |seq: u64| view.get(Seq(seq)).map_or(Tokens::ZERO, |item| item.tokens);
        let message = Message::Summary {
            text: "all is well".to_owned(),
        };
        let tokens = Bpe::o200k().message(&message);
        let marker = Message::Notice {
            text: "[2 messages were removed here]".to_owned(),
        };
        let of_marker = Bpe::o200k().message(&marker);
        let gone: Tokens = [0, 1, 2, 4].map(weight).into_iter().sum();
        let range = |first, last| json!({ "first": first, "last": last });
        let plan = json!({
            "why": Trigger::Request,
            "stages": ["evict", "summarize"],
            "edits": [
                {
                    "edit": "drop",
                    "first": 0,
                    "last": 1,
                    "marker": { "message": marker, "tokens": of_marker },
                },
                {
                    "edit": "summarize",
                    "covers": [range(2, 2), range(4, 4)],
                    "to": { "message": message, "tokens": tokens },
                },
            ],
            "before": view.tokens(),
            "frees": gone.minus(tokens).minus(of_marker),
            "rewrites_from": null,
        });
        let plan = serde_json::from_value(plan).unwrap();
        read(&mut reader, Entry::PlanApplied { plan });
        let rows: Vec<(u64, RemovalKind)> = reader
            .rows
            .iter()
            .map(|row| (row.id.0.0, row.how))
            .collect();
        let wanted = [
            (0, RemovalKind::Dropped),
            (1, RemovalKind::Dropped),
            (2, RemovalKind::Summarized),
            (4, RemovalKind::Summarized),
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn a_time_is_written_for_people() {
        assert_eq!(when(0), "01 Jan 1970 00:00:00");
        assert_eq!(when(1_795_266_131), "21 Nov 2026 13:02:11");
        assert_eq!(when(u64::MAX), "31 Dec 9999 23:59:59");
    }
}
