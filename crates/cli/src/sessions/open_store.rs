//! [`OpenStore`]: the store of `plimsoll sessions` and `usage`: the files of this machine, or the
//! database of workers.

use clap::Args;
use plimsoll::store::SqliteStore;

use crate::error::CliError;
use crate::paths;

/// The name of the files of this machine.
const LOCAL: &str = "local";

/// The arguments that say where.
#[derive(Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// The database of workers, as in postgres://user@host/database, or `local` for the files of this
    /// machine [default: local]. Others can read arguments: a password belongs into PLIMSOLL_STORE or
    /// PGPASSWORD
    #[cfg(feature = "restate")]
    #[arg(
        long,
        global = true,
        env = "PLIMSOLL_STORE",
        hide_env_values = true,
        value_name = "URL"
    )]
    store: Option<String>,
}

/// An open store.
pub(crate) enum OpenStore {
    Files(Box<SqliteStore>),
    #[cfg(feature = "restate")]
    Database(plimsoll::store::PostgresStore),
}

impl PlaceArgs {
    /// Opens the store.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) async fn open(&self) -> Result<OpenStore, CliError> {
        #[cfg(feature = "restate")]
        if let Some(url) = self.url() {
            let store = plimsoll::store::PostgresStore::connect(url).await?;
            return Ok(OpenStore::Database(store));
        }
        Ok(OpenStore::Files(Box::new(local().await?)))
    }

    /// Returns an error for a command that requires the files of this machine.
    ///
    /// # Errors
    /// If a database was named.
    pub(crate) fn only_files(&self) -> Result<(), CliError> {
        #[cfg(feature = "restate")]
        if self.url().is_some() {
            return Err(CliError::usage(
                "this command works with local files, not with a database; --store local selects them",
            ));
        }
        #[cfg(not(feature = "restate"))]
        no_database()?;
        Ok(())
    }

    #[cfg(feature = "restate")]
    fn url(&self) -> Option<&str> {
        self.store
            .as_deref()
            .filter(|store| !store.is_empty() && *store != LOCAL)
    }
}

/// Opens the store of this machine.
pub(crate) async fn local() -> Result<SqliteStore, CliError> {
    #[cfg(not(feature = "restate"))]
    no_database()?;
    Ok(SqliteStore::open(paths::data()?).await?)
}

/// Returns an error if the environment names a database, which this build cannot read.
#[cfg(not(feature = "restate"))]
fn no_database() -> Result<(), CliError> {
    let store = std::env::var("PLIMSOLL_STORE").unwrap_or_default();
    if store.is_empty() || store == LOCAL {
        return Ok(());
    }
    let why = crate::error::NO_WORKERS;
    Err(CliError::usage(format!(
        "PLIMSOLL_STORE names a database, but {why}"
    )))
}
