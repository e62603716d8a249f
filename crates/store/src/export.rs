//! Exports sessions as JSON lines: a [`Header`] and the entries of each session, each with its checksum.
//! `import` reads them back.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::{Fork, SessionId, SessionInfo, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::columns::{entry_sum, header_sum, to_column};
use crate::connection::blocking;
use crate::delete::forks_first;
use crate::fault;
use crate::log::{Raw, bad_entry};

/// The version of an export.
pub const EXPORT_VERSION: u64 = 1;

/// The reason why an export ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The writer returned an error.
    #[error("the export cannot be written: {0}; check its destination, then export again")]
    Write(#[from] io::Error),
}

/// The first line of each session in an export.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) session: SessionId,
    pub(crate) version: u64,
    /// The number of the session within the export, from 1. `of` is the number of sessions.
    pub(crate) number: u64,
    pub(crate) of: u64,
    /// The rank by the time of the last write: 1 is the session that was written first.
    pub(crate) order: u64,
    pub(crate) title: String,
    /// The times of its first and its last entry, in seconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// The number of entries of its log, including shared ones.
    pub(crate) entries: u64,
    /// The session that it was forked from, if that session comes before it in the export. In this
    /// case only its own entries follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<Fork>,
    /// The settings that are stored beside the log: an object, or any other text as a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<Box<RawValue>>,
    /// The checksum of the line without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sum: Option<String>,
}

/// A line of an export with the stored bytes of the entry.
#[derive(Serialize)]
struct RawLine<'a> {
    n: u64,
    at: u64,
    entry: &'a RawValue,
    sum: String,
}

/// Writes listed sessions as JSON lines. `page` returns the entries of a log after a given one.
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
            // Written separately from reading, so that a slow reader of the export does not keep
            // others from the file.
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
    /// Returns the checksum of the line without its `sum`.
    pub(crate) fn checksum(&self) -> Option<String> {
        let json = serde_json::to_vec(self).ok()?;
        Some(sum_text(header_sum(&json)))
    }

    fn into_line(mut self) -> Vec<u8> {
        self.sum = self.checksum();
        let mut line = serde_json::to_vec(&self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// Returns the first lines of sessions. Each session follows the session that it was forked from.
/// `listed` begins with the session that was written last.
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

/// Converts settings to JSON of one line: an object stays unchanged, any other text becomes a
/// string.
fn settings_json(text: &str) -> Option<Box<RawValue>> {
    if text.starts_with('{')
        && !text.contains(['\n', '\r'])
        && let Ok(json) = RawValue::from_string(text.to_owned())
    {
        return Some(json);
    }
    to_raw_value(text).ok()
}

/// Formats a checksum for an export.
pub(crate) fn sum_text(sum: i64) -> String {
    format!("{:016x}", sum.cast_unsigned())
}

/// Converts a page to JSON lines. Entries of a newer version are passed on unchanged. Invalid JSON
/// is an error, returned with the lines before it.
pub(crate) fn to_lines(
    page: &[Raw],
    path: &Path,
    session: &SessionId,
) -> (Vec<u8>, Result<(), StoreError>) {
    let mut text = Vec::new();
    for raw in page {
        let written = serde_json::from_slice(&raw.json).and_then(|entry| {
            let (n, at) = (raw.n, raw.at);
            let sum = entry_sum(to_column(n), to_column(at), &raw.json);
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

/// Writes the lines of a page. Returns the writer.
fn write<W: Write>(mut out: W, text: &[u8]) -> io::Result<W> {
    out.write_all(text)?;
    out.flush()?;
    Ok(out)
}
