//! [`Table`]: a table that fits the width of the terminal. Cells that are too wide are broken into
//! rows.

use console::measure_text_width;
use pulldown_cmark::Alignment;

use crate::terminal::style::{Colours, Style};
use crate::terminal::text::{Break, wrap};

/// Minimum width of a column. If the columns do not fit, each row is shown as a list.
const LEAST: usize = 6;
/// Separates two cells; [`CROSSING`] does the same below the head.
const BETWEEN: &str = " │ ";
const CROSSING: &str = "─┼─";

/// A table. Its first row is the head.
pub(crate) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
    row: Vec<String>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
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
        let between = colours.paint(Style::DIM, BETWEEN);
        let mut rows = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            rows.extend(self.lines(row, &widths, &between));
            if at == 0 {
                let line: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                rows.push(colours.paint(Style::DIM, &line.join(CROSSING)));
            }
        }
        rows
    }

    /// Returns the width of each column: that of its widest cell. If they do not fit, the widest
    /// columns are narrowed. Returns `None` if they would become too narrow.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (cell, wide) in row.iter().zip(&mut widths) {
                *wide = (*wide).max(measure_text_width(cell));
            }
        }
        let between = measure_text_width(BETWEEN) * count.saturating_sub(1);
        let room = width.checked_sub(between)?;
        if widths.iter().sum::<usize>() > room {
            let cap = cap(&widths, room);
            if cap < LEAST {
                return None;
            }
            for wide in &mut widths {
                *wide = (*wide).min(cap);
            }
        }
        Some(widths)
    }

    /// Renders one row of the table.
    fn lines(&self, row: &[String], widths: &[usize], between: &str) -> Vec<String> {
        let cells: Vec<Vec<String>> = widths
            .iter()
            .enumerate()
            .map(|(at, width)| {
                let cell = row.get(at).map_or("", String::as_str);
                wrap(cell, *width, "", "", Break::Completer)
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        (0..height)
            .map(|line| {
                let texts = cells.iter().zip(widths).zip(&self.alignments);
                let texts = texts.map(|((cell, width), alignment)| {
                    let text = cell.get(line).map_or("", String::as_str);
                    aligned(text, *width, *alignment)
                });
                let texts: Vec<String> = texts.collect();
                texts.join(between).trim_end().to_owned()
            })
            .collect()
    }

    /// Renders each row as a list of its cells, with their column names.
    fn list(&self, width: usize) -> Vec<String> {
        let Some((head, rest)) = self.rows.split_first() else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for row in rest {
            if !rows.is_empty() {
                rows.push(String::new());
            }
            for (name, cell) in head.iter().zip(row) {
                rows.extend(wrap(
                    &format!("{name}: {cell}"),
                    width,
                    "",
                    "  ",
                    Break::Completer,
                ));
            }
        }
        rows
    }
}

/// Returns the maximum width of a column so that all columns fit into `room`.
fn cap(widths: &[usize], room: usize) -> usize {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable();
    let (mut left, mut count) = (room, sorted.len());
    for wide in sorted {
        if wide * count > left {
            break;
        }
        left -= wide;
        count -= 1;
    }
    left / count.max(1)
}

fn aligned(text: &str, width: usize, alignment: Alignment) -> String {
    let free = width.saturating_sub(measure_text_width(text));
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => free / 2,
        Alignment::Right => free,
    };
    format!("{}{text}{}", " ".repeat(before), " ".repeat(free - before))
}

#[cfg(test)]
mod tests {
    use crate::terminal::markdown::{PageStyle, rows};
    use crate::terminal::style::Colours;

    fn table(text: &str, width: usize) -> String {
        let page = PageStyle {
            width,
            colours: Colours::None,
        };
        rows(text, page).join("\n")
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
