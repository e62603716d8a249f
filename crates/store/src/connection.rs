//! [`SharedConnection`]: one connection to the file, used by one caller at a time and never on an
//! async thread.
//!
//! Nothing in this crate opens the database as a plain file: on Unix, closing it would drop the
//! locks that SQLite holds on it for the whole process.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Mutex;

use crate::fault::{self, WorkError};
use crate::options::{Durability, Options};
use crate::schema;

/// The size to which the write-ahead log is truncated after it grew. SQLite checkpoints it at about
/// 4 MiB; only a very large append needs more.
const WAL_BYTES: i64 = 16 << 20;

/// A file is rewritten if more than one in this many of its pages is free.
const FREE_PAGES: i64 = 4;

/// A connection for one caller at a time. Waiting callers do not block a thread.
#[derive(Debug, Clone)]
pub(crate) struct SharedConnection {
    path: Arc<Path>,
    connection: Arc<Mutex<Connection>>,
}

impl SharedConnection {
    pub(crate) fn new(path: Arc<Path>, connection: Connection) -> Self {
        Self {
            path,
            connection: Arc::new(Mutex::new(connection)),
        }
    }

    /// Runs `work` on a blocking thread. If the caller is cancelled before it starts, it does not
    /// run; once started, it runs to the end.
    pub(crate) async fn with<T, E, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        E: Into<WorkError>,
        F: FnOnce(&mut Connection, &Path) -> Result<T, E> + Send + 'static,
    {
        let mut connection = Arc::clone(&self.connection).lock_owned().await;
        let path = Arc::clone(&self.path);
        blocking(&self.path, move || {
            work(&mut connection, &path).map_err(|error| error.into().at(&path))
        })
        .await
    }
}

/// Runs `work` on a thread that may block.
pub(crate) async fn blocking<T, F>(path: &Path, work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, StoreError> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(fault::other(
            path,
            format!("the work on it was cut short ({error}); try again"),
        ))
    })
}

/// Opens the connection that writes.
pub(crate) fn writer(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    let connection = connect(path, options)?;
    schema::check(&connection, path)?;
    write_ahead(&connection, path)?;
    set_up(&connection, options).map_err(fault::sqlite(path))?;
    Ok(connection)
}

/// Opens a connection that only reads, besides the one that writes, so that neither waits for the other.
///
/// If SQLite can create no file beside the database (on a full disk, in a backup or in another user's
/// folder), the connection reads the file alone. It is returned with the reason why nothing can be
/// written.
pub(crate) fn reader(
    path: &Path,
    options: &Options,
) -> Result<(Connection, Option<StoreError>), StoreError> {
    let set_up = |connection: &Connection| connection.pragma_update(None, "query_only", true);
    reader_with(path, options, set_up)
}

/// Opens a connection that reads and leaves the files unchanged, and that reads a damaged file as far as
/// possible. Normally the last connection moves the write-ahead log into the database; this one does not.
pub(crate) fn observer(path: &Path) -> Result<Connection, StoreError> {
    // If there is no log, the connection removes the empty one that it creates.
    let has_log = has_log(path);
    let set_up = |connection: &Connection| {
        connection.pragma_update(None, "query_only", true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log)?;
        // With it, SQLite also reads a file that was cut, and a schema of which a part is damaged.
        connection.pragma_update(None, "writable_schema", true)
    };
    let (connection, _) = reader_with(path, &Options::default(), set_up)?;
    Ok(connection)
}

fn reader_with(
    path: &Path,
    options: &Options,
    set_up: impl Fn(&Connection) -> rusqlite::Result<()>,
) -> Result<(Connection, Option<StoreError>), StoreError> {
    let checked = |connection: Connection| {
        set_up(&connection).map_err(fault::sqlite(path))?;
        schema::check(&connection, path)?;
        Ok(connection)
    };
    match connect(path, options).and_then(checked) {
        Ok(connection) => Ok((connection, None)),
        Err(why @ (StoreError::Full { .. } | StoreError::Io { .. })) => {
            let alone = alone(path, &why).and_then(checked)?;
            Ok((alone, Some(why)))
        }
        Err(error) => Err(error),
    }
}

