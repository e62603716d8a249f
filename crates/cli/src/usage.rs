//! `plimsoll usage`: the usage and cost of all sessions, by day, model, folder or session. It reads
//! the logs. Entries that a session shares with its parent are counted for the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use console::Term;
use plimsoll::Usage;
use plimsoll::machine::Entry;
use plimsoll::pricing::{Cost, Spend};
use plimsoll::store::{LogEntry, SessionReader, StoreError};
use serde_json::json;

use crate::error::{CliError, DONE};
use crate::sessions::entries::each_entry;
use crate::sessions::ledger::when;
use crate::sessions::list::{self, ListedSession};
use crate::sessions::open_store::{OpenStore, PlaceArgs};
use crate::sessions::removal::age;
use crate::terminal::fitted;
use crate::terminal::text::widths;

const EXAMPLES: &str = "\
Examples:
  plimsoll usage                      # by day
  plimsoll usage --by model --since 30d
  # The sessions of this folder, the newest first:
  plimsoll usage --by session --here
  plimsoll usage --by month --json

Days are UTC. `read` counts all tokens that models read, `cached` those of them that came from a \
prompt cache. A cost with a + is a lower bound: the prices of some calls are unknown.";

/// The table's model for summaries, because the log does not name their model.
const SUMMARIES: &str = "(summaries)";
/// The table's model for usage by tools such as sub-agents.
const TOOLS: &str = "(sub-agents)";
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

/// The usage of one model at one time.
struct ModelUsage {
    /// Seconds since 1970.
    at: u64,
    model: String,
    spent: Spend,
}

/// The usage of one session, without shared entries.
struct SessionUsage {
    session: ListedSession,
    calls: Vec<ModelUsage>,
    /// Sessions that ran on behalf of this one, which includes their costs.
    branches: BTreeSet<String>,
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
    let mut all = Vec::new();
    for session in list::sessions(store, args.here).await? {
        if session.0.updated >= since {
            all.push(used(store, session, since).await);
        }
    }
    let branches: BTreeSet<String> = all.iter().flat_map(|used| used.branches.clone()).collect();
    let mut rows = Rows::new(args.by);
    for used in all {
        if !branches.contains(used.session.0.id.as_str()) {
            rows.add(&used);
        }
    }
    if args.json {
        rows.print_json()?
    } else {
        rows.print()?
    }
    Ok(DONE)
}

/// Reads the log of a session as far as it can be read.
async fn used(store: &impl SessionReader, session: ListedSession, since: u64) -> SessionUsage {
    let (info, last_run) = &session;
    // The calls that a fork shares are counted in its parent.
    let after = info.fork.as_ref().map_or(0, |fork| fork.entries);
    let mut model = match last_run.model.as_str() {
        "" => UNKNOWN.to_owned(),
        model => model.to_owned(),
    };
    let (mut calls, mut branches) = (Vec::new(), BTreeSet::new());
    let each = |line: &LogEntry| {
        match &line.entry {
            Entry::RunStarted { model: of, .. } => model.clone_from(of),
            Entry::Branched { branches: of, .. } => {
                branches.extend(of.iter().map(|branch| branch.session.clone()));
            }
            _ => {}
        }
        if line.at >= since {
            let spent = spent(&line.entry, &model).into_iter();
            calls.extend(spent.map(|(model, spent)| ModelUsage {
                at: line.at,
                model,
                spent,
            }));
        }
        Ok::<_, StoreError>(())
    };
    if let Err(error) = each_entry(store, &info.id, after, each).await {
        say!("{error}");
    }
    SessionUsage {
        session,
        calls,
        branches,
    }
}

