//! The archive in PostgreSQL, in the same database as the logs, so that a session and its archived
//! items are removed together. Items are added and expired in `archive::write`; searches are in
//! `postgres::search`.

pub(super) mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::archive::{
    ArchiveRow, ArchivedKind, RecallError, RecallId, RecallKey, RecalledItem, recalled, resolve,
};
use plimsoll_core::{ArchiveBounds, MAX_FORK_DEPTH, SessionId, StoreError};
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::fault;
use crate::archive::Body;
use crate::columns::{from_column, name_hash, to_column};

/// Sizes of blocks. Consecutive items of a block share a word of the index, so that the newest
/// items can be found first.
pub(super) const BLOCKS: [i64; 2] = [1_024, 16_384];

/// The columns of [`StoredItem`].
pub(super) const COLUMNS: &str = "seq, left_at, about, message, sum";

/// The archived items of a session, as far as another session may see them.
#[derive(Debug, Clone)]
pub(super) struct SessionItems {
    pub(super) key: i64,
    /// The highest forgotten number.
    forgotten: Option<Seq>,
    /// The number of items that were ever added.
    pub(super) taken: i64,
    /// Only items below this number may be seen.
    pub(super) below: Seq,
}

/// An item as stored in the database.
pub(super) struct StoredItem {
    pub(super) row: ArchiveRow,
    body: Option<Body>,
}

/// The metadata of an item. Stored as JSON, because a name may contain bytes that a text column
/// must not.
#[derive(Serialize, Deserialize)]
struct About {
    kind: ArchivedKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    bytes: Bytes,
    why: String,
}

impl SessionItems {
    /// Checks whether the item with this number may be seen.
    fn shows(&self, seq: Seq) -> bool {
        seq < self.below
    }
}

impl StoredItem {
    /// Reads [`COLUMNS`].
    pub(super) fn of(columns: &PgRow) -> sqlx::Result<Self> {
        let about: String = columns.try_get("about")?;
        let about: About =
            serde_json::from_str(&about).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let body = match columns.try_get("message")? {
            None => None,
            Some(json) => Some(Body {
                json,
                sum: columns.try_get("sum")?,
            }),
        };
        let row = ArchiveRow {
            id: RecallId(Seq(from_column(columns.try_get("seq")?))),
            kind: about.kind,
            tool: about.tool,
            call: about.call,
            bytes: about.bytes,
            left: from_column(columns.try_get("left_at")?),
            why: about.why,
            expired: body.is_none(),
        };
        Ok(Self { row, body })
    }

    /// Returns `None` if the item has expired.
    pub(super) fn message(
        &self,
        place: &str,
        bounds: &ArchiveBounds,
        now: u64,
    ) -> Result<Option<Message>, StoreError> {
        let Some(body) = (self.body.as_ref()).filter(|_| !bounds.is_too_old(self.row.left, now))
        else {
            return Ok(None);
        };
        let message = body
            .message(self.row.id)
            .map_err(|why| StoreError::Archive {
                place: place.to_owned(),
                why,
            });
        message.map(Some)
    }
}

/// Returns the shelves of a session and its ancestors, beginning with the session.
pub(super) async fn shelves(
    connection: &mut PgConnection,
    session: &SessionId,
) -> sqlx::Result<Vec<SessionItems>> {
    let rows = sqlx::query(
        "WITH RECURSIVE kin (depth, id, below, parent, items) AS (
           SELECT 0::bigint, $1, NULL::bigint, max(parent), max(items) FROM sessions WHERE id = $1
           UNION ALL
           SELECT depth + 1, own.id, least(kin.below, kin.items), own.parent, own.items
           FROM kin JOIN sessions AS own ON own.key = kin.parent WHERE depth < $2
         ) SELECT key, forgotten, taken, below FROM kin JOIN shelves ON session = id ORDER BY depth",
    )
    .bind(session.as_str())
    .bind(to_column(MAX_FORK_DEPTH))
    .fetch_all(connection)
    .await?;
    let shelf = |row: &PgRow| {
        let forgotten: i64 = row.try_get("forgotten")?;
        let below: Option<i64> = row.try_get("below")?;
        Ok(SessionItems {
            key: row.try_get("key")?,
            forgotten: u64::try_from(forgotten).ok().map(Seq),
            taken: row.try_get("taken")?,
            below: Seq(below.map_or(u64::MAX, from_column)),
        })
    };
    rows.iter().map(shelf).collect()
}

