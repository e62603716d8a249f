//! Rows of the table that `cargo xtask bench` prints: what was measured, the figure, what it has to
//! be. Shared by the benchmarks of several crates, each of which uses a part. Not a benchmark.
#![allow(dead_code)]

use std::fmt;
use std::time::{Duration, Instant};

/// What a figure has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requirement {
    AtMost(f64),
    AtLeast(f64),
    /// Told only.
    Nothing,
}

/// What a figure is a number of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Times,
    Percent,
    Micros,
    Millis,
    Megabytes,
    MegabytesPerSecond,
    PerSecond,
}

/// A number with its unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount(pub(crate) f64, pub(crate) Unit);

/// Prints one row. `cargo xtask bench` knows it by its first two characters.
pub(crate) fn row(what: &str, amount: Amount, required: Requirement) {
    let Amount(number, unit) = amount;
    let (required, verdict) = match required {
        Requirement::AtMost(bound) => (format!("≤ {}", Amount(bound, unit)), number <= bound),
        Requirement::AtLeast(bound) => (format!("≥ {}", Amount(bound, unit)), number >= bound),
        Requirement::Nothing => {
            println!("| {what} | {amount} | | |");
            return;
        }
    };
    let verdict = if verdict { "holds" } else { "MISSED" };
    println!("| {what} | {amount} | {required} | {verdict} |");
}

/// Runs the sections whose names were asked for (all of them, where none was), and none at all
/// where this is not a benchmark run but a test run that lists its targets.
pub(crate) fn sections(sections: &[(&str, fn())]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|text| !text.starts_with('-'))
        .collect();
    for (name, run) in sections {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(*filter)) {
            run();
        }
    }
}

/// How long one call takes.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}

/// The middle one; zero of none.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or_default()
}

/// Two ways timed in turns, so that what else the machine does falls on both: the median of
/// `first / second`.
pub(crate) fn ratio(
    rounds: usize,
    mut first: impl FnMut() -> Duration,
    mut second: impl FnMut() -> Duration,
) -> f64 {
    let one = |_| {
        let (first, second) = (first(), second());
        first.as_secs_f64() / second.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    median((0..rounds).map(one).collect())
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, unit) = *self;
        let digits = match number.abs() {
            small if small < 10.0 => 2,
            middle if middle < 100.0 => 1,
            _ => 0,
        };
        // A bound is a round number and shown as one.
        let digits = if number.fract() == 0.0 { 0 } else { digits };
        let unit = match unit {
            Unit::Times => "×",
            Unit::Percent => "%",
            Unit::Micros => "µs",
            Unit::Millis => "ms",
            Unit::Megabytes => "MB",
            Unit::MegabytesPerSecond => "MB/s",
            Unit::PerSecond => "/s",
        };
        write!(f, "{number:.digits$} {unit}")
    }
}
