//! Prints lists: one row for each thing, as aligned columns or as JSON lines. Times are in UTC.

use std::iter;
use std::time::{Duration, UNIX_EPOCH};

use console::{Alignment, Term, measure_text_width, pad_str};
use plimsoll::pricing::Cost;
use plimsoll::tokens::Bytes;
use serde::Serialize;

use crate::error::CliError;
use crate::terminal::{self, fitted, text::clean};

/// The end of the year 9999, the last date that can be formatted.
const MAX_DATE: u64 = 253_402_300_799;
/// The space between two columns.
const GAP: &str = "  ";
/// The months, as HTTP dates abbreviate them.
const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

/// Prints rows as JSON lines, or as columns below their [heading](columns), fitted to the width of
/// the terminal.
pub(crate) fn print<T: Serialize, const N: usize>(
    rows: &[T],
    as_json: bool,
    heading: [&str; N],
    cells: impl Fn(&T) -> [String; N],
) -> Result<(), CliError> {
    if as_json {
        json_lines(rows)?;
    } else if !rows.is_empty() {
        print_columns(heading, rows.iter().map(cells))?;
    }
    Ok(())
}

/// Prints rows as JSON lines.
pub(crate) fn json_lines(rows: impl IntoIterator<Item = impl Serialize>) -> Result<(), CliError> {
    for row in rows {
        out!("{}", serde_json::to_string(&row)?);
    }
    Ok(())
}

/// Prints columns below their [heading](columns), fitted to the width of the terminal.
pub(crate) fn print_columns<const N: usize>(
    heading: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<(), CliError> {
    let terminal = Term::stdout();
    for line in columns(heading, rows, terminal::columns(&terminal)) {
        out!("{}", fitted(&line, &terminal));
    }
    Ok(())
}

/// Width that the last column gets, if it needs that much, before others are shown.
const LAST: usize = 20;

/// Aligns the cells of a table below its heading. A `>` before a name aligns its column to the
/// right. If the `width` is too small, the columns before the last one are left out from the right.
pub(crate) fn columns<const N: usize>(
    heading: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> Vec<String> {
    let names = heading.map(|name| name.trim_start_matches('>').to_owned());
    // Titles, paths and other foreign texts: one row each, also in a pipe.
    let rows = rows.map(|row| row.map(|cell| clean(&cell).replace('\n', " ")));
    let table: Vec<[String; N]> = iter::once(names).chain(rows).collect();
    let mut widths = [0; N];
    for row in &table {
        for (wide, cell) in widths.iter_mut().zip(row) {
            *wide = measure_text_width(cell).max(*wide);
        }
    }
    let last = N.saturating_sub(1);
    let needed = |shown: usize| {
        let others = widths.iter().take(shown).map(|wide| wide + GAP.len());
        others.sum::<usize>() + widths.last().copied().unwrap_or_default().min(LAST)
    };
    let fits = |shown: &usize| width.is_none_or(|width| needed(*shown) <= width);
    let shown = (1..=last).rev().find(fits).unwrap_or(1);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(heading).zip(widths).enumerate();
        let cells = cells.filter(|(at, _)| *at < shown || *at == last);
        let cells = cells.map(|(_, ((cell, name), width))| {
            let alignment = if name.starts_with('>') {
                Alignment::Right
            } else {
                Alignment::Left
            };
            pad_str(cell, width, alignment, None)
        });
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    table.iter().map(line).collect()
}

/// Formats a time, given in seconds since 1970, so that it sorts by its text:
/// `2026-11-21 13:02:11`.
pub(crate) fn when(at: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(at.min(MAX_DATE)));
    let date = httpdate::fmt_http_date(time.unwrap_or(UNIX_EPOCH));
    let mut parts = date.split(' ').skip(1);
    let mut part = || parts.next().unwrap_or_default();
    let (day, month, year, time) = (part(), part(), part(), part());
    let month = MONTHS.find(month).unwrap_or_default() / 3 + 1;
    format!("{year}-{month:02}-{day} {time}")
}

/// Formats a time without its seconds.
pub(crate) fn minute(at: u64) -> String {
    when(at).chars().take("2026-11-21 13:02".len()).collect()
}

/// Formats the day of a time.
pub(crate) fn day(at: u64) -> String {
    when(at).chars().take("2026-11-21".len()).collect()
}

/// Formats a cost. A `+` means that the price of some calls is unknown.
pub(crate) fn cost(cost: Cost) -> String {
    match (cost.known.0, cost.unpriced) {
        (0, 1..) => "-".to_owned(),
        (_, 0) => cost.known.to_string(),
        (_, 1..) => format!("{}+", cost.known),
    }
}

/// Formats a size in the units that `sessions prune --max-size` takes, or in KB.
pub(crate) fn size(bytes: Bytes) -> String {
    let kb = bytes.0.div_ceil(1_000);
    match kb {
        0..1_000 => format!("{kb} KB"),
        1_000..1_000_000 => format!("{}.{} MB", kb / 1_000, kb % 1_000 / 100),
        _ => format!("{}.{} GB", kb / 1_000_000, kb % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["one", "1", "x"], ["四", "12345", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(
            columns(["name", ">n", "rest"], rows.into_iter(), None),
            ["name      n  rest", "one       1  x", "四    12345"]
        );
    }

    #[test]
    fn a_narrow_terminal_leaves_out_columns_from_the_right() {
        let title = "Port it to the other language.";
        let row = |width| {
            let rows = [["18f2c-a1", "$0.1000", "17", title].map(str::to_owned)];
            let heading = ["session", ">cost", ">entries", "title"];
            columns(heading, rows.into_iter(), Some(width)).remove(1)
        };
        assert_eq!(row(60), format!("18f2c-a1  $0.1000       17  {title}"));
        assert_eq!(row(48), format!("18f2c-a1  $0.1000       17  {title}"));
        assert_eq!(row(47), format!("18f2c-a1  $0.1000  {title}"));
        assert_eq!(row(38), format!("18f2c-a1  {title}"));
        assert_eq!(row(3), format!("18f2c-a1  {title}"));
    }

    #[test]
    fn a_time_sorts_by_its_text() {
        assert_eq!(when(0), "1970-01-01 00:00:00");
        assert_eq!(when(1_795_266_131), "2026-11-21 13:02:11");
        assert_eq!(when(u64::MAX), "9999-12-31 23:59:59");
        assert_eq!(minute(1_795_266_131), "2026-11-21 13:02");
        assert_eq!(day(1_795_266_131), "2026-11-21");
    }
}