/// Returns one complete item.
pub(super) async fn recall(
    connection: &mut PgConnection,
    place: &str,
    bounds: &ArchiveBounds,
    session: &SessionId,
    key: &RecallKey,
) -> Result<RecalledItem, RecallError> {
    let now = from_column(crate::write::now());
    let fault = fault(place);
    let shelves = shelves(connection, session).await.map_err(&fault)?;
    let id = match key {
        RecallKey::Id(id) => *id,
        RecallKey::Named(name) => {
            let (calls, number) = named(connection, &shelves, key, name, bounds, now)
                .await
                .map_err(&fault)?;
            resolve(name, number, &calls)?
        }
    };
    let mut was_there = false;
    for shelf in shelves.iter().filter(|shelf| shelf.shows(id.0)) {
        match item(connection, shelf, id).await.map_err(&fault)? {
            Some(stored) => match stored.message(place, bounds, now)? {
                Some(message) => return Ok(recalled(stored.row, Arc::new(message))),
                None => was_there = true,
            },
            None => was_there |= shelf.forgotten.is_some_and(|last| id.0 <= last),
        }
    }
    Err(if was_there {
        RecallError::Expired(id)
    } else {
        RecallError::Unknown(key.to_string())
    })
}

/// Returns the items with a call id and whether each is held, and the item whose number is the
/// name, if it exists.
async fn named(
    connection: &mut PgConnection,
    shelves: &[SessionItems],
    key: &RecallKey,
    name: &str,
    bounds: &ArchiveBounds,
    now: u64,
) -> sqlx::Result<(BTreeMap<RecallId, bool>, Option<RecallId>)> {
    let mut calls: BTreeMap<RecallId, bool> = BTreeMap::new();
    let mut number = None;
    for shelf in shelves {
        // Eleven are ambiguous already.
        let found: Vec<(i64, i64, bool)> = sqlx::query_as(
            "SELECT seq, left_at, held IS NOT NULL FROM items
             WHERE shelf = $1 AND call = $2 AND seq < $3
             ORDER BY held IS NULL, row DESC LIMIT 11",
        )
        .bind(shelf.key)
        .bind(name_hash(name))
        .bind(to_column(shelf.below.0))
        .fetch_all(&mut *connection)
        .await?;
        for (seq, left, is_held) in found {
            let is_held = is_held && !bounds.is_too_old(from_column(left), now);
            *calls.entry(RecallId(Seq(from_column(seq)))).or_default() |= is_held;
        }
        if let (None, Some(seq)) = (number, key.seq().filter(|seq| shelf.shows(*seq))) {
            let id = RecallId(seq);
            let is_known = shelf.forgotten.is_some_and(|last| seq <= last)
                || item(connection, shelf, id).await?.is_some();
            number = is_known.then_some(id);
        }
    }
    Ok((calls, number))
}

async fn item(
    connection: &mut PgConnection,
    shelf: &SessionItems,
    id: RecallId,
) -> sqlx::Result<Option<StoredItem>> {
    let sql = format!("SELECT {COLUMNS} FROM items WHERE shelf = $1 AND seq = $2");
    let found = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(shelf.key)
        .bind(to_column(id.0.0))
        .fetch_optional(connection)
        .await?;
    found.as_ref().map(StoredItem::of).transpose()
}

/// Returns the present and expired items of a session, in the order of its log.
pub(super) async fn rows(
    connection: &mut PgConnection,
    bounds: &ArchiveBounds,
    session: &SessionId,
) -> sqlx::Result<Vec<ArchiveRow>> {
    let now = from_column(crate::write::now());
    let mut all: BTreeMap<RecallId, ArchiveRow> = BTreeMap::new();
    for shelf in shelves(connection, session).await? {
        let found = sqlx::query(
            "SELECT seq, left_at, about, held, NULL::text AS message
             FROM items WHERE shelf = $1 AND seq < $2",
        )
        .bind(shelf.key)
        .bind(to_column(shelf.below.0))
        .fetch_all(&mut *connection)
        .await?;
        for columns in &found {
            let mut row = StoredItem::of(columns)?.row;
            let is_held = columns.try_get::<Option<i64>, _>("held")?.is_some();
            row.expired = !is_held || bounds.is_too_old(row.left, now);
            // Prefer a shelf that still holds the item.
            let had = all.get(&row.id);
            if had.is_none_or(|had| had.expired) {
                all.insert(row.id, row);
            }
        }
    }
    Ok(all.into_values().collect())
}

/// Returns the word that represents a session in the word index. No word of a text begins like
/// this.
pub(super) fn owner(shelf: i64) -> String {
    format!("={shelf}")
}

/// Returns the word that represents a block of a session's items.
pub(super) fn block(shelf: i64, size: i64, number: i64) -> String {
    format!("={shelf}/{size}/{number}")
}
