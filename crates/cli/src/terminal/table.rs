//! Lays out a table within the width of the terminal. Cells that are too wide are broken into rows.

use console::{Alignment, measure_text_width, pad_str};

use crate::terminal::style::{DIM, paint};
use crate::terminal::text::wrap;

/// Minimum width of a column.
const LEAST: usize = 6;
/// Separates two cells; [`CROSSING`] does the same below the head.
const BETWEEN: &str = " │ ";
const CROSSING: &str = "─┼─";

/// Renders a table, whose first row is the head, as rows of a terminal. Returns `None` if a column would
/// become too narrow.
pub(super) fn rows(
    table: &[Vec<String>],
    columns: &[Alignment],
    width: usize,
) -> Option<Vec<String>> {
    let between = measure_text_width(BETWEEN) * columns.len().saturating_sub(1);
    let widths = widths(table, columns.len(), width.checked_sub(between)?)?;
    let between = paint(DIM, BETWEEN);
    let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let line = paint(DIM, &line.join(CROSSING));
    let mut rows = table.iter().map(|row| {
        let cells = widths.iter().enumerate().map(|(at, width)| {
            let cell = row.get(at).map_or("", String::as_str);
            wrap(cell, *width, "", "")
        });
        let cells: Vec<Vec<String>> = cells.collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let line = |line: usize| {
            let texts = cells.iter().zip(&widths).zip(columns);
            let texts = texts.map(|((cell, width), alignment)| {
                let text = cell.get(line).map_or("", String::as_str);
                pad_str(text, *width, *alignment, None)
            });
            let texts: Vec<_> = texts.collect();
            texts.join(&between).trim_end().to_owned()
        };
        (0..height).map(line).collect::<Vec<_>>()
    });
    let head = rows.next()?;
    Some(
        head.into_iter()
            .chain([line])
            .chain(rows.flatten())
            .collect(),
    )
}

/// Returns the width of each column: that of its widest cell. While they do not fit, the widest column
/// is narrowed. Returns `None` if they would become too narrow.
fn widths(table: &[Vec<String>], columns: usize, width: usize) -> Option<Vec<usize>> {
    let mut widths = vec![1; columns];
    for row in table {
        for (cell, widest) in row.iter().zip(&mut widths) {
            *widest = measure_text_width(cell).min(width).max(*widest);
        }
    }
    while widths.iter().sum::<usize>() > width {
        let widest = widths.iter_mut().max()?;
        *widest = widest.checked_sub(1).filter(|width| *width >= LEAST)?;
    }
    Some(widths)
}

#[cfg(test)]
mod tests {
    use crate::terminal::markdown;

    fn table(text: &str, width: usize) -> String {
        let rows = markdown::table(text, width);
        rows.unwrap().join("\n")
    }

    #[test]
    fn a_table_fits_its_terminal() {
        let text = "| Name | Tokens | Note |\n|:--|--:|---|\n| 四十二 | 7 | short |\n| b | 1200 | one two three four |";
        assert_eq!(
            table(text, 60),
            "Name   │ Tokens │ Note\n\
             ───────┼────────┼───────────────────\n\
             四十二 │      7 │ short\n\
             b      │   1200 │ one two three four"
        );
        assert_eq!(
            table(text, 28),
            "Name   │ Tokens │ Note\n\
             ───────┼────────┼───────────\n\
             四十二 │      7 │ short\n\
             b      │   1200 │ one two\n       │        │ three four"
        );
        assert_eq!(markdown::table(text, 12), None);
        // A short row, and a row that is still being written.
        assert_eq!(table("|a|b|\n|-|-|\n|c", 20), "a │ b\n──┼──\nc │");
    }
}
