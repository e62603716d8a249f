//! Reads logs in PostgreSQL: a page or the whole log. The rows of sessions are read in `postgres`.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_agent::Entry;
use plimsoll_core::{MAX_FORK_DEPTH, SessionId, StoreError};
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgPool, Postgres, Row};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::fault;
use crate::columns::{ALTERED, entry_sum, from_column, to_column};
use crate::connection::done;
use crate::read::{PAGE_ENTRIES, Raw, bad_entry};

/// Maximum number of connections that read one log. With two, the server reads a page while another
/// is sent.
const LANES: usize = 2;

/// A session whose log, or the beginning of it, belongs to the log of a session.
pub(super) struct LogAncestor {
    pub(super) key: i64,
    pub(super) shared: u64,
    pub(super) entries: u64,
}

/// A range of entries: those after `before`, up to `last`.
#[derive(Clone, Copy)]
struct Range {
    key: i64,
    before: u64,
    last: u64,
}

/// The state of reading a log.
struct LogReader {
    place: Arc<str>,
    session: SessionId,
    /// The ranges that no lane has begun yet, with their positions in the log.
    left: Mutex<VecDeque<(usize, Range)>>,
}

/// Returns the session and its ancestors, beginning with the session. Empty if the session has no
/// log.
pub(super) async fn lineage(
    connection: &mut PgConnection,
    session: &SessionId,
) -> sqlx::Result<Vec<LogAncestor>> {
    let rows = sqlx::query(
        "WITH RECURSIVE kin (depth, key, shared, entries, parent) AS (
           SELECT 0::bigint, key, shared, entries, parent FROM sessions WHERE id = $1
           UNION ALL
           SELECT depth + 1, own.key, own.shared, least(kin.entries, kin.shared), own.parent
           FROM kin JOIN sessions AS own ON own.key = kin.parent WHERE depth < $2
         ) SELECT key, shared, entries FROM kin ORDER BY depth",
    )
    .bind(session.as_str())
    .bind(to_column(MAX_FORK_DEPTH))
    .fetch_all(connection)
    .await?;
    let kin = rows.iter().map(|row| {
        Ok(LogAncestor {
            key: row.try_get("key")?,
            shared: from_column(row.try_get("shared")?),
            entries: from_column(row.try_get("entries")?),
        })
    });
    kin.collect()
}

/// Reads the entries after `after`, up to one page. Empty at the end of the log.
pub(super) async fn page(
    pool: &PgPool,
    place: &str,
    session: &SessionId,
    after: u64,
) -> Result<Vec<Raw>, StoreError> {
    let fault = fault(place);
    let mut connection = pool.acquire().await.map_err(&fault)?;
    // A log only grows, so the lineage stays valid while its entries are read.
    let kin = lineage(&mut connection, session).await.map_err(&fault)?;
    let mut page = Vec::new();
    for mut range in ranges(&kin, after) {
        let room = PAGE_ENTRIES.saturating_sub(page.len()) as u64;
        range.last = range.last.min(range.before.saturating_add(room));
        if room == 0 {
            break;
        }
        let rows = fetch(&mut connection, range).await.map_err(&fault)?;
        for entry in read(&rows, range, place, session) {
            let (n, at, json) = entry?;
            page.push(Raw {
                n,
                at,
                json: json.as_bytes().to_vec(),
            });
        }
    }
    Ok(page)
}

/// Reads a whole log.
pub(super) async fn load(
    pool: &PgPool,
    place: &Arc<str>,
    session: &SessionId,
) -> Result<Vec<Entry>, StoreError> {
    let mut connection = pool.acquire().await.map_err(fault(place))?;
    let kin = lineage(&mut connection, session).await;
    let left = ranges(&kin.map_err(fault(place))?, 0).enumerate().collect();
    read_ranges(pool, connection, place, session, left).await
}