/// Returns the usage in an entry, by model.
fn spent(entry: &Entry, model: &str) -> Vec<(String, Spend)> {
    let call = |model: &str, turns, usage: Usage, cost| {
        let spent = Spend {
            usage,
            cost,
            turns,
            ..Spend::default()
        };
        vec![(model.to_owned(), spent)]
    };
    match entry {
        Entry::Reply { usage, cost, .. } => {
            call(model, 1, usage.unwrap_or_default(), Cost::of(*cost))
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
        Entry::ToolResult { spent, .. } if !spent.is_nothing() => {
            vec![(TOOLS.to_owned(), *spent)]
        }
        Entry::Branched {
            branches,
            winner,
            judged,
            ..
        } => {
            // The usage of the chosen branch follows in this log.
            let losers = branches.iter().enumerate();
            let losers = losers.filter(|(index, _)| Some(*index) != *winner);
            let losers = losers.map(|(_, branch)| (branch.model.clone(), branch.spent));
            let judged = (!judged.is_nothing()).then(|| (model.to_owned(), *judged));
            losers.chain(judged).collect()
        }
        _ => Vec::new(),
    }
}

/// The lines of the table.
struct Rows {
    by: By,
    /// The rows by their keys, each with a session's title.
    rows: BTreeMap<String, (Spend, String)>,
    /// The keys in order of appearance.
    order: Vec<String>,
}

impl Rows {
    fn new(by: By) -> Self {
        Self {
            by,
            rows: BTreeMap::new(),
            order: Vec::new(),
        }
    }

    fn add(&mut self, used: &SessionUsage) {
        let (info, last_run) = &used.session;
        for call in &used.calls {
            let about = match self.by {
                By::Day => day(call.at),
                By::Month => day(call.at).get(..7).unwrap_or_default().to_owned(),
                By::Model => call.model.clone(),
                By::Folder => match &last_run.folder {
                    Some(folder) => folder.display().to_string(),
                    None => UNKNOWN.to_owned(),
                },
                By::Session => info.id.to_string(),
            };
            if !self.rows.contains_key(&about) {
                self.order.push(about.clone());
            }
            let (sum, title) = self.rows.entry(about).or_default();
            *sum = sum.combine(call.spent);
            if self.by == By::Session {
                title.clone_from(&info.title);
            }
        }
    }

    /// Returns the rows sorted: days and months by time, sessions newest first, others by
    /// decreasing cost.
    fn sorted(&self) -> Vec<(&str, &Spend, &str)> {
        let row = |about: &'_ String| {
            let (about, (spent, title)) = self.rows.get_key_value(about)?;
            Some((about.as_str(), spent, title.as_str()))
        };
        let mut rows: Vec<_> = self.order.iter().filter_map(row).collect();
        match self.by {
            By::Day | By::Month => rows.sort_by_key(|(about, ..)| *about),
            By::Session => {}
            By::Model | By::Folder => rows.sort_by_key(|(about, spent, _)| {
                let tokens = spent.usage.total_tokens();
                (std::cmp::Reverse((spent.cost.known, tokens)), *about)
            }),
        }
        rows
    }

    fn print(&self) -> Result<(), CliError> {
        let rows = self.sorted();
        if rows.is_empty() {
            crate::say("nothing was used yet; `plimsoll run` starts a session");
            return Ok(());
        }
        let name = self.by.name();
        let mut table =
            vec![["calls", "read", "cached", "wrote", "cost", name, ""].map(String::from)];
        let mut sum = Spend::default();
        for (about, spent, title) in &rows {
            sum = sum.combine(**spent);
            table.push(cells(about, spent, title));
        }
        if rows.len() > 1 {
            table.push(cells("in all", &sum, ""));
        }
        let widths = widths(&table);
        let terminal = Term::stdout();
        for row in &table {
            let mut line = String::new();
            for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Numbers are aligned to the right, names to the left.
                let _ = match index {
                    0..5 => write!(line, "{cell:>width$}  "),
                    _ => write!(line, "{cell:<width$}  "),
                };
            }
            out!("{}", fitted(line.trim_end(), &terminal));
        }
        Ok(())
    }

    fn print_json(&self) -> Result<(), CliError> {
        for (about, spent, _) in self.sorted() {
            let row = json!({
                self.by.name(): about,
                "calls": spent.turns,
                "usage": spent.usage,
                "cost": spent.cost,
            });
            out!("{}", serde_json::to_string(&row)?);
        }
        Ok(())
    }
}

impl By {
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Model => "model",
            Self::Folder => "folder",
            Self::Session => "session",
        }
    }
}

fn cells(about: &str, spent: &Spend, title: &str) -> [String; 7] {
    let Usage {
        output, cache_read, ..
    } = spent.usage;
    [
        spent.turns.to_string(),
        spent.usage.processed().to_string(),
        cache_read.to_string(),
        output.to_string(),
        list::shown(spent.cost),
        about.to_owned(),
        title.to_owned(),
    ]
}

/// Formats a day as `2026-11-25`, which sorts by its text.
pub(crate) fn day(at: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let date = when(at);
    let mut parts = date.split(' ');
    let (Some(day), Some(month), Some(year)) = (parts.next(), parts.next(), parts.next()) else {
        return date;
    };
    let month = MONTHS.iter().position(|name| *name == month);
    month.map_or(date.clone(), |month| {
        format!("{year}-{:02}-{day}", month + 1)
    })
}
