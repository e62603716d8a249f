//! The context windows reported by providers, by endpoint. They are not part of any log, and are
//! forgotten after some time without harm.

use plimsoll_context::Tokens;
use plimsoll_core::WINDOW_REMEMBERED;
use rusqlite::{Connection, OptionalExtension, params};

use crate::columns::{from_column, to_column};

/// Maximum number of remembered endpoints. Beyond it, those learned first are forgotten. Nobody
/// uses so many, but a server on a new port is a new endpoint each time.
pub const MAX_WINDOWS: u64 = 1_000;

/// Maximum length of an endpoint's name, in characters. Longer ones are not remembered.
const MAX_NAME: usize = 512;

/// A context window that a provider has reported in a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedWindow {
    /// The address of the model's server, and the model's name.
    pub endpoint: String,
    /// The size of the window.
    pub tokens: Tokens,
    /// The time of the report, in seconds since 1970.
    pub at: u64,
}

/// Checks whether a window is to be remembered.
pub(crate) fn is_kept(endpoint: &str, tokens: Tokens) -> bool {
    !endpoint.is_empty() && endpoint.chars().count() <= MAX_NAME && tokens > Tokens::ZERO
}

/// Remembers a window. Replaces earlier windows of the endpoint.
pub(crate) fn learn(
    connection: &mut Connection,
    endpoint: &str,
    tokens: Tokens,
    now: i64,
) -> rusqlite::Result<()> {
    if !is_kept(endpoint, tokens) {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    transaction
        .prepare_cached(
            "INSERT INTO windows (endpoint, tokens, at) VALUES (?1, ?2, ?3)
             ON CONFLICT (endpoint) DO UPDATE SET tokens = excluded.tokens, at = excluded.at",
        )?
        .execute(params![endpoint, to_column(tokens.0), now])?;
    transaction
        .prepare_cached(
            "DELETE FROM windows WHERE at < ?1 OR endpoint IN
             (SELECT endpoint FROM windows ORDER BY at DESC, endpoint LIMIT -1 OFFSET ?2)",
        )?
        .execute(params![oldest(now), to_column(MAX_WINDOWS)])?;
    transaction.commit()
}

/// Returns the window of an endpoint, if it is remembered.
pub(crate) fn learned(
    connection: &Connection,
    endpoint: &str,
    now: i64,
) -> rusqlite::Result<Option<Tokens>> {
    connection
        .prepare_cached("SELECT tokens FROM windows WHERE endpoint = ?1 AND at >= ?2")?
        .query_row(params![endpoint, oldest(now)], |row| {
            Ok(Tokens(from_column(row.get(0)?)))
        })
        .optional()
}

/// Returns all windows, most recently learned first.
pub(crate) fn all(connection: &Connection, now: i64) -> rusqlite::Result<Vec<LearnedWindow>> {
    let mut statement = connection.prepare_cached(
        "SELECT endpoint, tokens, at FROM windows WHERE at >= ?1 ORDER BY at DESC, endpoint",
    )?;
    let rows = statement.query_map([oldest(now)], |row| {
        Ok(LearnedWindow {
            endpoint: row.get(0)?,
            tokens: Tokens(from_column(row.get(1)?)),
            at: from_column(row.get(2)?),
        })
    })?;
    rows.collect()
}

/// Returns the time before which windows are forgotten.
fn oldest(now: i64) -> i64 {
    now.saturating_sub(to_column(WINDOW_REMEMBERED.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    fn fresh() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, "s.db".as_ref(), schema::LOG).unwrap();
        connection
    }

    const DAY: i64 = 24 * 60 * 60;

    #[test]
    fn the_newest_word_counts_and_is_forgotten_in_time() {
        let mut file = fresh();
        let mut learn = |endpoint, tokens, day| {
            super::learn(&mut file, endpoint, Tokens(tokens), day * DAY).unwrap();
        };
        learn("a", 8_192, 100);
        learn("b", 4_096, 100);
        learn("a", 16_384, 101);
        learn("", 1, 101);
        learn("c", 0, 101);
        let long = "x".repeat(513);
        learn(&long, 5, 101);
        let learned = |endpoint, day| super::learned(&file, endpoint, day * DAY).unwrap();
        for (endpoint, day, expected) in [
            ("a", 101, Some(16_384)),
            ("a", 131, Some(16_384)),
            ("a", 132, None),
            ("b", 130, Some(4_096)),
            ("b", 131, None),
            ("c", 101, None),
            // A clock that was set back.
            ("a", 5, Some(16_384)),
        ] {
            assert_eq!(
                learned(endpoint, day),
                expected.map(Tokens),
                "{endpoint} {day}"
            );
        }
        assert_eq!(learned(&long, 101), None);
        let all = all(&file, 101 * DAY).unwrap();
        let names: Vec<&str> = all.iter().map(|window| window.endpoint.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn there_is_a_bound() {
        let mut file = fresh();
        for n in 0..1_010 {
            learn(&mut file, &format!("e{n}"), Tokens(9), 1_000 + n).unwrap();
        }
        let all = all(&file, 2_010).unwrap();
        assert_eq!(all.len() as u64, MAX_WINDOWS);
        assert_eq!(all.last().unwrap().endpoint, "e10");
    }
}
