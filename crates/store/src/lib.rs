//! Stores for sessions. [`SqliteStore`] keeps append-only logs and the earlier contents of changed
//! files in one SQLite file. The feature `postgres`
//! adds `PostgresStore`, for several machines. The meaning of a log is defined by the crate
//! `agent`.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod columns;
mod connection;
mod delete;
mod export;
mod fault;
mod files;
mod import;
mod lease;
mod log;
mod options;
#[cfg(feature = "postgres")]
mod postgres;
mod read;
mod salvage;
mod schema;
mod search;
mod session_reader;
mod settings;
mod sqlite;
mod write;

pub use blake3::{Hash as ContentHash, hash as content_hash};
pub use check::{CheckedSession, CheckedStore, EntryFault};
pub use delete::PruneReport;
pub use export::{EXPORT_VERSION, ExportError};
pub use files::{KEPT_CONTENTS, RecordedChange};
pub use import::{BadExport, Export, ExportedSession};
pub use log::PAGE_BYTES;
pub use options::{BUSY_TIMEOUT, Durability, MAX_BYTES, Options};
#[cfg(feature = "postgres")]
pub use postgres::{
    MAX_POSTGRES_CONNECTIONS, MAX_RUN_MESSAGE, MAX_RUN_MESSAGES, OpenQuestion, PATIENCE,
    POSTGRES_CONNECTIONS, PostgresOptions, PostgresStore, Progress, RunMessage, RunMessageKind,
};
pub use session_reader::SessionReader;
pub use settings::MAX_SETTINGS;
pub use sqlite::{FILE, SqliteStore};
pub use write::MAX_ENTRY;
