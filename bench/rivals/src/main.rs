//! Compares the cost and the kept content of yoagent's compaction with those of Plimsoll, by
//! Plimsoll's meter and on the sessions of `cargo xtask money`. `cargo xtask rivals` runs it.

mod yoagent;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::{Bpe, Memo, Money, Ppm, PriceSheet, Rates, Threshold, TokenCounter, Tokens};
use plimsoll_replay::{
    Bill, PlimsollSettings, Recording, Share, Way, read, simulate_compactor, simulate_with,
    steady_sessions,
};

use crate::yoagent::Yoagent;

const STEADY_WINDOW: Tokens = Tokens(32_000);
const WINDOWS: [Tokens; 3] = [Tokens(32_000), Tokens(64_000), Tokens(128_000)];

/// The compaction that is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Plimsoll,
    /// With a target of its own, in percent of the available tokens.
    PlimsollDownTo(u64),
    Yoagent,
}

const ROWS: [(Who, &str); 3] = [
    (Who::Plimsoll, "**Plimsoll, the default**"),
    (Who::PlimsollDownTo(25), "Plimsoll, target 25 %"),
    (Who::Yoagent, "yoagent 0.26.6, its default"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    steady(&counter);
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Ok(());
    };
    if !folder.is_dir() {
        println!("\nskipped: no {}", folder.display());
        return Ok(());
    }
    recorded(&load(&folder)?, &counter);
    Ok(())
}

fn load(folder: &Path) -> Result<Vec<Recording>, Box<dyn std::error::Error>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    let mut recordings = Vec::new();
    for file in files {
        let name = file.to_string_lossy();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            recordings.extend(read(&file)?);
        }
    }
    Ok(recordings)
}

/// Returns prices in hundredths of a dollar per million tokens: for fresh input, for reading the
/// cache and for writing it.
fn sheet(input: u64, read: u64, write: u64) -> PriceSheet {
    let hundredths = |number: u64| Money(number * 10_000_000);
    PriceSheet {
        min_cacheable: Some(Tokens(1_024)),
        ..PriceSheet::of(Rates {
            input: hundredths(input),
            output: hundredths(5 * input),
            cache_read: Some(hundredths(read)),
            cache_write: Some(hundredths(write)),
        })
    }
}

fn bill(
    who: Who,
    recording: &Recording,
    window: Tokens,
    sheet: &PriceSheet,
    counter: &Arc<dyn TokenCounter>,
) -> Bill {
    let ours = |way| simulate_with(counter, recording, way, window, sheet);
    let bill = match who {
        Who::Plimsoll => ours(Way::default()),
        Who::PlimsollDownTo(percent) => ours(Way::Plimsoll(PlimsollSettings {
            target: Some(Threshold::Share(Ppm(percent * 10_000))),
            ..PlimsollSettings::default()
        })),
        Who::Yoagent => {
            let mut yoagent = Yoagent::new(window);
            simulate_compactor(counter, recording, &mut yoagent, window, sheet)
        }
    };
    bill.unwrap_or_default()
}

fn percent(share: Share) -> String {
    format!("{:.0} %", share.fraction() * 100.0)
}

/// Prints the table of steady sessions, in tokens of fresh input.
fn steady(counter: &Arc<dyn TokenCounter>) {
    let sessions = steady_sessions();
    println!(
        "\n| cost in millions of fresh-input tokens | write 1.25 | write 1 | facts at the end | on average | user messages at the end | on average | prefix breaks | largest view |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for (who, name) in ROWS {
        let bill = |write| {
            let sheet = sheet(100, 10, write);
            let bills = sessions.iter();
            let bills = bills.map(|session| bill(who, session, STEADY_WINDOW, &sheet, counter));
            let bill = bills.fold(Bill::default(), Bill::combine);
            (bill, bill.without_answers(&sheet.rates).unwrap_or_default())
        };
        let ((bill, dear), (_, cheap)) = (bill(125), bill(100));
        let kept = bill.retention;
        println!(
            "| {name} | {:.3} | {:.3} | {} of {} | {} | {} of {} | {} | {} | {} |",
            dear.0 as f64 / 1e9,
            cheap.0 as f64 / 1e9,
            kept.last_facts.found,
            kept.last_facts.of,
            percent(kept.facts),
            kept.last_user_messages.found,
            kept.last_user_messages.of,
            percent(kept.user_messages),
            bill.prefix_breaks,
            bill.largest,
        );
    }
}

/// Prints the table of recorded sessions in which at least one of them had to act.
fn recorded(recordings: &[Recording], counter: &Arc<dyn TokenCounter>) {
    let sheet = sheet(300, 30, 375);
    println!(
        "\n| window | sessions | | dollars without the recorded answers | prefix breaks | user messages | facts | requests over the limit |\n|--:|--:|---|--:|--:|--:|--:|--:|"
    );
    for window in WINDOWS {
        let mut touched = 0;
        let mut sums = ROWS.map(|_| Bill::default());
        for recording in recordings {
            let bills = ROWS.map(|(who, _)| bill(who, recording, window, &sheet, counter));
            if bills.iter().any(|bill| bill.plans > 0) {
                touched += 1;
                for (sum, bill) in sums.iter_mut().zip(bills) {
                    *sum = sum.combine(bill);
                }
            }
        }
        for ((_, name), sum) in ROWS.iter().zip(sums) {
            println!(
                "| {}k | {touched} | {name} | {} | {} | {} | {} | {} of {} |",
                window.0 / 1_000,
                sum.without_answers(&sheet.rates).unwrap_or_default(),
                sum.prefix_breaks,
                percent(sum.retention.user_messages),
                percent(sum.retention.facts),
                sum.unfit,
                sum.requests,
            );
        }
    }
}
