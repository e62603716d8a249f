//! `plimsoll sessions export`: writes sessions as JSON lines, for `plimsoll sessions import`
//! elsewhere.

use std::collections::BTreeSet;
use std::io::{self, Write};

use plimsoll::store::{ExportError, SessionReader};

use crate::error::{CliError, DONE};
use crate::input::INPUT_LIMIT;
use crate::stdout;
use crate::which_session::known;

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The sessions; a fork is exported with all of its entries
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Export all sessions
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Runs the command.
pub(crate) async fn run(store: &impl SessionReader, args: &ExportArgs) -> Result<u8, CliError> {
    let mut sessions = store.list().await?;
    let mut ids = BTreeSet::new();
    for id in &args.ids {
        ids.insert(known(store, id).await?);
    }
    if args.all {
        ids.extend(sessions.iter().map(|info| info.id.clone()))
    }
    sessions.retain(|info| ids.contains(&info.id));
    if ids.len() > 1 && sessions.iter().map(|info| info.bytes.0).sum::<u64>() > INPUT_LIMIT {
        let limit = INPUT_LIMIT / (1024 * 1024);
        note!(
            "the export is larger than the {limit} MiB that `plimsoll sessions import` reads at once; \
             export fewer sessions into one file"
        );
    }
    let written = match store.export(&ids, io::stdout()).await {
        Ok(mut out) => out.flush(),
        Err(ExportError::Write(error)) => Err(error),
        Err(error) => return Err(CliError::failed(error)),
    };
    written.map_err(|error| stdout::failed(&error))?;
    Ok(DONE)
}