/// Opens a file without locks and without a write-ahead log.
///
/// # Errors
/// The reason `why` it cannot be opened otherwise, if its newest entries are in the write-ahead log.
fn alone(path: &Path, why: &StoreError) -> Result<Connection, StoreError> {
    refuse_link(path)?;
    if has_log(path) {
        return Err(why.clone());
    }
    let mut uri = url_path(&without_links_above(path));
    uri.insert_str(0, "file:");
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let fault = fault::sqlite(path);
    let connection = Connection::open_with_flags(uri, flags).map_err(&fault)?;
    connection
        .pragma_update(None, "trusted_schema", false)
        .map_err(&fault)?;
    Ok(connection)
}

/// Returns a path as it stands in a URI.
fn url_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = text.replace('%', "%25").replace('?', "%3f");
    text.replace('#', "%23")
}

/// Checks whether entries stand in the write-ahead log beside a database.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|file| file.len() > 0)
}

fn connect(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    refuse_link(path)?;
    // Callers queue at `SharedConnection`, so SQLite need not lock the connection. A path is always
    // a file path, never a URI.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let fault = fault::sqlite(path);
    let connection =
        Connection::open_with_flags(without_links_above(path), flags).map_err(&fault)?;
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(&fault)?;
    // The file may come from anywhere, so its schema must not call functions that reach outside it.
    connection
        .pragma_update(None, "trusted_schema", false)
        .map_err(&fault)?;
    Ok(connection)
}

/// Refuses a file that is a link, which may lead to a file that is not Plimsoll's. SQLite refuses
/// links beside the database itself.
pub(crate) fn refuse_link(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_symlink() => Err(fault::other(
            path,
            "it is a link, and Plimsoll follows none in its data folder; put the file itself \
             there, or choose another data folder with PLIMSOLL_HOME",
        )),
        _ => Ok(()),
    }
}

/// Returns the path with the links in its folders resolved. SQLite accepts none with
/// `SQLITE_OPEN_NOFOLLOW`, and the data folder itself may be reached by one.
fn without_links_above(path: &Path) -> PathBuf {
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// Creates the file with its tables, unless there is one. It gets its name when it is complete, so an
/// empty file is never taken for a new store.
///
/// Only its owner may access it, because logs contain the texts of users and tools. SQLite gives the
/// files beside it the same permissions.
pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let has_log = has_log(path);
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    if has_log {
        let why = "it is missing, but sessions.db-wal of it is there; move that away, and a new one is created";
        return Err(fault::other(path, why));
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    // A killed process may have left a file, and in a container the next one has the same id.
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.unwrap_or_default().as_nanos();
    let new = path.with_extension(format!("new-{}-{number}-{time}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    drop(options.open(&new).map_err(fault::io(path))?);
    let create = || {
        let closed = filled(&new, path)?.close().map_err(|(_, error)| error);
        closed.map_err(fault::sqlite(path))?;
        // A hard link never replaces a file that another process has created. Without hard links, the
        // file is renamed.
        match fs::hard_link(&new, path) {
            Err(_) if fs::symlink_metadata(path).is_err() => fs::rename(&new, path),
            _ => Ok(()),
        }
        .map_err(fault::io(path))
    };
    let created = create();
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut file = new.clone().into_os_string();
        file.push(suffix);
        let _ = fs::remove_file(file);
    }
    created
}

/// Writes the tables into an empty file, whose errors name `path`. The write-ahead log is turned on
/// after it, so that the file is complete without one: on a full disk, the log could not be emptied
/// into it, and would be left behind under the former name.
fn filled(new: &Path, path: &Path) -> Result<Connection, StoreError> {
    let connection = connect(new, &Options::default())?;
    schema::create(&connection).map_err(fault::sqlite(path))?;
    write_ahead(&connection, path)?;
    Ok(connection)
}

/// Turns on the write-ahead log. With it, readers see complete appends only, and a killed writer
/// leaves nothing half-done.
fn write_ahead(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let mode = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0))
        .map_err(fault::sqlite(path))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let why = "its file system cannot share memory between processes; choose a data folder on a local disk";
    Err(fault::other(path, why))
}

fn set_up(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    match options.durability {
        Durability::Full => {
            connection.pragma_update(None, "synchronous", "FULL")?;
            // On macOS an ordinary sync stops in the disk's own cache.
            connection.pragma_update(None, "fullfsync", true)?;
            connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        }
        Durability::Normal => connection.pragma_update(None, "synchronous", "NORMAL")?,
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let bytes = i64::try_from(options.max_bytes.0).unwrap_or(i64::MAX);
    let pages = bytes.checked_div(page).unwrap_or(bytes).max(1);
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES, |_| Ok(()))
}

