//! The tables of a store in PostgreSQL, and the conversion of the server's errors.

use plimsoll_core::StoreError;
use sqlx::{Connection, PgPool};

use crate::schema::{FORMAT, other_format};

const TABLES: &str = include_str!("../../schema/postgres-1.sql");

/// The key of the lock that is held while the tables are created, so that one process does it:
/// "Plim" in ASCII.
const SCHEMA_LOCK: i64 = 0x506c_696d;

/// Creates the tables if there are none. Returns an error if they are of another version.
pub(super) async fn migrate(pool: &PgPool, place: &str) -> Result<(), StoreError> {
    let fault = fault(place);
    let mut connection = pool.acquire().await.map_err(&fault)?;
    let mut transaction = connection.begin().await.map_err(&fault)?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(SCHEMA_LOCK)
        .execute(&mut *transaction)
        .await
        .map_err(&fault)?;
    let has_one: bool = sqlx::query_scalar("SELECT to_regclass('format') IS NOT NULL")
        .fetch_one(&mut *transaction)
        .await
        .map_err(&fault)?;
    if has_one {
        let version: i64 = sqlx::query_scalar("SELECT version FROM format")
            .fetch_one(&mut *transaction)
            .await
            .map_err(&fault)?;
        if version != FORMAT {
            return Err(StoreError::Io {
                path: place.to_owned(),
                why: other_format(version, "or choose another database"),
            });
        }
    } else {
        sqlx::raw_sql(TABLES)
            .execute(&mut *transaction)
            .await
            .map_err(&fault)?;
    }
    transaction.commit().await.map_err(&fault)
}

/// Converts an error of the server to a sentence that names the place and the cure.
pub(super) fn fault(place: &str) -> impl Fn(sqlx::Error) -> StoreError + '_ {
    move |error| {
        let code = error.as_database_error().and_then(|error| error.code());
        let why = match (code.as_deref(), &error) {
            (Some("53100"), _) => {
                return StoreError::Full {
                    path: place.to_owned(),
                };
            }
            (Some("25006"), _) => "it is read-only; connect to the primary server".to_owned(),
            (Some("42501"), sqlx::Error::Database(error)) => format!(
                "{}; start once as the owner of the database, which makes the tables, and grant this \
                 user the rights that docs/operations.md lists",
                error.message()
            ),
            (Some("53300"), _) => {
                "it has no connection left; allow fewer for each process, or more on the server"
                    .to_owned()
            }
            (_, sqlx::Error::PoolTimedOut) => {
                "it gave no connection in time; see that the server runs and has connections left, and \
                 try again"
                    .to_owned()
            }
            (_, sqlx::Error::Io(error)) => {
                format!("it cannot be reached ({error}); see that the server runs, and try again")
            }
            // Omits the line in the server's own source.
            (_, sqlx::Error::Database(error)) => format!("the server says: {}", error.message()),
            _ => error.to_string(),
        };
        StoreError::Io {
            path: place.to_owned(),
            why,
        }
    }
}
