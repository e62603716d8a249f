//! [`Line`]: one entry with its number and time; and the export of sessions as JSON lines: of each a
//! [`Header`] and its entries. The way back is in `import`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_core::{Fork, SessionId, SessionInfo, SessionStore, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::checksum;
use crate::connection::{blocking, done};
use crate::fault;
use crate::read::{Raw, bad_entry, to_column};
use crate::retention::forks_first;
use crate::sqlite::SqliteStore;

/// The version of an export. In the first, a session had no line with its name.
pub const EXPORT_VERSION: u64 = 2;

/// One entry of a log, and one line of an export, which has a checksum besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its number in its session, from 1, without a gap.
    pub n: u64,
    /// Seconds since 1970 when it was written; within a log it never falls.
    pub at: u64,
    /// The entry.
    pub entry: Entry,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be written to where it should go.
    #[error("the export cannot be written: {0}; check where it goes, then export again")]
    Write(#[from] io::Error),
}

/// The first line of each session in an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) session: SessionId,
    pub(crate) version: u64,
    /// Its place among the sessions of the export, from 1, and how many these are.
    pub(crate) number: u64,
    pub(crate) of: u64,
    /// Its place by the time of the last write: 1 is the session that was written first.
    pub(crate) order: u64,
    pub(crate) title: String,
    /// Seconds since 1970 of its first and of its last entry.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// The entries of its log, those that it shares included.
    pub(crate) entries: u64,
    /// What it is a fork of, if that stands before it in the export. Then only its own entries follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<Fork>,
    /// What is to be stored beside the log: an object, or any other text as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<Box<RawValue>>,
    /// The checksum of the line without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sum: Option<String>,
}

/// A line of an export with the entry exactly as the file has it.
#[derive(Serialize)]
struct RawLine<'a> {
    n: u64,
    at: u64,
    entry: &'a RawValue,
    sum: String,
}

impl SqliteStore {
    /// Writes sessions as JSON lines and gives the writer back. Each begins with a line that has its name,
    /// title and times, `{"session":"tour","version":2,…}`. A line for each entry follows,
    /// `{"n":1,"at":1767225600,"entry":{…},"sum":"…"}`, byte for byte as the file has it. With each session go
    /// the settings that [`Self::import`] is to store, if any; nothing else of [`Self::settings`] is written.
    ///
    /// A fork is written with its own entries only, after what it is a fork of, if that is among `sessions`;
    /// otherwise with all entries, as a session of its own. What others append meanwhile is left out, and so
    /// is a session that nothing was ever written to. No more than a page of a log is held at once.
    ///
    /// # Errors
    /// If a log cannot be read, after writing what comes before; or if `out` refuses.
    pub async fn export<W>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError>
    where
        W: Write + Send + 'static,
    {
        let page = |session, after| async move { self.raw_page(&session, after).await };
        export(self.shared_path(), &self.list().await?, sessions, out, page).await
    }
}

/// Writes sessions of a list as JSON lines. `page` returns what a log has behind an entry.
pub(crate) async fn export<W, F>(
    place: &Arc<Path>,
    listed: &[SessionInfo],
    sessions: &BTreeMap<SessionId, Option<String>>,
    mut out: W,
    page: impl Fn(SessionId, u64) -> F,
) -> Result<W, ExportError>
where
    W: Write + Send + 'static,
    F: Future<Output = Result<Vec<Raw>, StoreError>>,
{
    for header in headers(listed, sessions) {
        let (session, entries) = (header.session.clone(), header.entries);
        let mut after = header.fork.as_ref().map_or(0, |fork| fork.entries);
        let written = blocking(place, move || Ok(write(out, &header.into_line())));
        out = written.await??;
        while after < entries {
            let mut page = page(session.clone(), after).await?;
            page.retain(|raw| raw.n <= entries);
            let Some(last) = page.last() else {
                let why =
                    format!("session {session} was deleted meanwhile; export the others again");
                return Err(fault::other(place, why).into());
            };
            after = last.n;
            let (path, session) = (Arc::clone(place), session.clone());
            // Apart from the reading, so that a reader of the export who takes their time keeps
            // nobody else from the file.
            let (written, whole) = blocking(place, move || {
                let (text, whole) = to_lines(&page, &path, &session);
                Ok((write(out, &text), whole))
            })
            .await?;
            out = written?;
            whole?;
        }
    }
    Ok(out)
}

impl Header {
    /// Returns the checksum of the line without its own.
    pub(crate) fn checksum(&self) -> Option<String> {
        let json = serde_json::to_vec(self).ok()?;
        Some(sum_text(checksum::of_header(&json)))
    }

