//! Exports sessions as JSON lines: a [`Header`] and the entries of each session, each with its checksum.
//! `import` reads them back.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use plimsoll_core::{SessionId, SessionInfo, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::columns::{entry_sum, to_column};
use crate::connection::blocking;
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
    /// The number of sessions that follow in the export.
    pub(crate) left: u64,
    pub(crate) title: String,
    /// The times of its first and its last entry, in seconds since 1970.
    pub(crate) created: u64,
    pub(crate) updated: u64,
    /// The number of entries of its log. All of them follow, also those that a fork shares.
    pub(crate) entries: u64,
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
    sessions: &BTreeSet<SessionId>,
    mut out: W,
    page: impl Fn(SessionId, u64) -> F,
) -> Result<W, ExportError>
where
    W: Write + Send + 'static,
    F: Future<Output = Result<Vec<Raw>, StoreError>>,
{
    for header in headers(listed, sessions) {
        let (session, entries) = (header.session.clone(), header.entries);
        let mut after = 0;
        let mut line = serde_json::to_vec(&header).map_err(io::Error::other)?;
        line.push(b'\n');
        let written = blocking(place, move || Ok(write(out, &line)));
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

/// Returns the first lines of sessions, in the order of their last writes. `listed` begins with the
/// session that was written last.
fn headers(listed: &[SessionInfo], wanted: &BTreeSet<SessionId>) -> Vec<Header> {
    let chosen = listed.iter().filter(|info| wanted.contains(&info.id));
    let header = |(left, info): (u64, &SessionInfo)| Header {
        session: info.id.clone(),
        version: EXPORT_VERSION,
        left,
        title: info.title.clone(),
        created: info.created,
        updated: info.updated,
        entries: info.entries,
    };
    let mut headers: Vec<Header> = (0..).zip(chosen).map(header).collect();
    headers.reverse();
    headers
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
