//! The format of `sessions.db`: its owner and its version.

use std::path::Path;

use plimsoll_core::StoreError;
use rusqlite::Connection;

use crate::fault;

/// The version of the format of both databases. Others are refused: versions 1 and 2 were written before
/// the first release.
pub(crate) const FORMAT: i64 = 3;

/// Identifies the program in the header of the file: "Plim" in ASCII.
const APPLICATION: i64 = 0x506c_696d;

const TABLES: &str = include_str!("../schema/sessions-1.sql");

/// Returns an error if the file is empty, belongs to another program or has another version. Changes
/// nothing.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let header = |name: &str| {
        let value = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        value.map_err(fault::sqlite(path))
    };
    if header("page_count")? == 0 {
        let why = "it is empty, so its sessions are lost; restore a copy of it, or move it away, and a new \
                   one is created";
        return Err(fault::other(path, why));
    }
    if header("application_id")? != APPLICATION {
        return Err(fault::corrupt(path, "it is another program's database"));
    }
    match header("user_version")? {
        FORMAT => Ok(()),
        version => {
            let cure = "move the file away, or choose another data folder with PLIMSOLL_HOME";
            Err(fault::other(path, other_format(version, cure)))
        }
    }
}

/// Returns the sentence about a store of another version.
pub(crate) fn other_format(version: i64, cure: &str) -> String {
    format!(
        "it has format {version}, and this version of Plimsoll reads format {FORMAT}; use the version \
         that wrote it, {cure}"
    )
}

/// Creates the tables in a new file, in one transaction.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_of_this_version_is_accepted() {
        let path = Path::new("s.db");
        let connection = Connection::open_in_memory().unwrap();
        let refusal = || check(&connection, path).unwrap_err().to_string();
        assert!(refusal().contains("it is empty"), "{}", refusal());
        create(&connection).unwrap();
        assert_eq!(check(&connection, path), Ok(()));
        connection.pragma_update(None, "user_version", 2).unwrap();
        assert!(refusal().contains("it has format 2"), "{}", refusal());
        connection.pragma_update(None, "application_id", 1).unwrap();
        assert!(refusal().contains("another program's"), "{}", refusal());
    }
}