    fn into_line(mut self) -> Vec<u8> {
        self.sum = self.checksum();
        let mut line = serde_json::to_vec(&self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Returns the first lines of sessions, each after those that it is a fork of. `listed` has the session that
/// was written last first.
fn headers(listed: &[SessionInfo], wanted: &BTreeMap<SessionId, Option<String>>) -> Vec<Header> {
    let chosen = listed.iter().filter(|info| wanted.contains_key(&info.id));
    let chosen: Vec<SessionInfo> = chosen.cloned().collect();
    let order = (1..).zip(chosen.iter().rev());
    let order: BTreeMap<&SessionId, u64> = order.map(|(place, info)| (&info.id, place)).collect();
    let header = |(number, info): (u64, &SessionInfo)| {
        let fork = info.fork.as_ref();
        let settings = wanted.get(&info.id).and_then(Option::as_deref);
        Header {
            session: info.id.clone(),
            version: EXPORT_VERSION,
            number,
            of: chosen.len() as u64,
            order: order.get(&info.id).copied().unwrap_or_default(),
            title: info.title.clone(),
            created: info.created,
            updated: info.updated,
            entries: info.entries,
            fork: fork.filter(|fork| order.contains_key(&fork.from)).cloned(),
            settings: settings.and_then(settings_json),
            sum: None,
        }
    };
    let parents_first = forks_first(&chosen).into_iter().rev();
    (1..).zip(parents_first).map(header).collect()
}

/// Puts settings into JSON of one line: an object as it is, any other text as a string.
fn settings_json(text: &str) -> Option<Box<RawValue>> {
    if text.starts_with('{')
        && !text.contains(['\n', '\r'])
        && let Ok(json) = RawValue::from_string(text.to_owned())
    {
        return Some(json);
    }
    to_raw_value(text).ok()
}

/// Writes a checksum as an export has it.
pub(crate) fn sum_text(sum: i64) -> String {
    format!("{:016x}", sum.cast_unsigned())
}

/// Reads one entry.
pub(crate) fn line(raw: &Raw, path: &Path, session: &SessionId) -> Result<Line, StoreError> {
    let entry = serde_json::from_slice(&raw.json)
        .map_err(|error| bad_entry(path, session, raw.n, error))?;
    Ok(Line {
        n: raw.n,
        at: raw.at,
        entry,
    })
}

/// Reads the entries of a page.
pub(crate) fn lines(
    page: &[Raw],
    path: &Path,
    session: &SessionId,
) -> Result<Vec<Line>, StoreError> {
    page.iter().map(|raw| line(raw, path, session)).collect()
}

/// Reads the entries of a log. `page` returns the next page after an entry; it is asked for one while the
/// page before is parsed on another thread.
pub(crate) async fn load<F>(
    path: &Arc<Path>,
    session: &SessionId,
    mut page: impl FnMut(u64) -> F,
) -> Result<Vec<Entry>, StoreError>
where
    F: Future<Output = Result<Vec<Raw>, StoreError>>,
{
    let mut log = Vec::new();
    let mut read = page(0).await?;
    while let Some(last) = read.last() {
        let after = last.n;
        let (at, id) = (Arc::clone(path), session.clone());
        let parsed = tokio::task::spawn_blocking(move || lines(&read, &at, &id));
        let next = page(after).await;
        let lines = done(path, parsed.await)?;
        log.extend(lines.into_iter().map(|line| line.entry));
        read = next?;
    }
    Ok(log)
}

/// Puts a page into JSON lines. An entry that a newer version wrote is passed on as it is; one that
/// is no JSON at all is an error, after the lines before it.
pub(crate) fn to_lines(
    page: &[Raw],
    path: &Path,
    session: &SessionId,
) -> (Vec<u8>, Result<(), StoreError>) {
    let mut text = Vec::new();
    for raw in page {
        let written = serde_json::from_slice(&raw.json).and_then(|entry| {
            let (n, at) = (raw.n, raw.at);
            let sum = checksum::of_entry(to_column(n), to_column(at), &raw.json);
            let sum = sum_text(sum);
            let before = text.len();
            serde_json::to_writer(&mut text, &RawLine { n, at, entry, sum })
                .inspect_err(|_| text.truncate(before))
        });
        if let Err(error) = written {
            return (text, Err(bad_entry(path, session, raw.n, error)));
        }
        text.push(b'\n');
    }
    (text, Ok(()))
}

/// Writes the lines of a page; gives the writer back for the next.
fn write<W: Write>(mut out: W, text: &[u8]) -> io::Result<W> {
    out.write_all(text)?;
    out.flush()?;
    Ok(out)
}