/// Reads ranges of a log. The next pages are fetched while the rows of a page are parsed on other
/// threads.
async fn read_ranges(
    pool: &PgPool,
    mut connection: PoolConnection<Postgres>,
    place: &Arc<str>,
    session: &SessionId,
    left: VecDeque<(usize, Range)>,
) -> Result<Vec<Entry>, StoreError> {
    let pages = left.len();
    let reading = LogReader {
        place: Arc::clone(place),
        session: session.clone(),
        left: Mutex::new(left),
    };
    let first_has_ended = Notify::new();
    let first = async {
        let read = reading.lane(&mut connection).await;
        first_has_ended.notify_one();
        read
    };
    // A second lane helps if a connection is free. The first lane does not wait for it.
    let second = async {
        if pages < LANES {
            return Ok(Vec::new());
        }
        let connection = tokio::select! {
            connection = pool.acquire() => connection,
            () = first_has_ended.notified() => return Ok(Vec::new()),
        };
        match connection {
            Ok(mut connection) => reading.lane(&mut connection).await,
            Err(_) => Ok(Vec::new()),
        }
    };
    let (first, second) = tokio::join!(first, second);
    let mut read = first?;
    read.extend(second?);
    read.sort_unstable_by_key(|(number, _)| *number);
    Ok(read.into_iter().flat_map(|(_, page)| page).collect())
}

impl LogReader {
    /// Reads pages until none is left. Returns them with their positions in the log.
    async fn lane(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Vec<(usize, Vec<Entry>)>, StoreError> {
        let path = Path::new(&*self.place);
        let mut pages = Vec::new();
        let mut parsing: Option<(usize, JoinHandle<_>)> = None;
        while let Some((number, range)) = self.next() {
            let rows = fetch(connection, range).await.map_err(fault(&self.place))?;
            let (place, session) = (Arc::clone(&self.place), self.session.clone());
            let parse = move || parse(&rows, range, &place, &session);
            let before = parsing.replace((number, tokio::task::spawn_blocking(parse)));
            if let Some((number, before)) = before {
                pages.push((number, done(path, before.await)?));
            }
        }
        if let Some((number, last)) = parsing {
            pages.push((number, done(path, last.await)?));
        }
        Ok(pages)
    }

    fn next(&self) -> Option<(usize, Range)> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.pop_front()
    }
}

/// Returns the entries of a log after `after`, in pages.
fn ranges(kin: &[LogAncestor], after: u64) -> impl Iterator<Item = Range> {
    // The oldest ancestor has the beginning of the log, the session itself its end.
    kin.iter().rev().flat_map(move |kin| {
        let begin = after.max(kin.shared);
        let pages = (begin..kin.entries).step_by(PAGE_ENTRIES);
        pages.map(|before| Range {
            key: kin.key,
            before,
            last: kin.entries.min(before.saturating_add(PAGE_ENTRIES as u64)),
        })
    })
}

async fn fetch(connection: &mut PgConnection, range: Range) -> sqlx::Result<Vec<PgRow>> {
    sqlx::query(
        "SELECT n, at, json, sum FROM entries WHERE session = $1 AND n > $2 AND n <= $3 ORDER BY n",
    )
    .bind(range.key)
    .bind(to_column(range.before))
    .bind(to_column(range.last))
    .fetch_all(connection)
    .await
}

fn parse(
    rows: &[PgRow],
    range: Range,
    place: &str,
    session: &SessionId,
) -> Result<Vec<Entry>, StoreError> {
    let entry = |read: Result<(u64, u64, &str), StoreError>| {
        let (n, _, json) = read?;
        serde_json::from_str(json).map_err(|error| bad_entry(Path::new(place), session, n, error))
    };
    read(rows, range, place, session).map(entry).collect()
}

/// Returns the number, the time and the text of each entry. A missing or altered entry is an error.
fn read<'a>(
    rows: &'a [PgRow],
    range: Range,
    place: &'a str,
    session: &'a SessionId,
) -> impl Iterator<Item = Result<(u64, u64, &'a str), StoreError>> {
    let mut rows = rows.iter();
    let numbers = range.before.saturating_add(1)..=range.last;
    numbers.map(move |n| {
        let bad = |why| bad_entry(Path::new(place), session, n, why);
        let columns = rows.next().map(columns).transpose().map_err(fault(place))?;
        let (_, at, json, sum) = columns
            .filter(|columns| from_column(columns.0) == n)
            .ok_or_else(|| bad("it is missing"))?;
        if sum == entry_sum(to_column(n), at, json.as_bytes()) {
            Ok((n, from_column(at), json))
        } else {
            Err(bad(ALTERED))
        }
    })
}

/// Reads columns by position, because looking up names costs more than reading them.
fn columns(row: &PgRow) -> sqlx::Result<(i64, i64, &str, i64)> {
    Ok((
        row.try_get(0)?,
        row.try_get(1)?,
        row.try_get(2)?,
        row.try_get(3)?,
    ))
}
