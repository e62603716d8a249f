//! [`Table`]: a table that fits the width of the terminal. Cells that are too wide are broken into
//! rows.

use console::{measure_text_width, pad_str};
use pulldown_cmark::Alignment;

use crate::terminal::style::{Colours, DIM};
use crate::terminal::text::wrap;

/// Minimum width of a column. If the columns do not fit, each row is shown as a list.
const LEAST: usize = 6;
/// Separates two cells; [`CROSSING`] does the same below the head.
const BETWEEN: &str = " │ ";
const CROSSING: &str = "─┼─";

/// A table. Its first row is the head.
pub(crate) struct Table {
    alignments: Vec<console::Alignment>,
    rows: Vec<Vec<String>>,
    row: Vec<String>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        let alignments = alignments.into_iter().map(|alignment| match alignment {
            Alignment::None | Alignment::Left => console::Alignment::Left,
            Alignment::Center => console::Alignment::Center,
            Alignment::Right => console::Alignment::Right,
        });
        Self {
            alignments: alignments.collect(),
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(crate) fn cell(&mut self, text: String) {
        self.row.push(text);
    }

    pub(crate) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Renders the table as rows of a terminal.
    pub(crate) fn rows(&self, width: usize, colours: Colours) -> Vec<String> {
        let Some(widths) = self.widths(width) else {
            return self.list(width);
        };
        let between = colours.paint(DIM, BETWEEN);
        let mut rows: Vec<String> = self
            .rows
            .iter()
            .flat_map(|row| self.lines(row, &widths, &between))
            .collect();
        let head = self
            .rows
            .first()
            .map(|head| self.lines(head, &widths, &between).len());
        let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        rows.insert(
            head.unwrap_or_default(),
            colours.paint(DIM, &line.join(CROSSING)),
        );
        rows
    }

    /// Returns the width of each column: that of its widest cell. While they do not fit, the widest
    /// column is narrowed. Returns `None` if they would become too narrow.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (cell, widest) in row.iter().zip(&mut widths) {
                *widest = measure_text_width(cell).min(width).max(*widest);
            }
        }
        let between = measure_text_width(BETWEEN) * count.saturating_sub(1);
        let available = width.checked_sub(between)?;
        while widths.iter().sum::<usize>() > available {
            let widest = widths.iter_mut().max()?;
            *widest = widest.checked_sub(1).filter(|width| *width >= LEAST)?;
        }
        Some(widths)
    }

    /// Renders one row of the table.
    fn lines(&self, row: &[String], widths: &[usize], between: &str) -> Vec<String> {
        let cells = widths.iter().enumerate().map(|(at, width)| {
            let cell = row.get(at).map_or("", String::as_str);
            wrap(cell, *width, "", "")
        });
        let cells: Vec<Vec<String>> = cells.collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        let line = |line: usize| {
            let texts = cells.iter().zip(widths).zip(&self.alignments);
            let texts = texts.map(|((cell, width), alignment)| {
                let text = cell.get(line).map_or("", String::as_str);
                pad_str(text, *width, *alignment, None)
            });
            let texts: Vec<_> = texts.collect();
            texts.join(between).trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Renders each row as a list of its cells, with their column names.
    fn list(&self, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        let head = self.rows.first().map_or(&[][..], Vec::as_slice);
        for row in self.rows.iter().skip(1) {
            if !rows.is_empty() {
                rows.push(String::new());
            }
            for (name, cell) in head.iter().zip(row) {
                let line = format!("{name}: {cell}");
                rows.extend(wrap(&line, width, "", "  "));
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::markdown;
    use crate::terminal::style::Colours;

    fn table(text: &str, width: usize) -> String {
        let rows = markdown::table(text, width, Colours::None);
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
        assert_eq!(
            table(text, 12),
            "Name: 四十二\nTokens: 7\nNote: short\n\nName: b\nTokens: 1200\nNote: one\n  two three\n  four"
        );
        // A short row, and a row that is still being written.
        assert_eq!(table("|a|b|\n|-|-|\n|c", 20), "a │ b\n──┼──\nc │");
    }
}
