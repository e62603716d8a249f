//! `cargo xtask money`: the cost of sessions with Plimsoll's policies, with common other ones and
//! with hindsight, and how much of the sessions the views still contain. `plimsoll-replay`
//! measures.

mod steady;
mod times;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Bpe, ContextStrategy, Memo, Money, Ppm, PriceSheet, Rates, Threshold, TokenCounter, Tokens,
};
use plimsoll_replay::{
    Bill, Keep, PlimsollSettings, Reads, Recording, Share, Way, read, simulate_with,
};

use crate::error::Error;
use crate::recordings::{DATA, files};

const WINDOWS: [Tokens; 3] = [Tokens(32_000), Tokens(64_000), Tokens(128_000)];

/// Maximum cost of the default in percent of the cost with hindsight. Hindsight only drops
/// messages: it neither keeps a summary nor waits longer because evicted content is read again.
const REQUIRED: u64 = 125;

/// One row of the tables.
struct MoneyRow {
    name: &'static str,
    way: Way,
    part: RowPurpose,
}

/// The purpose of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowPurpose {
    /// The default, which is judged.
    Ours,
    /// A policy that must cost more than the default.
    Rival,
    /// The lowest possible cost of its family of policies.
    Best,
    /// Shown for comparison.
    Shown,
}

/// The bill of a policy at one window: of the sessions in which any policy had to act, and of all
/// sessions.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    touched: Bill,
    all: Bill,
}

/// The results of all policies at one window.
struct Column {
    window: Tokens,
    touched: usize,
    cells: Vec<Cell>,
}

/// Prints the tables for made-up sessions, and for every session in the `.jsonl` and `.jsonl.gz`
/// files of `data`.
pub(crate) fn run(root: &Path, data: Option<&Path>) -> Result<(), Error> {
    let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(Bpe::o200k()));
    steady::print(&counter);
    let folder = data.map_or_else(|| root.join(DATA), Path::to_path_buf);
    if !folder.is_dir() {
        println!("skipped: no {}", folder.display());
        return Ok(());
    }
    let recordings = load(&folder)?;
    times::print(&folder, &recordings, &counter)?;
    let mut missed = 0;
    for (name, sheet) in sheets() {
        println!("\n{name}\n");
        missed += table(&sheet, &recordings, &counter);
    }
    match missed {
        0 => Ok(()),
        missed => Err(Error::Missed(missed)),
    }
}

fn load(folder: &Path) -> Result<Vec<Recording>, Error> {
    let mut recordings = Vec::new();
    for file in files(folder)? {
        let read = read(&file).map_err(|error| Error::Unreadable {
            what: file.display().to_string(),
            why: error.to_string(),
        })?;
        recordings.extend(read);
    }
    Ok(recordings)
}

