//! Recorded sessions with their real times: the cost of expired caches, and the savings of plans
//! made at such moments.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{ContextStrategy, Threshold, TokenCounter, Tokens};
use plimsoll_replay::{Bill, PlimsollSettings, Recording, Times, Way, simulate_with};

use super::{percent, unit_sheet};
use crate::error::Error;
use crate::recordings::files;

/// The folder of the agents' original files, relative to the normalised ones.
const ORIGINALS: &str = "../originals";
/// The window of the recorded agents, in tokens.
const WINDOW: Tokens = Tokens(200_000);
/// The cost of one plan because the agent reads evicted content again: about 5,000 tokens and 3 to
/// 4 more calls, in fresh-input tokens. Measured on 50 compactions of a recorded client.
const REREADING: u64 = 20_000;

/// Prints the tables, if there are recordings with known times.
pub(super) fn print(
    folder: &Path,
    recordings: &[Recording],
    counter: &Arc<dyn TokenCounter>,
) -> Result<(), Error> {
    let originals = folder.join(ORIGINALS);
    let mut times = Times::default();
    if originals.is_dir() {
        let folders = std::fs::read_dir(&originals).map_err(Error::file(&originals))?;
        for folder in folders.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
            for file in files(&folder)? {
                times.read(&file).map_err(|error| Error::Unreadable {
                    what: file.display().to_string(),
                    why: error.to_string(),
                })?;
            }
        }
    }
    let timed: Vec<Recording> = recordings
        .iter()
        .map(|recording| recording.clone().with_times(&times))
        .filter(Recording::is_timed)
        .collect();
    if timed.is_empty() {
        println!("\nskipped: no times in {}", originals.display());
        return Ok(());
    }
    for (name, lives, write) in [("5 minutes", 300, 125), ("1 hour", 3_600, 200)] {
        table(name, Duration::from_secs(lives), write, &timed, counter);
    }
    Ok(())
}

fn table(
    name: &str,
    lives: Duration,
    write: u64,
    timed: &[Recording],
    counter: &Arc<dyn TokenCounter>,
) {
    println!(
        "\nTimed: {} recorded sessions with their own times, a cache of {name} (write {}.{:02}), a \
         window of 200k\n",
        timed.len(),
        write / 100,
        write % 100
    );
    println!(
        "| cost in millions of fresh-input tokens | input | with reading again | plans | mean \
         view | requests after expiry | user messages | facts |\n|---|--:|--:|--:|--:|--:|--:|--:|"
    );
    let sheet = unit_sheet(write, Some(lives));
    for (row, way) in rows() {
        let bills = timed
            .iter()
            .filter_map(|session| simulate_with(counter, session, way, WINDOW, &sheet));
        let bill = bills.fold(Bill::default(), Bill::combine);
        let cost = bill.without_answers(&sheet.rates).unwrap_or_default();
        let units = cost.0 / 1_000 + bill.plans * REREADING;
        let sent = bill.usage.input + bill.usage.cache_read + bill.usage.cache_write;
        println!(
            "| {row} | {:.2} | {:.2} | {} | {:.1}k | {} of {} | {} | {} |",
            cost.0 as f64 / 1e9,
            units as f64 / 1e6,
            bill.plans,
            sent.0 as f64 / 1e3 / bill.requests.max(1) as f64,
            bill.expired,
            bill.requests,
            percent(bill.retention.user_messages),
            percent(bill.retention.facts),
        );
    }
}

fn rows() -> [(&'static str, Way); 4] {
    let sizes = |trigger, target| {
        Way::Plimsoll(PlimsollSettings {
            policy: ContextStrategy::Extract { max_tokens: None },
            trigger: Some(Threshold::Mark(Tokens(trigger))),
            target: Some(Threshold::Mark(Tokens(target))),
            ..PlimsollSettings::default()
        })
    };
    let unlimited = PlimsollSettings {
        policy: ContextStrategy::Unlimited {},
        ..PlimsollSettings::default()
    };
    [
        ("**the default**", Way::default()),
        ("no plans", Way::Plimsoll(unlimited)),
        ("`extract`, 160k down to 110k", sizes(160_000, 110_000)),
        ("`extract`, 40k down to 20k", sizes(40_000, 20_000)),
    ]
}
