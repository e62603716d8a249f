//! Searches the archive in PostgreSQL with an index of the words of each item and a vocabulary. The
//! query language and the ranking are the same for every store.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_core::archive::{
    self, Hit, MatchedTerm, RecallError, SearchIndex, SearchItem, recall_text,
};
use plimsoll_core::{ArchiveBounds, SessionId};
use sqlx::{AssertSqlSafe, PgPool, Postgres, QueryBuilder, Row};
use tokio::runtime::Handle;

use super::archive::{BLOCKS, COLUMNS, SessionItems, StoredItem, block, owner, shelves};
use super::fault;
use crate::columns::{from_column, to_column};

/// Minimum number of blocks of a size in a session for which searching the newest two first pays
/// off.
const WORTH_IT: i64 = 8;

/// Items read at once.
const READ: usize = 16;

/// The data of one search: the items of a session and its ancestors.
struct View {
    pool: PgPool,
    place: Arc<str>,
    bounds: ArchiveBounds,
    shelves: Vec<SessionItems>,
    now: u64,
    runtime: Handle,
    /// The rows that were found and not read yet. The last ones are read first.
    found: RefCell<Vec<i64>>,
    read: RefCell<BTreeMap<i64, StoredItem>>,
}

/// Searches the items of a session.
pub(super) async fn search(
    pool: &PgPool,
    place: &Arc<str>,
    bounds: ArchiveBounds,
    session: &SessionId,
    query: &str,
    limit: usize,
) -> Result<Vec<Hit>, RecallError> {
    let mut connection = pool.acquire().await.map_err(fault(place))?;
    let shelves = shelves(&mut connection, session).await;
    drop(connection);
    let view = View {
        pool: pool.clone(),
        place: Arc::clone(place),
        bounds,
        shelves: shelves.map_err(fault(place))?,
        now: from_column(crate::write::now()),
        runtime: Handle::current(),
        found: RefCell::default(),
        read: RefCell::default(),
    };
    let query = query.to_owned();
    let searched = tokio::task::spawn_blocking(move || archive::search(&view, &query, limit)).await;
    searched.map_err(|error| fault(place)(sqlx::Error::Io(error.into())))?
}

impl View {
    /// Waits for the server. A search runs on a thread that may block.
    fn wait<T>(&self, work: impl Future<Output = sqlx::Result<T>>) -> Result<T, RecallError> {
        let done = self.runtime.block_on(work);
        Ok(done.map_err(fault(&self.place))?)
    }

    /// Reads an item, together with some others that were found, because each query costs a round
    /// trip.
    fn read_on(&self, key: i64) -> Result<(), RecallError> {
        let mut found = self.found.borrow_mut();
        found.retain(|row| *row != key);
        let rest = found.len().saturating_sub(READ - 1);
        let mut rows = found.split_off(rest);
        rows.push(key);
        let sql = format!("SELECT row, {COLUMNS} FROM items WHERE row = ANY($1)");
        let all = sqlx::query(AssertSqlSafe(sql))
            .bind(rows)
            .fetch_all(&self.pool);
        let mut read = self.read.borrow_mut();
        for columns in self.wait(all)? {
            let row = columns.try_get("row").map_err(fault(&self.place))?;
            read.insert(row, StoredItem::of(&columns).map_err(fault(&self.place))?);
        }
        Ok(())
    }
}

impl SearchIndex for View {
    /// The row of the item.
    type Key = i64;

    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError> {
        let mut words = BTreeSet::new();
        for shelf in &self.shelves {
            let of_shelf: Vec<String> = self.wait(
                // Words consist of letters and digits, which are all below the last character.
                sqlx::query_scalar(
                    "SELECT word FROM vocabulary
                     WHERE shelf = $1 AND word >= $2 AND word <= $3 ORDER BY word LIMIT $4",
                )
                .bind(shelf.key)
                .bind(prefix)
                .bind(format!("{prefix}{}", char::MAX))
                .bind(to_column(most as u64))
                .fetch_all(&self.pool),
            )?;
            words.extend(of_shelf);
        }
        Ok(words.into_iter().take(most).collect())
    }

