//! `plimsoll usage`: the usage and cost of all sessions, by day, model, folder or session. It adds up
//! the calls in each log. Entries that a session shares with its parent are counted for the parent, and
//! the log of a sub-agent for the session that called it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use plimsoll::machine::Entry;
use plimsoll::pricing::Spend;
use plimsoll::store::{LogEntry, SessionReader, StoreError};
use serde_json::json;

use crate::error::{CliError, DONE};
use crate::listing::{self, day};
use crate::paths;
use crate::sessions::entries::each_entry;
use crate::sessions::list::{self, ListedSession, SubAgentCall};
use crate::sessions::open_store::{OpenStore, PlaceArgs};
use crate::sessions::removal::age;

/// The table's model for summaries, because the log does not name their model.
const SUMMARIES: &str = "(summaries)";
/// A model or a folder that the store does not know.
const UNKNOWN: &str = "(unknown)";

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/usage.txt").trim_ascii_end())]
pub(crate) struct UsageArgs {
    /// Grouping of the lines
    #[arg(long, value_enum, default_value_t = By::Day)]
    by: By,
    /// Count only the last days or weeks (7d, 4w)
    #[arg(long, value_name = "AGE", value_parser = age)]
    since: Option<Duration>,
    /// Count only sessions that were last run in this folder
    #[arg(long)]
    here: bool,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
    /// Where they are.
    #[command(flatten)]
    place: PlaceArgs,
}

/// Grouping of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Day,
    Month,
    Model,
    Folder,
    Session,
}

/// Runs the command.
pub(crate) async fn run(args: &UsageArgs) -> Result<u8, CliError> {
    if args.here || args.by == By::Folder {
        args.place.only_files()?;
    }
    match args.place.open().await? {
        OpenStore::Files(store) => show(&*store, args).await,
        #[cfg(feature = "restate")]
        OpenStore::Database(store) => show(&store, args).await,
    }
}

async fn show(store: &impl SessionReader, args: &UsageArgs) -> Result<u8, CliError> {
    let since = args.since.map_or(0, |age| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |now| now.saturating_sub(age).as_secs())
    });
    let sessions = list::sessions(store, false).await?;
    let by_id: BTreeMap<&str, &ListedSession> = sessions
        .iter()
        .map(|session| (session.info.id.as_str(), session))
        .collect();
    let caller = |session: &&ListedSession| {
        let call = SubAgentCall::of(session.info.id.as_str())?;
        // A command stores the settings of the sessions that it runs.
        let is_called = session.model.is_none();
        by_id.get(call.caller).copied().filter(|_| is_called)
    };
    let folder = args.here.then(paths::here).transpose()?;
    let unknown = || UNKNOWN.to_owned();
    // The sums of each session. The log of a run repeats the calls of its chosen branch.
    let (mut used, mut chosen) = (BTreeMap::new(), BTreeSet::new());
    for session in &sessions {
        let info = &session.info;
        let owner = iter::successors(Some(session), caller).last();
        let owner = owner.unwrap_or(session);
        if info.updated < since || (args.here && owner.folder != folder) {
            continue;
        }
        let sums: &mut BTreeMap<String, Spend> = used.entry(info.id.to_string()).or_default();
        let mut model = session.model.clone().unwrap_or_else(unknown);
        let each = |line: &mut LogEntry| {
            match &line.entry {
                Entry::RunStarted { model: of, .. } => model.clone_from(of),
                Entry::Branched {
                    branches, winner, ..
                } => {
                    let winner = winner.and_then(|winner| branches.get(winner));
                    chosen.extend(winner.map(|branch| branch.session.clone()));
                }
                _ => {}
            }
            let spent = spent(&line.entry);
            if spent.is_nothing() || line.at < since {
                return Ok::<_, StoreError>(());
            }
            let about = match args.by {
                By::Day => day(line.at),
                By::Month => day(line.at).chars().take("2026-11".len()).collect(),
                By::Model if matches!(line.entry, Entry::Summarized { .. }) => SUMMARIES.to_owned(),
                By::Model => model.clone(),
                By::Folder => {
                    let folder = owner.folder.as_ref();
                    folder.map_or_else(unknown, |folder| folder.display().to_string())
                }
                By::Session => owner.info.id.to_string(),
            };
            let sum = sums.entry(about).or_default();
            *sum = sum.combine(spent);
            Ok(())
        };
        // The entries that a fork shares are counted for its parent.
        let after = info.fork.as_ref().map_or(0, |fork| fork.entries);
        if let Err(error) = each_entry(store, &info.id, after, each).await {
            say!("{error}");
        }
    }
    used.retain(|session, _| !chosen.contains(session));
    let mut lines: BTreeMap<String, Spend> = BTreeMap::new();
    for (about, spent) in used.into_values().flatten() {
        let line = lines.entry(about).or_default();
        *line = line.combine(spent);
    }
    print(args, lines.into_iter().collect(), &by_id)
}

/// Prints the lines: days and months by time, all others by decreasing cost.
fn print(
    args: &UsageArgs,
    mut lines: Vec<(String, Spend)>,
    sessions: &BTreeMap<&str, &ListedSession>,
) -> Result<u8, CliError> {
    if !matches!(args.by, By::Day | By::Month) {
        lines.sort_by_key(|(_, spent)| Reverse((spent.cost.known, spent.usage.total_tokens())));
    }
    let name = args.by.to_possible_value();
    let name = name.as_ref().map_or("", |value| value.get_name());
    if args.json {
        return listing::json_lines(lines.iter().map(|(about, spent)| {
            let (calls, usage, cost) = (spent.turns, spent.usage, spent.cost);
            json!({ name: about, "calls": calls, "usage": usage, "cost": cost })
        }))
        .map(|()| DONE);
    }
    if lines.is_empty() {
        let here = if args.here { " in this folder" } else { "" };
        let when = args.since.map_or("yet", |_| "since then");
        say!("nothing was used{here} {when}");
        return Ok(DONE);
    }
    if lines.len() > 1 {
        let all = lines.iter().map(|(_, spent)| *spent);
        let all = all.reduce(Spend::combine).unwrap_or_default();
        lines.push(("in all".to_owned(), all));
    }
    let heading = [">calls", ">read", ">cached", ">wrote", ">cost", name];
    let title = |about: &str| {
        let session = sessions.get(about).filter(|_| args.by == By::Session);
        session.map_or("", |session| &session.info.title)
    };
    let cells = lines.iter().map(|(about, spent)| {
        [
            spent.turns.to_string(),
            spent.usage.processed().to_string(),
            spent.usage.cache_read.to_string(),
            spent.usage.output.to_string(),
            listing::cost(spent.cost),
            format!("{about}  {}", title(about)),
        ]
    });
    listing::print_columns(heading, cells)?;
    Ok(DONE)
}

/// Returns the usage in an entry. That of a sub-agent is in its own log.
fn spent(entry: &Entry) -> Spend {
    let turns = match entry {
        Entry::Reply { .. } | Entry::PartialReply { .. } => 1,
        Entry::Summarized { calls, .. } if *calls > 0 => *calls,
        Entry::Branched { judged, .. } => return *judged,
        _ => return Spend::default(),
    };
    let spent = entry.spend();
    Spend {
        usage: spent.usage.combine(spent.estimated),
        cost: spent.cost,
        turns,
        ..Spend::default()
    }
}
