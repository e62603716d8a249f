//! `plimsoll sessions export`: writes sessions as JSON lines, for `plimsoll sessions import`
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use plimsoll::SessionId;
use plimsoll::store::{MAX_FORK_DEPTH, SessionInfo, SessionReader};

use crate::error::{CliError, DONE};
use crate::input::INPUT_LIMIT;
use crate::resume::portable;
use crate::which_session::known;

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The sessions; a fork stays a fork if its parent is exported too
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Export all sessions
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Runs the command.
pub(crate) async fn run(store: &impl SessionReader, args: &ExportArgs) -> Result<u8, CliError> {
    let sessions = store.list().await?;
    let mut ids = BTreeSet::new();
    if args.all {
        ids.extend(sessions.iter().map(|info| info.id.clone()))
    } else {
        for id in &args.ids {
            ids.insert(known(store, id).await?);
        }
    }
    let chosen = sessions.iter().filter(|info| ids.contains(&info.id));
    if ids.len() > 1 && chosen.map(|info| info.bytes.0).sum::<u64>() > INPUT_LIMIT {
        let limit = INPUT_LIMIT / (1024 * 1024);
        note!(
            "the export is larger than the {limit} MiB that `plimsoll sessions import` reads at once; \
             export fewer sessions into one file"
        );
    }
    // If the store is damaged, the sessions are exported without settings.
    let settings = store.all_settings().await.unwrap_or_default();
    let mut wanted = BTreeMap::new();
    for id in &ids {
        wanted.insert(id.clone(), settings_of(id, &sessions, &ids, &settings));
    }
    let out = store.export(&wanted, io::stdout()).await;
    out.map_err(CliError::failed)?
        .flush()
        .map_err(CliError::failed)?;
    Ok(DONE)
}

/// Returns the settings to export with a session. A session that was not run yet has the settings
/// of its parent. If the parent is not exported, they are exported with the session, without the
/// parent's cost.
fn settings_of(
    session: &SessionId,
    sessions: &[SessionInfo],
    exported: &BTreeSet<SessionId>,
    settings: &BTreeMap<SessionId, String>,
) -> Option<String> {
    let mut of = session;
    for _ in 0..=MAX_FORK_DEPTH {
        if let Some(text) = settings.get(of) {
            return portable(text, of == session);
        }
        let info = sessions.iter().find(|info| info.id == *of)?;
        of = &info.fork.as_ref()?.from;
        if exported.contains(of) {
            return None;
        }
    }
    None
}
