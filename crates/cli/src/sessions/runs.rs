//! `plimsoll sessions runs` and `undo`: lists the runs of a session, and undoes the newest one.

use std::sync::Arc;

use plimsoll::machine::{Entry, Run, Setup, Step};
use plimsoll::policy::Policy;
use plimsoll::session::{RunReader, RunRecord};
use plimsoll::store::{LogEntry, SessionReader, SqliteStore};
use plimsoll::tokens::Chars4;
use plimsoll::{SessionId, SessionStore};

use crate::count::preview;
use crate::error::{CliError, DONE};
use crate::listing;
use crate::sessions::entries::each_entry;
use crate::sessions::files::RestoreSet;

const HEADING: [&str; 9] = [
    "run", "outcome", ">cost", ">entries", ">turns", ">tools", ">read", ">wrote", "prompt",
];

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// The session
    pub(crate) id: String,
    /// Also restore the files that it changed
    #[arg(long)]
    files: bool,
}

/// Lists the runs of a session.
pub(crate) async fn list(
    store: &impl SessionReader,
    id: &SessionId,
    json: bool,
) -> Result<u8, CliError> {
    let mut reader = RunReader::new(id.as_str());
    let each = |line: &mut LogEntry| {
        reader.read(&line.entry);
        Ok::<_, CliError>(())
    };
    each_entry(store, id, 0, each).await?;
    let records = reader.records();
    if records.is_empty() && !json {
        say!("session {id} has no run yet");
    }
    listing::print(&records, json, HEADING, |record| {
        let prompt = record.prompt.as_ref();
        [
            record.id.clone(),
            outcome(record),
            listing::cost(record.cost),
            format!("{}-{}", record.first, record.last),
            record.turns.to_string(),
            record.tool_calls.to_string(),
            record.usage.processed().to_string(),
            record.usage.output.to_string(),
            prompt.map_or_else(String::new, |prompt| preview(prompt)),
        ]
    })?;
    Ok(DONE)
}

/// Undoes the newest run that is not undone yet.
pub(crate) async fn undo(
    store: &SqliteStore,
    id: &SessionId,
    args: &UndoArgs,
) -> Result<u8, CliError> {
    let lease = store.acquire(id).await?;
    let log = store.load(id).await?;
    let mut run = idle_run(&log)?;
    let number = run.undo().map_err(CliError::usage)?;
    store.append(&lease, &recorded(&mut run)).await?;
    note!(
        "run {number} of session {id} is undone: the model no longer sees it; the log keeps it, and \
         the effects of its tools remain"
    );
    let set = RestoreSet::of_run(store, id, &log, number).await?;
    set.refused.iter().for_each(|why| crate::note(why));
    if args.files && !set.is_empty() {
        note!("restored {}", set.make(store).await?.join(", "));
    } else if !set.is_empty() {
        crate::note(&set.later());
    }
    Ok(DONE)
}

/// Resumes the session's last run, to record what a command does to the session. No model is called,
/// so the fastest counter is used.
pub(crate) fn idle_run(log: &[Entry]) -> Result<Run, CliError> {
    let setup = Setup::new("", Arc::new(Chars4), Policy::unlimited());
    Ok(Run::resume(log, setup)?)
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
