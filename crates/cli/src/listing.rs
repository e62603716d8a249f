//! Prints lists: one row for each thing, as aligned columns or as JSON lines. Times are in UTC.

use std::time::{Duration, UNIX_EPOCH};

use console::{Alignment, Term, measure_text_width, pad_str};
use plimsoll::pricing::Cost;
use plimsoll::tokens::Bytes;
use serde::Serialize;

use crate::error::CliError;
use crate::terminal::{self, fitted};

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
    for line in columns(heading, rows, width_of(&terminal)) {
        out!("{}", fitted(&line, &terminal));
    }
    Ok(())
}

/// Returns the width of a terminal; `None` if the output is not one.
pub(crate) fn width_of(terminal: &Term) -> Option<usize> {
    terminal.is_term().then(|| terminal::columns(terminal))
}

/// Maximum width of a column: one long name must not push the rest of every row off the terminal.
/// Longer cells stand out.
const WIDEST: usize = 48;
/// The same as a share of a terminal.
const WIDEST_SHARE: usize = 2;
/// Width that the last column gets, if it needs that much, before others are shown.
const LAST: usize = 20;

/// Aligns the cells of a table below its heading. A `>` before a name aligns its column to the
/// right. If the `width` is too small, columns with a `?` behind their names are left out, in the
/// order of the numbers behind that.
pub(crate) fn columns<const N: usize>(
    heading: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> Vec<String> {
    let named = heading.map(|name| {
        let (name, rank) = name.split_once('?').unwrap_or((name, ""));
        (name.trim_start_matches('>').to_owned(), rank)
    });
    let ranks = named.each_ref().map(|(_, rank)| *rank);
    let names = named.map(|(name, _)| name);
    let table: Vec<[String; N]> = std::iter::once(names).chain(rows).collect();
    let widest = width.map_or(WIDEST, |width| WIDEST.min(width / WIDEST_SHARE));
    let mut widths = [0; N];
    for row in &table {
        for (wide, cell) in widths.iter_mut().zip(row) {
            *wide = measure_text_width(cell).min(widest).max(*wide);
        }
    }
    let mut left_out: Vec<&str> = ranks.into_iter().filter(|rank| !rank.is_empty()).collect();
    left_out.sort_unstable();
    let needed = |left_out: &[&str]| {
        let shown = widths.iter().zip(ranks);
        let shown: Vec<usize> = shown
            .filter(|(_, rank)| !left_out.contains(rank))
            .map(|(wide, _)| wide + GAP.len())
            .collect();
        let (last, others) = shown.split_last().unwrap_or((&0, &[]));
        others.iter().sum::<usize>() + (*last).min(LAST)
    };
    let fits = |count: &usize| {
        let left_out = left_out.get(..*count).unwrap_or_default();
        width.is_none_or(|width| needed(left_out) <= width)
    };
    let count = (0..left_out.len()).find(fits);
    left_out.truncate(count.unwrap_or(left_out.len()));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(heading).zip(widths).zip(ranks);
        let cells = cells.filter(|(_, rank)| !left_out.contains(rank));
        let cells = cells.map(|(((cell, name), width), _)| {
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
        let long = "a-name-of-more-than-24-letters";
        let rows = [["one", "1"], [long, "2"]].map(|row| row.map(str::to_owned));
        let all = columns(["name", "n"], rows.clone().into_iter(), None);
        assert_eq!(all[1], format!("{:30}  1", "one"));
        let narrow = columns(["name", "n"], rows.into_iter(), Some(48));
        assert_eq!(narrow[1], format!("{:24}  1", "one"));
        assert_eq!(narrow[2], format!("{long}  2"));
    }

    #[test]
    fn a_narrow_terminal_leaves_out_the_least_important_columns() {
        let rows = [[
            "18f2c-a1",
            "17",
            "$0.1000",
            "Port it to the other language.",
        ]];
        let row = |width| {
            let rows = rows.map(|row| row.map(str::to_owned));
            let heading = ["session", ">entries?1", ">cost?2", "title"];
            columns(heading, rows.into_iter(), Some(width)).remove(1)
        };
        let title = "Port it to the other language.";
        assert_eq!(row(50), format!("18f2c-a1       17  $0.1000  {title}"));
        assert_eq!(row(48), format!("18f2c-a1       17  $0.1000  {title}"));
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
