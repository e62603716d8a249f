//! `plimsoll usage`: the usage and cost of all sessions, by day, model, folder or session. It adds up
//! the calls in each log. Entries that a session shares with its parent are counted for the parent, and
//! the log of a sub-agent for the session that called it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use plimsoll::machine::Entry;
use plimsoll::pricing::{Cost, Spend};
use plimsoll::store::{LogEntry, SessionReader, StoreError};
use plimsoll::{SessionId, Usage};
use serde_json::json;

use crate::error::{CliError, DONE};
use crate::listing::{self, day};
use crate::sessions::entries::{each_entry, own_count};
use crate::sessions::list::{self, ListedSession};
use crate::sessions::open_store::{OpenStore, PlaceArgs};
use crate::sessions::removal::age;

const EXAMPLES: &str = "\
Examples:
  plimsoll usage                      # by day
  plimsoll usage --by model --since 30d
  # The sessions of this folder, the most expensive first:
  plimsoll usage --by session --here
  plimsoll usage --by month --json

Days are UTC. `read` counts all tokens that models read, `cached` those of them that came from a \
prompt cache. A cost with a + is a lower bound: the prices of some calls are unknown.";

/// The table's model for summaries, because the log does not name their model.
const SUMMARIES: &str = "(summaries)";
/// A model or a folder that the store does not know.
const UNKNOWN: &str = "(unknown)";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
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

/// Calls of a model in the log of a session.
struct Call<'a> {
    session: &'a SessionId,
    /// The session, or the one on whose behalf it ran.
    owner: &'a ListedSession,
    /// Seconds since 1970.
    at: u64,
    model: String,
    spent: Spend,
}

/// A line of the table.
struct Row {
    /// The day, model, folder or session.
    about: String,
    spent: Spend,
    /// The title, if it is a session.
    title: String,
}

/// Runs the command.
pub(crate) async fn run(args: &UsageArgs) -> Result<u8, CliError> {
    if args.here || args.by == By::Folder {
        args.place.only_files("--by folder")?;
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
    let by_id: BTreeMap<&SessionId, &ListedSession> = sessions
        .iter()
        .map(|session| (&session.info.id, session))
        .collect();
    let caller = |session: &&ListedSession| {
        let caller = caller_of(&session.info.id)?;
        by_id.get(&caller).copied()
    };
    let folder = args.here.then(list::folder).transpose()?;
    let (mut calls, mut chosen) = (Vec::new(), BTreeSet::new());
    for session in &sessions {
        let owner = iter::successors(Some(session), caller).last();
        let owner = owner.unwrap_or(session);
        let is_here = folder.is_none() || owner.folder == folder;
        if is_here && session.info.updated >= since {
            let used = used(store, session, owner, &mut chosen).await;
            calls.extend(used.into_iter().filter(|call| call.at >= since));
        }
    }
    calls.retain(|call| !chosen.contains(call.session.as_str()));
    let mut rows = rows(args.by, &calls);
    let name = args.by.to_possible_value();
    let name = name.as_ref().map_or("", |value| value.get_name());
    if args.json {
        for Row { about, spent, .. } in rows {
            let (calls, usage, cost) = (spent.turns, spent.usage, spent.cost);
            out!(
                "{}",
                json!({ name: about, "calls": calls, "usage": usage, "cost": cost })
            );
        }
        return Ok(DONE);
    }
    if rows.is_empty() {
        let here = if args.here { " in this folder" } else { "" };
        let when = args.since.map_or("yet", |_| "since then");
        say!("nothing was used{here} {when}");
        return Ok(DONE);
    }
    if rows.len() > 1 {
        let spent = rows.iter().map(|row| row.spent).reduce(Spend::combine);
        rows.push(Row {
            about: "in all".to_owned(),
            spent: spent.unwrap_or_default(),
            title: String::new(),
        });
    }
    let heading = [
        ">calls?4",
        ">read?3",
        ">cached?1",
        ">wrote?2",
        ">cost",
        name,
        "",
    ];
    listing::print_columns(heading, rows.iter().map(cells))?;
    Ok(DONE)
}

/// Returns the session that has called the sub-agent of this session, if the name is one of
/// a sub-agent: `CALLER.TOOL.MESSAGE-CALL`.
fn caller_of(id: &SessionId) -> Option<SessionId> {
    let (rest, call) = id.as_str().rsplit_once('.')?;
    let (message, index) = call.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (caller, _) = rest.rsplit_once('.')?;
    let caller = Some(caller).filter(|_| is_number(message) && is_number(index))?;
    SessionId::new(caller).ok()
}

/// Returns the calls in the log of a session, as far as it can be read. The calls that a fork shares are
/// counted for its parent. Adds the sessions of chosen branches, whose calls the log repeats.
async fn used<'a>(
    store: &impl SessionReader,
    session: &'a ListedSession,
    owner: &'a ListedSession,
    chosen: &mut BTreeSet<String>,
) -> Vec<Call<'a>> {
    let info = &session.info;
    let after = info.fork.as_ref().map_or(0, |fork| fork.entries);
    let mut model = session.model.clone().unwrap_or_else(|| UNKNOWN.to_owned());
    let mut calls = Vec::new();
    let each = |line: &LogEntry| {
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
        let spent = spent(&line.entry, &model).into_iter();
        calls.extend(spent.map(|(model, spent)| Call {
            session: &info.id,
            owner,
            at: line.at,
            model,
            spent,
        }));
        Ok::<_, StoreError>(())
    };
    if let Err(error) = each_entry(store, &info.id, after, each).await {
        say!("{error}");
    }
    calls
}

