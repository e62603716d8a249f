//! The formats of the files: their owner, their version, and the migration from each version to the
//! next.

use std::path::Path;

use plimsoll_core::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use crate::fault;

/// The log: `sessions.db`.
pub(crate) const LOG: Format = Format {
    application: 0x506c_696d,
    steps: &[include_str!("../schema/sessions-1.sql")],
};

/// Formats up to this one were written before the first release. They are refused, not migrated.
pub(crate) const UNRELEASED: i64 = 2;

/// The format of one kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Identifies the program in the header of the file: "Plim" in ASCII.
    application: i64,
    /// The steps from an empty file to the newest version. The first leads to the version after
    /// [`UNRELEASED`].
    steps: &'static [&'static str],
}

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreFileState {
    /// An empty file.
    New,
    /// A store that this version can read.
    Store,
    /// A store of an older version, which this version can bring up to date.
    Older,
}

/// Returns an error if a file belongs to another program, is newer than this version, or is from
/// before the first release. Changes nothing.
pub(crate) fn check(
    connection: &Connection,
    path: &Path,
    format: Format,
) -> Result<StoreFileState, StoreError> {
    let (application, version, objects) = marks(connection).map_err(fault::sqlite(path))?;
    if application == 0 && version == 0 && objects == 0 {
        return Ok(StoreFileState::New);
    }
    if application != format.application {
        return Err(fault::corrupt(path, "it is another program's database"));
    }
    let known = as_version(format.steps.len());
    if version > known {
        return Err(fault::other(
            path,
            format!(
                "it has format {version}, and this version of Plimsoll reads up to {known}: a newer \
                 version wrote it, or one from before the first release; update Plimsoll, move the \
                 file away, or choose another data folder with PLIMSOLL_HOME"
            ),
        ));
    }
    if (1..=UNRELEASED).contains(&version) {
        return Err(fault::other(
            path,
            format!(
                "it has format {version}, from before the first release, which this version cannot \
                 read; move the file away, or choose another data folder with PLIMSOLL_HOME"
            ),
        ));
    }
    Ok(if version < known {
        StoreFileState::Older
    } else {
        StoreFileState::Store
    })
}

/// Returns the application, the version and the number of objects in one transaction, because
/// another process may be creating the file.
fn marks(connection: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let moment = connection.unchecked_transaction()?;
    let objects = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok((
        header(&moment, "application_id")?,
        header(&moment, "user_version")?,
        objects,
    ))
}

/// Migrates a file accepted by [`check`] to the newest version.
pub(crate) fn migrate(
    connection: &mut Connection,
    path: &Path,
    format: Format,
) -> Result<(), StoreError> {
    take(connection, format).map_err(fault::sqlite(path))
}

/// Runs the missing migration steps: all or none, and in one process at a time.
fn take(connection: &mut Connection, format: Format) -> rusqlite::Result<()> {
    let newest = as_version(format.steps.len());
    if header(connection, "user_version")? >= newest {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again, because another process may have migrated the file in the meantime.
    let version = header(&transaction, "user_version")?;
    for (step, sql) in format.steps.iter().enumerate() {
        if as_version(step) >= version.max(UNRELEASED) {
            transaction.execute_batch(sql)?;
        }
    }
    transaction.pragma_update(None, "application_id", format.application)?;
    transaction.pragma_update(None, "user_version", newest.max(version))?;
    transaction.commit()
}

fn header(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Returns the version that a file has after this many steps.
fn as_version(steps: usize) -> i64 {
    i64::try_from(steps).map_or(i64::MAX, |steps| steps.saturating_add(UNRELEASED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    fn said(connection: &Connection) -> String {
        check(connection, Path::new("s.db"), LOG)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_empty_file_becomes_ours_at_the_newest_version() {
        let mut connection = fresh();
        let path = Path::new("s.db");
        assert_eq!(check(&connection, path, LOG), Ok(StoreFileState::New));
        migrate(&mut connection, path, LOG).unwrap();
        migrate(&mut connection, path, LOG).unwrap();
        assert_eq!(check(&connection, path, LOG), Ok(StoreFileState::Store));
        assert_eq!(header(&connection, "user_version").unwrap(), 3);
        assert_eq!(
            header(&connection, "application_id").unwrap(),
            LOG.application
        );
        let other = Format {
            application: 1,
            ..LOG
        };
        let other = check(&connection, path, other).unwrap_err().to_string();
        assert!(other.contains("another program's database"), "{other}");
    }

    #[test]
    fn an_older_file_takes_only_the_steps_that_it_lacks() {
        let steps = &[
            "CREATE TABLE one (x)",
            "ALTER TABLE one ADD COLUMN y",
            "CREATE TABLE three (z)",
        ];
        let format = |steps| Format { steps, ..LOG };
        let mut connection = fresh();
        take(&mut connection, format(&steps[..1])).unwrap();
        connection
            .execute("INSERT INTO one VALUES ('kept')", [])
            .unwrap();
        take(&mut connection, format(steps)).unwrap();
        assert_eq!(header(&connection, "user_version").unwrap(), 5);
        let kept: (String, Option<i64>) = connection
            .query_row("SELECT x, y FROM one", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(kept, ("kept".to_owned(), None));
        connection
            .execute("INSERT INTO three VALUES (1)", [])
            .unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut connection = fresh();
        let format = |steps| Format { steps, ..LOG };
        take(&mut connection, format(&["CREATE TABLE one (x)"])).unwrap();
        let steps = &[
            "CREATE TABLE one (x)",
            "CREATE TABLE two (x)",
            "DROP TABLE nobody",
        ];
        take(&mut connection, format(steps)).unwrap_err();
        assert_eq!(header(&connection, "user_version").unwrap(), 3);
        assert!(
            connection
                .execute("INSERT INTO two VALUES (1)", [])
                .is_err()
        );
    }

    #[test]
    fn a_newer_an_unreleased_and_a_foreign_file_are_refused_and_left_alone() {
        let mut newer = fresh();
        migrate(&mut newer, Path::new("s.db"), LOG).unwrap();
        newer.pragma_update(None, "user_version", 4).unwrap();
        assert_eq!(
            said(&newer),
            "s.db: it has format 4, and this version of Plimsoll reads up to 3: a newer version \
             wrote it, or one from before the first release; update Plimsoll, move the file away, \
             or choose another data folder with PLIMSOLL_HOME"
        );

        newer.pragma_update(None, "user_version", 2).unwrap();
        assert_eq!(
            said(&newer),
            "s.db: it has format 2, from before the first release, which this version cannot read; \
             move the file away, or choose another data folder with PLIMSOLL_HOME"
        );

        let foreign = fresh();
        foreign.execute("CREATE TABLE bookmarks (x)", []).unwrap();
        assert_eq!(
            said(&foreign),
            "s.db cannot be read as a session store: it is another program's database; move it \
             away, and a new one is created"
        );
        assert_eq!(header(&foreign, "application_id").unwrap(), 0);
    }
}
