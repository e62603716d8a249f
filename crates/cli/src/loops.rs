//! `plimsoll sessions loops` and `undo`: lists the runs of a session, and undoes the newest ones.

use std::sync::Arc;

use plimsoll::machine::{Run, Setup, Step};
use plimsoll::policy::Policy;
use plimsoll::session::{LoopReader, LoopRecord};
use plimsoll::store::SessionReader;
use plimsoll::store::SqliteStore;
use plimsoll::tokens::Chars4;
use plimsoll::{SessionId, SessionStore};
use serde_json::json;

use crate::count::preview;
use crate::exit::{DONE, Stop};
use crate::files;
use crate::out::out;

/// Lists the runs of a session.
pub(crate) async fn list(
    store: &impl SessionReader,
    id: &SessionId,
    json: bool,
) -> Result<u8, Stop> {
    let records = records(store, id).await?;
    if records.is_empty() && !json {
        crate::say(&format!("session {id} has no run yet"));
    }
    if json {
        for record in &records {
            out!("{}", serde_json::to_string(record).map_err(Stop::failed)?);
        }
        return Ok(DONE);
    }
    let width = records.iter().map(|record| record.id.to_string().len());
    let width = width.max().unwrap_or(0).max(4);
    if !records.is_empty() {
        out!(
            "{:<width$}  {:>11}  {:>5}  {:>5}  {:>8}  {:>8}  {:>9}  {:<22}  prompt",
            "loop",
            "entries",
            "turns",
            "tools",
            "read",
            "wrote",
            "cost",
            "outcome"
        );
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
) -> Result<u8, Stop> {
    let lease = store.acquire(id).await.map_err(Stop::failed)?;
    let log = store.load(id).await.map_err(Stop::failed)?;
    // The tokens do not matter here, so the fastest counter is used.
    let setup = Setup::new("", Arc::new(Chars4), Policy::unlimited());
    let mut run = Run::resume(&log, setup).map_err(Stop::failed)?;
    let mut undone = Vec::new();
    for _ in 0..runs {
        undone.push(run.undo().map_err(Stop::usage)?);
    }
    let mut entries = Vec::new();
    loop {
        match run.poll() {
            Step::Record(entry) => entries.push(entry),
            Step::Wait => break,
            _ => {}
        }
    }
    store.append(&lease, &entries).await.map_err(Stop::failed)?;
    if json {
        let restored = match restore_files {
            true => files::offer(store, id, &undone, true).await?,
            false => Vec::new(),
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
    crate::note(&format!(
        "{what}: the view is as it was before; the log keeps it, and what \
         its tools did is done"
    ));
    files::offer(store, id, &undone, restore_files).await?;
    Ok(DONE)
}

async fn records(store: &impl SessionReader, id: &SessionId) -> Result<Vec<LoopRecord>, Stop> {
    let mut reader = LoopReader::new(id.as_str());
    let mut after = 0;
    loop {
        let page = store.page(id, after).await.map_err(Stop::failed)?;
        let Some(last) = page.last() else {
            return Ok(reader.records());
        };
        after = last.n;
        for line in &page {
            reader.read(&line.entry);
        }
    }
}

/// Describes the end of a run in a few words.
fn outcome(record: &LoopRecord) -> String {
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
