//! `plimsoll sessions runs` and `undo`: lists the runs of a session, and undoes the newest ones.

use std::sync::Arc;

use plimsoll::machine::{Entry, Run, Setup, Step};
use plimsoll::policy::Policy;
use plimsoll::session::{RunReader, RunRecord};
use plimsoll::store::{LogEntry, SessionReader, SqliteStore};
use plimsoll::tokens::Chars4;
use plimsoll::{SessionId, SessionStore};
use serde_json::json;

use crate::count::preview;
use crate::error::{CliError, DONE};
use crate::sessions::entries::each_entry;
use crate::sessions::files;

/// The heading of the table but for its first column, above columns of the same widths.
const HEADING: &str =
    "    entries  turns  tools      read     wrote       cost  outcome                 prompt";

/// Lists the runs of a session.
pub(crate) async fn list(
    store: &impl SessionReader,
    id: &SessionId,
    json: bool,
) -> Result<u8, CliError> {
    let records = records(store, id).await?;
    if records.is_empty() && !json {
        say!("session {id} has no run yet");
    }
    if json {
        for record in &records {
            out!("{}", serde_json::to_string(record)?);
        }
        return Ok(DONE);
    }
    let width = records.iter().map(|record| record.id.to_string().len());
    let width = width.max().unwrap_or(0).max(4);
    if !records.is_empty() {
        out!("{:<width$}  {HEADING}", "run");
    }
    for record in &records {
        let cost = record.cost.whole();
        let cost = cost.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
        let prompt = record.prompt.as_ref();
        out!(
            "{:<width$}  {:>11}  {:>5}  {:>5}  {:>8}  {:>8}  {cost:>9}  {:<22}  {}",
            record.id.to_string(),
            format!("{}-{}", record.first, record.last),
            record.turns,
            record.tool_calls,
            record.usage.processed(),
            record.usage.output,
            outcome(record),
            prompt.map_or_else(String::new, |prompt| preview(prompt)),
        );
    }
    Ok(DONE)
}

/// Undoes the newest `runs` runs that are not undone yet. If there are not enough, undoes none.
pub(crate) async fn undo(
    store: &SqliteStore,
    id: &SessionId,
    runs: u64,
    restore_files: bool,
    json: bool,
) -> Result<u8, CliError> {
    let lease = store.acquire(id).await?;
    let log = store.load(id).await?;
    let mut run = idle_run(&log)?;
    let mut undone = Vec::new();
    for _ in 0..runs {
        undone.push(run.undo().map_err(CliError::usage)?);
    }
    let entries = recorded(&mut run);
    store.append(&lease, &entries).await?;
    if json {
        let restored = if restore_files {
            files::offer(store, id, &undone, true).await?
        } else {
            Vec::new()
        };
        out!(
            "{}",
            json!({ "id": id, "undone": undone, "restored": restored })
        );
        return Ok(DONE);
    }
    let what = match undone.as_slice() {
        [one] => format!("run {one} of session {id} is undone"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("runs {} of session {id} are undone", several.join(", "))
        }
    };
    note!(
        "{what}: the model no longer sees it; the log keeps it, and the effects of its tools remain"
    );
    files::offer(store, id, &undone, restore_files).await?;
    Ok(DONE)
}

/// Resumes the session's last run, to record what a command does to the session. No model is called,
/// so the fastest counter is used.
pub(crate) fn idle_run(log: &[Entry]) -> Result<Run, CliError> {
    let setup = Setup::new("", Arc::new(Chars4), Policy::unlimited());
    Run::resume(log, setup).map_err(CliError::failed)
}

/// Returns the entries that a run wants to record while it is idle.
pub(crate) fn recorded(run: &mut Run) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        match run.poll() {
            Step::Record(entry) => entries.push(entry),
            Step::Wait => return entries,
            _ => {}
        }
    }
}

pub(crate) async fn records(
    store: &impl SessionReader,
    id: &SessionId,
) -> Result<Vec<RunRecord>, CliError> {
    let mut reader = RunReader::new(id.as_str());
    let each = |line: &LogEntry| {
        reader.read(&line.entry);
        Ok::<_, CliError>(())
    };
    each_entry(store, id, 0, each).await?;
    Ok(reader.records())
}

/// Describes the end of a run in a few words.
fn outcome(record: &RunRecord) -> String {
    let mut words = match &record.outcome {
        Some(reason) => reason.word().to_owned(),
        None => "not ended".to_owned(),
    };
    if record.rolled_back {
        words.push_str(", undone");
    }
    if !record.continued.is_empty() {
        words.push_str(", continued");
    }
    words
}
