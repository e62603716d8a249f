//! Prints lists: one row for each thing, as aligned columns or as JSON lines. Times are in UTC.

use std::iter;
use std::time::{Duration, UNIX_EPOCH};

use console::{Alignment, Term, pad_str};
use plimsoll::pricing::Cost;
use plimsoll::tokens::Bytes;
use serde::Serialize;

use crate::error::CliError;
use crate::terminal::{self, fitted, table};

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

/// Aligns the cells of a table below its heading. A `>` before a name aligns its column to the
/// right. If the `width` is too small, the widest columns are narrowed, and their cells are cut.
pub(crate) fn columns<const N: usize>(
    heading: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    width: Option<usize>,
) -> Vec<String> {
    let names = heading.map(|name| name.trim_start_matches('>').to_owned());
    let table: Vec<Vec<String>> = iter::once(names).chain(rows).map(Vec::from).collect();
    let gaps = GAP.len() * N.saturating_sub(1);
    let fitted = width.and_then(|width| table::widths(&table, N, width.checked_sub(gaps)?));
    // Without a terminal, or on a very narrow one, all cells are whole.
    let widths = fitted.or_else(|| table::widths(&table, N, usize::MAX));
    let widths = widths.unwrap_or_default();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(heading).zip(&widths);
        let cells = cells.map(|((cell, name), width)| {
            let alignment = if name.starts_with('>') {
                Alignment::Right
            } else {
                Alignment::Left
            };
            pad_str(cell, *width, alignment, Some("…"))
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
    fn a_narrow_terminal_cuts_the_cells_of_the_widest_columns() {
        let rows = [["18f2c-a1", "17", "Port it to the other language."]];
        let row = |width| {
            let rows = rows.map(|row| row.map(str::to_owned));
            let heading = ["session", ">entries", "title"];
            columns(heading, rows.into_iter(), Some(width)).remove(1)
        };
        let whole = "18f2c-a1       17  Port it to the other language.";
        assert_eq!(row(60), whole);
        assert_eq!(row(49), whole);
        assert_eq!(row(30), "18f2c-a1       17  Port it to…");
        assert_eq!(row(24), "18f2c-…       17  Port …");
        assert_eq!(row(3), whole);
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