/// Returns the usage in an entry, with its model.
fn spent(entry: &Entry, model: &str) -> Option<(String, Spend)> {
    let call = |model: &str, turns, usage: Usage, cost| {
        let spent = Spend {
            usage,
            cost,
            turns,
            ..Spend::default()
        };
        Some((model.to_owned(), spent))
    };
    match entry {
        Entry::Reply {
            message,
            usage,
            counted,
            cost,
            ..
        } => {
            let usage = usage.unwrap_or_else(|| own_count(*counted, message));
            call(model, 1, usage, Cost::of(*cost))
        }
        Entry::PartialReply {
            usage,
            estimated,
            cost,
            ..
        } => call(model, 1, usage.combine(*estimated), Cost::of(*cost)),
        Entry::Summarized {
            calls, usage, cost, ..
        } if *calls > 0 => call(SUMMARIES, *calls, *usage, Cost::of(*cost)),
        Entry::Branched { judged, .. } if !judged.is_nothing() => Some((model.to_owned(), *judged)),
        _ => None,
    }
}

/// Adds up the calls. Days and months are sorted by time, all others by decreasing cost.
fn rows(by: By, calls: &[Call<'_>]) -> Vec<Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for call in calls {
        let about = about(by, call);
        let title = match by {
            By::Session => call.owner.info.title.clone(),
            _ => String::new(),
        };
        let row = rows.entry(about.clone()).or_insert(Row {
            about,
            spent: Spend::default(),
            title,
        });
        row.spent = row.spent.combine(call.spent);
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    if !matches!(by, By::Day | By::Month) {
        rows.sort_by_key(|row| {
            let Spend { usage, cost, .. } = row.spent;
            Reverse((cost.known, usage.total_tokens()))
        });
    }
    rows
}

/// Returns the line of the table that a call belongs to.
fn about(by: By, call: &Call<'_>) -> String {
    match by {
        By::Day => day(call.at),
        By::Month => day(call.at).chars().take("2026-11".len()).collect(),
        By::Model => call.model.clone(),
        By::Folder => match &call.owner.folder {
            Some(folder) => folder.display().to_string(),
            None => UNKNOWN.to_owned(),
        },
        By::Session => call.owner.info.id.to_string(),
    }
}

fn cells(row: &Row) -> [String; 7] {
    let usage = row.spent.usage;
    [
        row.spent.turns.to_string(),
        usage.processed().to_string(),
        usage.cache_read.to_string(),
        usage.output.to_string(),
        listing::cost(row.spent.cost),
        row.about.clone(),
        row.title.clone(),
    ]
}