/// Returns three kinds of prices: a cache with expensive writes, one with free writes, and one
/// whose reads are not much cheaper.
fn sheets() -> [(&'static str, PriceSheet); 3] {
    let cents = |cents: u64| Money(cents * 10_000_000);
    let sheet = |input, output, read, write| PriceSheet {
        min_cacheable: Some(Tokens(1_024)),
        ..PriceSheet::of(Rates {
            input,
            output,
            cache_read: Some(read),
            cache_write: Some(write),
        })
    };
    [
        (
            "Claude Sonnet 4.5 ($3.00, output $15, cache read $0.30, write $3.75)",
            sheet(cents(300), cents(1_500), cents(30), cents(375)),
        ),
        (
            "GPT-5 ($1.25, output $10, cache read $0.125, write $1.25)",
            sheet(cents(125), cents(1_000), Money(125_000_000), cents(125)),
        ),
        (
            "GPT-4o ($2.50, output $10, cache read $1.25, write $2.50)",
            sheet(cents(250), cents(1_000), cents(125), cents(250)),
        ),
    ]
}

/// Returns prices in fresh-input tokens: a cache read costs 0.1, a write this many hundredths. One
/// dollar is a million tokens.
fn unit_sheet(write: u64, lives: Option<Duration>) -> PriceSheet {
    let hundredths = |number: u64| Money(number * 10_000_000);
    PriceSheet {
        min_cacheable: Some(Tokens(1_024)),
        cache_lives: lives,
        ..PriceSheet::of(Rates {
            input: hundredths(100),
            output: hundredths(500),
            cache_read: Some(hundredths(10)),
            cache_write: Some(hundredths(write)),
        })
    }
}

fn percent(share: Share) -> String {
    format!("{:.0} %", share.fraction() * 100.0)
}

fn rows() -> Vec<MoneyRow> {
    use RowPurpose::{Best, Ours, Rival, Shown};
    let summary = |keep, reads| Way::Summarize { keep, reads };
    let share = |percent: u64| Some(Threshold::Share(Ppm(percent * 10_000)));
    let later = PlimsollSettings {
        trigger: share(80),
        target: share(26),
        policy: ContextStrategy::Extract { max_tokens: None },
        ..PlimsollSettings::default()
    };
    let row = |name, way, part| MoneyRow { name, way, part };
    vec![
        row("`extract`: the default", Way::default(), Ours),
        row("`extract`, 80 % down to 26 %", Way::Plimsoll(later), Shown),
        row("drop the oldest, each turn", Way::Fifo, Rival),
        row(
            "sliding window, each turn",
            Way::SlidingWindow { size: Ppm::ONE },
            Rival,
        ),
        row(
            "summary at the trigger, down to our target",
            summary(Keep::Target, Reads::Fresh),
            Rival,
        ),
        row(
            "the same, its writer reading from the cache",
            summary(Keep::Target, Reads::Cached),
            Rival,
        ),
        row(
            "summary at the trigger, down to 10 messages",
            summary(Keep::Messages(10), Reads::Fresh),
            Shown,
        ),
        row("drop the oldest, in hindsight", Way::Hindsight, Best),
    ]
}

/// Prints the table of one price sheet. Returns the number of figures that miss their requirements.
fn table(sheet: &PriceSheet, recordings: &[Recording], counter: &Arc<dyn TokenCounter>) -> usize {
    let rows = rows();
    let columns: Vec<Column> = WINDOWS
        .into_iter()
        .map(|window| column(&rows, window, sheet, recordings, counter))
        .collect();
    print!("| dollars without the recorded answers |");
    for Column {
        window, touched, ..
    } in &columns
    {
        print!(" {}k, {touched} sessions |", window.0 / 1_000);
    }
    println!("\n|---|--:|--:|--:|");
    let mut missed = 0;
    for (at, row) in rows.iter().enumerate() {
        print!("| {} |", row.name);
        for column in &columns {
            let cost = |part: RowPurpose| {
                let at = rows.iter().position(|row| row.part == part);
                at.map_or(0, |at| column.cost(at, sheet).0)
            };
            let (this, default) = (column.cost(at, sheet), cost(RowPurpose::Ours));
            let best = cost(RowPurpose::Best).max(1);
            let bill = column.cells.get(at).copied().unwrap_or_default().touched;
            let holds = match row.part {
                RowPurpose::Ours => this.0.saturating_mul(100) <= best.saturating_mul(REQUIRED),
                RowPurpose::Rival => this.0 > default,
                _ => true,
            };
            missed += usize::from(!holds);
            let mark = if holds { "" } else { " MISSED" };
            let times = this.0 as f64 / best as f64;
            let kept = bill.mean_kept().0 as f64 / 1_000.0;
            print!(
                " {this}, {times:.2} ×, {} to {kept:.1}k, {} and {}{mark} |",
                bill.plans,
                percent(bill.retention.user_messages),
                percent(bill.retention.facts),
            );
        }
        println!();
    }
    for column in &columns {
        let all = |at: usize| column.cells.get(at).copied().unwrap_or_default().all;
        let money = |bill: Bill| {
            bill.money
                .map_or("unknown".to_owned(), |money| money.to_string())
        };
        let unfit: Vec<String> = (0..rows.len())
            .map(|at| all(at).unfit.to_string())
            .collect();
        println!(
            "\n{}k, all {} sessions and their {} answers: {} by default, {} where the oldest is dropped each turn; requests over the limit, by row: {}",
            column.window.0 / 1_000,
            recordings.len(),
            all(0).requests,
            money(all(0)),
            rows.iter()
                .position(|row| row.way == Way::Fifo)
                .map_or(String::new(), |at| money(all(at))),
            unfit.join(" "),
        );
    }
    missed
}

fn column(
    rows: &[MoneyRow],
    window: Tokens,
    sheet: &PriceSheet,
    recordings: &[Recording],
    counter: &Arc<dyn TokenCounter>,
) -> Column {
    let mut column = Column {
        window,
        touched: 0,
        cells: vec![Cell::default(); rows.len()],
    };
    for recording in recordings {
        let bill = |row: &MoneyRow| simulate_with(counter, recording, row.way, window, sheet);
        let bills: Vec<Bill> = rows
            .iter()
            .map(|row| bill(row).unwrap_or_default())
            .collect();
        let is_touched = bills.iter().any(|bill| bill.plans > 0);
        column.touched += usize::from(is_touched);
        for (cell, bill) in column.cells.iter_mut().zip(bills) {
            cell.all = cell.all.combine(bill);
            if is_touched {
                cell.touched = cell.touched.combine(bill);
            }
        }
    }
    column
}

impl Column {
    /// Returns the cost of the sessions in which any policy had to act, as far as a policy can
    /// influence it.
    fn cost(&self, at: usize, sheet: &PriceSheet) -> Money {
        let cell = self.cells.get(at).copied().unwrap_or_default();
        cell.touched
            .without_answers(&sheet.rates)
            .unwrap_or_default()
    }
}
