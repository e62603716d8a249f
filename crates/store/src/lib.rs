//! Where sessions are kept: [`SqliteStore`], one SQLite file whose logs are only appended to.
//! It folds nothing and decides nothing; what a log means is the business of `agent`.

mod connection;
mod export;
mod fault;
mod lock;
mod options;
mod read;
mod schema;
mod sqlite;
mod write;

pub use export::{ExportError, Line};
pub use options::{BUSY_TIMEOUT, Durability, MAX_BYTES, Options};
pub use read::{PAGE_BYTES, PAGE_ENTRIES};
pub use sqlite::{FILE, SqliteStore};
pub use write::MAX_ENTRY;
