//! `plimsoll sessions search`: finds the sessions that contain some words. It reads the logs.

use plimsoll::SessionId;
use plimsoll::recall::{MessageKind, SearchQuery, recall_text, snippet};
use plimsoll::store::{SessionInfo, SessionReader};
use serde::Serialize;

use super::list::{self, ListedSession};
use crate::error::{CliError, DONE};
use crate::listing;
use crate::terminal::text::counted;

const HEADING: [&str; 4] = ["session", ">entry", "kind", "text"];
/// Maximum number of shown places in a session. With `--json`, all are shown.
const SHOWN: usize = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// The words; a word of three letters or more also finds longer words that begin with it
    #[arg(required = true)]
    words: Vec<String>,
    /// Search only sessions that were last run in this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// Maximum number of sessions found
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Print JSON lines: every place
    #[arg(long)]
    json: bool,
}

/// A place in a session that contains all words.
#[derive(Debug, Serialize)]
struct SearchHit {
    session: SessionId,
    title: String,
    /// The number of the log entry.
    entry: u64,
    /// The time of the entry, in seconds since 1970.
    at: u64,
    kind: MessageKind,
    /// The text around the words, on one line.
    text: String,
}

/// Runs the command.
pub(crate) async fn run(store: &impl SessionReader, args: &SearchArgs) -> Result<u8, CliError> {
    let none = "there is no word to search for; words consist of letters or digits";
    let query = SearchQuery::parse(&args.words.join(" "));
    let query = query.ok_or_else(|| CliError::usage(none))?;
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    // Of each session, the places that are printed.
    let shown = if args.json { usize::MAX } else { SHOWN };
    let (mut found, mut count) = (Vec::new(), 0);
    for ListedSession { info, .. } in list::sessions(store, args.here).await? {
        let mut places = places(store, &info, &query).await;
        count += usize::from(!places.is_empty());
        places.truncate(shown);
        found.extend(places);
        if count == most {
            break;
        }
    }
    listing::print(&found, args.json, HEADING, |hit| {
        let (session, entry) = (hit.session.to_string(), hit.entry.to_string());
        [session, entry, hit.kind.to_string(), hit.text.clone()]
    })?;
    if found.is_empty() {
        crate::note("nothing was found; an entry is found if it contains all of the words");
    } else if count == most {
        let searched = counted(most, "session");
        note!("the search ended after {searched}; a larger --limit searches on");
    }
    Ok(DONE)
}

/// Returns the places in a session that contain all words of the query, in the order of its log. If a
/// session cannot be searched, a message says so.
async fn places(
    store: &impl SessionReader,
    session: &SessionInfo,
    query: &SearchQuery,
) -> Vec<SearchHit> {
    let found = store.search(&session.id, query).await;
    let found = found.unwrap_or_else(|error| {
        say!("{error}");
        Vec::new()
    });
    // The entries that a fork shares are found in its parent.
    let shared = session.fork.as_ref().map_or(0, |fork| fork.entries);
    let own = found.iter().rev().filter(|line| line.n > shared);
    let places = own.filter_map(|line| {
        let message = line.entry.message()?;
        let text = recall_text(message);
        let (_, around) = snippet(&text, query.find(&text)?.at);
        Some(SearchHit {
            session: session.id.clone(),
            title: session.title.clone(),
            entry: line.n,
            at: line.at,
            kind: MessageKind::of(message),
            text: around.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    });
    places.collect()
}