/// Makes the writer overwrite deleted rows, so that they are not readable in free pages.
pub(crate) fn overwrite_deleted(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))
}

/// Returns free pages to the system if there are many. If another process reads the file at that
/// moment, it stays unchanged.
pub(crate) fn shrink(connection: &Connection) -> rusqlite::Result<()> {
    let count = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    if count("freelist_count")?.saturating_mul(FREE_PAGES) <= count("page_count")? {
        return Ok(());
    }
    match connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)") {
        Err(error)
            if error.sqlite_error_code() != Some(rusqlite::ErrorCode::DatabaseBusy)
                && error.sqlite_error_code() != Some(rusqlite::ErrorCode::DiskFull) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Creates a folder that only its owner may access, like the file itself.
pub(crate) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(fault::io(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_is_as_durable_as_was_asked_for() {
        for (durability, synchronous) in [(Durability::Full, 2), (Durability::Normal, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("sessions.db");
            let options = Options {
                durability,
                ..Options::default()
            };
            create(&path).unwrap();
            let connection = writer(&path, &options).unwrap();
            let number = |name| {
                let value = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
                value.unwrap()
            };
            assert_eq!(number("synchronous"), synchronous);
            assert_eq!(number("foreign_keys"), 1);
            assert_eq!(number("busy_timeout"), 5_000);
            assert_eq!(number("max_page_count"), (256 << 30) / 4_096);
            assert_eq!(number("journal_size_limit"), WAL_BYTES);
            let mode: String = connection
                .pragma_query_value(None, "journal_mode", |row| row.get(0))
                .unwrap();
            assert_eq!(mode, "wal");
        }
    }

    #[test]
    fn a_new_file_is_complete_without_its_write_ahead_log() {
        let folder = tempfile::tempdir().unwrap();
        let [new, copy] = ["new.db", "copy.db"].map(|name| folder.path().join(name));
        fs::write(&new, "").unwrap();
        let connection = filled(&new, &new).unwrap();
        fs::copy(&new, &copy).unwrap();
        drop(connection);
        schema::check(&connect(&copy, &Options::default()).unwrap(), &copy).unwrap();
    }

    #[test]
    fn a_file_that_may_only_be_read_is_read_unless_its_log_has_entries() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a?b #1 %20");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("sessions.db");
        create(&path).unwrap();
        let names = || {
            let files = fs::read_dir(&folder).unwrap();
            let names = files.map(|file| file.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(), ["sessions.db"]);
        let why = fault::full(&path);
        let connection = alone(&path, &why).unwrap();
        let count = "SELECT count(*) FROM sessions";
        let sessions = connection.query_row(count, [], |row| row.get::<_, i64>(0));
        assert_eq!(sessions.unwrap(), 0);
        connection.execute("DELETE FROM sessions", []).unwrap_err();
        drop(connection);
        assert_eq!(names(), ["sessions.db"]);
        fs::write(folder.join("sessions.db-wal"), "x").unwrap();
        assert_eq!(alone(&path, &why).unwrap_err(), why);
        // The write-ahead log of another file must not be read into a new one.
        fs::remove_file(&path).unwrap();
        let error = create(&path).unwrap_err().to_string();
        assert!(error.contains("sessions.db-wal of it is there"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_and_its_target_keeps_its_mode() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        let path = folder.path().join("sessions.db");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::write(&target, "").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o666)).unwrap();
        let options = Options::default();
        for target in ["target", "/dev/null", "missing"] {
            symlink(target, &path).unwrap();
            create(&path).unwrap();
            for opened in [writer(&path, &options), observer(&path)] {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("it is a link"), "{error}");
            }
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(mode(&target), 0o666);
        assert_eq!(fs::read(&target).unwrap(), b"");
        assert!(!folder.path().join("missing").exists());
        // A new file is private.
        create(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_reader_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let options = Options::default();
        create(&path).unwrap();
        let (reader, _) = reader(&path, &options).unwrap();
        let error = reader.execute("DELETE FROM settings", []).unwrap_err();
        let text = fault::sqlite(&path)(error).to_string();
        assert!(text.contains("it is read-only; make it"), "{text}");
    }
}