    fn newest(&self, terms: &[MatchedTerm<'_>], most: usize) -> Result<Vec<i64>, RecallError> {
        let mut rows: Vec<i64> = Vec::new();
        for shelf in &self.shelves {
            let mut of_shelf = Vec::new();
            for stage in stages(shelf) {
                let mut sql = newest(shelf, terms, &stage, most);
                of_shelf = self.wait(sql.build_query_scalar::<i64>().fetch_all(&self.pool))?;
                if of_shelf.len() >= most {
                    break;
                }
            }
            rows.extend(of_shelf);
        }
        rows.sort_unstable_by(|a, b| b.cmp(a));
        rows.truncate(most);
        self.found.borrow_mut().extend(rows.iter().rev());
        Ok(rows)
    }

    fn item(&self, key: i64) -> Result<Option<SearchItem>, RecallError> {
        if !self.read.borrow().contains_key(&key) {
            self.read_on(key)?;
        }
        let Some(stored) = self.read.borrow_mut().remove(&key) else {
            return Ok(None);
        };
        let message = stored.message(&self.place, &self.bounds, self.now)?;
        Ok(message.map(|message| SearchItem {
            id: stored.row.id,
            kind: stored.row.kind,
            tool: stored.row.tool,
            text: recall_text(&message),
        }))
    }
}

/// Returns the words of the index that select the newest items of a shelf, then those that select
/// more, and finally all items. A frequent word is found among the newest items; a word that is not
/// found there is rare. So no stage finds many more items than requested.
fn stages(shelf: &SessionItems) -> Vec<Vec<String>> {
    let mut stages = Vec::new();
    for size in BLOCKS {
        let blocks = shelf.taken / size;
        if blocks >= WORTH_IT {
            // The last block is not full yet.
            let newest = [blocks, blocks - 1];
            stages.push(newest.map(|number| block(shelf.key, size, number)).to_vec());
        }
    }
    stages.push(vec![owner(shelf.key)]);
    stages
}

/// Returns a query for the newest rows in some blocks of a shelf that contain all terms. It is
/// written so that the planner uses the word index first, whatever order is requested.
fn newest(
    shelf: &SessionItems,
    terms: &[MatchedTerm<'_>],
    blocks: &[String],
    most: usize,
) -> QueryBuilder<Postgres> {
    let mut wanted = vec![any(blocks)];
    let mut phrases: Vec<Vec<String>> = Vec::new();
    for MatchedTerm { term, last } in terms {
        let before = term
            .words
            .split_last()
            .map_or(&[][..], |(_, before)| before);
        wanted.extend(before.iter().map(|word| any(std::slice::from_ref(word))));
        wanted.push(any(last));
        if !before.is_empty() {
            let before = before.join(" ");
            phrases.push(
                last.iter()
                    .map(|last| format!(" {before} {last} "))
                    .collect(),
            );
        }
    }
    let mut sql = QueryBuilder::new(
        "WITH found AS MATERIALIZED (SELECT row FROM items
         WHERE array_to_tsvector(string_to_array(words, ' ')) @@ ",
    );
    sql.push_bind(wanted.join(" & ")).push("::tsquery");
    sql.push(" AND seq < ").push_bind(to_column(shelf.below.0));
    for phrases in phrases {
        sql.push(" AND EXISTS (SELECT 1 FROM unnest(");
        sql.push_bind(phrases);
        sql.push(") AS phrase WHERE strpos(words || ' ', phrase) > 0)");
    }
    sql.push(") SELECT row FROM found ORDER BY row DESC LIMIT ");
    sql.push_bind(to_column(most as u64));
    sql
}

/// Returns an alternative of some words, in the query language of the index. No word contains a
/// quotation mark.
fn any(words: &[String]) -> String {
    format!("('{}')", words.join("' | '"))
}
