//! Where sessions are kept: [`SqliteStore`], one SQLite file whose logs are only appended to, and
//! beside it the archive of what has left their views, and what files contained before they were changed.
//! With the feature `postgres` there is `PostgresStore` as well, for several machines.
//! It folds nothing and decides nothing; what a log means is the business of `agent`.

mod archive;
mod check;
mod checksum;
mod connection;
mod damaged;
mod delete;
mod export;
mod fault;
mod files;
mod import;
mod lease;
mod lineage;
mod lock;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod read;
mod retention;
mod salvage;
mod schema;
mod settings;
mod sqlite;
mod windows;
mod write;

pub use archive::ARCHIVE;
pub use check::{CheckedSession, CheckedStore, EntryFault, MAX_FAULTS};
pub use export::{EXPORT_VERSION, ExportError, Line};
pub use files::{
    ContentHash, FILES, KEPT_IN_ALL, KEPT_IN_SESSION, MAX_CHANGES, MAX_CHANGES_IN_ALL,
    RecordedChange,
};
pub use import::{BadExport, Export, ExportedSession};
pub use options::{
    ARCHIVE_CHECKED, ARCHIVE_FILE, ARCHIVE_FILE_MIN, BUSY_TIMEOUT, Durability, MAX_BYTES, Options,
    PATIENCE,
};
#[cfg(feature = "postgres")]
pub use postgres::{
    Changes, MAX_POSTGRES_CONNECTIONS, MAX_RUN_MESSAGE, MAX_RUN_MESSAGES, OpenQuestion,
    POSTGRES_CONNECTIONS, PostgresOptions, PostgresStore, Progress, RunMessage, RunMessageKind,
    WATCHED,
};
pub use read::{PAGE_BYTES, PAGE_ENTRIES};
pub use retention::Pruned;
pub use salvage::Salvaged;
pub use settings::MAX_SETTINGS;
pub use sqlite::{FILE, SqliteStore};
pub use windows::{LearnedWindow, MAX_WINDOWS};
pub use write::MAX_ENTRY;
