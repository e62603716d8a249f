//! [`MarkdownStream`]: renders Markdown that arrives in pieces as rows, line by line as in its source.
//!
//! A complete line is final. The line that is still arriving is rendered again whenever it grows, and
//! so is a table until its end. The size of both is bounded.

use std::ops::ControlFlow;

use crate::terminal::markdown;
use crate::terminal::style::{CYAN, diff_line, paint};

/// Indentation of code.
const CODE: &str = "  ";
/// Maximum size of a line or a table, in bytes. A larger one is ended early.
const MAX_OPEN: usize = 16 * 1024;

/// A text that is still arriving.
#[derive(Clone, Default)]
pub(crate) struct MarkdownStream {
    /// The line that has no end yet.
    line: String,
    /// The lines of the table that has no end yet.
    table: String,
    code: Option<CodeBlock>,
    /// Whether there is a row already.
    has_rows: bool,
    /// Whether empty lines precede the next row. They become one empty row.
    gap: bool,
}

/// A code block that has no end yet.
#[derive(Clone)]
struct CodeBlock {
    /// The marks that open it. As many close it.
    fence: String,
    indent: usize,
    is_diff: bool,
}

impl MarkdownStream {
    /// Adds a piece of the text. Returns the rows that became final.
    pub(crate) fn push(&mut self, text: &str, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') || self.line.len() > MAX_OPEN {
                let line = std::mem::take(&mut self.line);
                rows.extend(self.end_line(line.trim_end_matches('\n'), width));
            }
        }
        rows
    }

    /// Returns the rows that are not final yet.
    pub(crate) fn open(&self, width: usize) -> Vec<String> {
        self.clone().end(width)
    }

    /// Ends the text. Returns its last rows.
    pub(crate) fn end(&mut self, width: usize) -> Vec<String> {
        let line = std::mem::take(&mut self.line);
        let mut rows = if line.is_empty() {
            Vec::new()
        } else {
            self.end_line(&line, width)
        };
        rows.extend(self.end_table(width));
        *self = Self::default();
        rows
    }

    /// Leaves the rows that are not final in place. Later text is rendered without them.
    pub(crate) fn cut(&mut self) {
        self.line.clear();
        self.table.clear();
        (self.has_rows, self.gap) = (false, false);
    }

    fn end_line(&mut self, line: &str, width: usize) -> Vec<String> {
        if let ControlFlow::Break(rows) = self.code_line(line, width) {
            return rows;
        }
        if line.trim_start().starts_with('|') && self.table.len() <= MAX_OPEN {
            self.table.push_str(line.trim_start());
            self.table.push('\n');
            return Vec::new();
        }
        let mut rows = self.end_table(width);
        if line.trim().is_empty() {
            self.gap = true;
        } else {
            rows.extend(self.separated(markdown::line(line, width)));
        }
        rows
    }

    /// Renders a line of code, or the fence around it. Continues if the line is neither.
    fn code_line(&mut self, line: &str, width: usize) -> ControlFlow<Vec<String>> {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let mark = text.chars().next().unwrap_or_default();
        let info = text.trim_start_matches(mark);
        let fence = text.strip_suffix(info).unwrap_or_default();
        let is_fence = matches!(mark, '`' | '~') && fence.len() >= 3;
        match &mut self.code {
            Some(code) if info.trim().is_empty() && fence.starts_with(&code.fence) => {
                (self.code, self.gap) = (None, true);
                ControlFlow::Break(Vec::new())
            }
            Some(code) => {
                // The terminal breaks a line that is too long, so that it is copied whole.
                let line = line.get(indent.min(code.indent)..).unwrap_or(line);
                let line = match code.is_diff {
                    true => diff_line(line),
                    false => paint(CYAN, line),
                };
                let margin = " ".repeat(code.indent);
                let row = format!("{margin}{CODE}{line}").trim_end().to_owned();
                ControlFlow::Break(self.separated(vec![row]))
            }
            None if is_fence && !info.contains('`') => {
                let rows = self.end_table(width);
                self.gap = true;
                self.code = Some(CodeBlock {
                    fence: fence.to_owned(),
                    indent,
                    is_diff: matches!(info.trim(), "diff" | "patch"),
                });
                ControlFlow::Break(rows)
            }
            None => ControlFlow::Continue(()),
        }
    }

    fn end_table(&mut self, width: usize) -> Vec<String> {
        let lines = std::mem::take(&mut self.table);
        if lines.is_empty() {
            return Vec::new();
        }
        let rows = markdown::table(&lines, width);
        let rows = rows.unwrap_or_else(|| {
            let lines = lines.lines();
            lines.flat_map(|line| markdown::line(line, width)).collect()
        });
        self.separated(rows)
    }

    /// Returns the rows after an empty one, if empty lines precede them.
    fn separated(&mut self, mut rows: Vec<String>) -> Vec<String> {
        if std::mem::take(&mut self.gap) && self.has_rows {
            rows.insert(0, String::new());
        }
        self.has_rows = true;
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 40;

    const TEXT: &str = "# Title\nA *short* text\nof two lines.\n\n- one\n- two\n\n  with more\n  ```sh\n  \
        ls\n\n  cd\n  ```\n- three\n\n\n1. first\n2. second\n\n```rust\nfn x() {\n\n}\n```\nBehind it.\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n---\nThe end, at last; 四十二 is a long line that is broken.";

    const ROWS: &str = "# Title\nA *short* text\nof two lines.\n\n- one\n- two\n\n  with more\n\n    ls\n\n    cd\n\n\
        - three\n\n1. first\n2. second\n\n  fn x() {\n\n  }\n\nBehind it.\n\n\
        a │ b\n──┼──\n1 │ 2\n\n│ quoted\n\n────────────────────────────────────────\n\
        The end, at last; 四十二 is a long line\nthat is broken.";

    fn streamed<'a>(pieces: impl IntoIterator<Item = &'a str>, width: usize) -> String {
        let mut stream = MarkdownStream::default();
        let mut rows = Vec::new();
        for piece in pieces {
            rows.extend(stream.push(piece, width));
        }
        rows.extend(stream.end(width));
        rows.join("\n")
    }

    #[test]
    fn however_a_text_is_cut_it_becomes_the_same_rows() {
        assert_eq!(streamed([TEXT], WIDTH), ROWS);
        assert_eq!(streamed(TEXT.split_inclusive(|_| true), WIDTH), ROWS);
        assert_eq!(streamed(TEXT.split_inclusive(' '), WIDTH), ROWS);
    }

    #[test]
    fn lines_are_laid_out_in_rows() {
        for (text, width, expected) in [
            ("one two three four", 9, "one two\nthree\nfour"),
            ("See[^1].\n\n[^1]: note", 40, "See[^1].\n\n[^1]: note"),
            (
                "- one two three\n- four\n  - five six seven\n",
                11,
                "- one two\n  three\n- four\n  - five\n    six\n    seven",
            ),
            ("9. nine\n10. ten", 40, "9. nine\n10. ten"),
            ("- [x] done\n- [ ] open\n-", 40, "- [x] done\n- [ ] open\n-"),
            (
                "> quoted text\n>\n> more",
                10,
                "│ quoted\n│ text\n│\n│ more",
            ),
            ("- a\n\n  ```\n  code\n  ```", 40, "- a\n\n    code"),
            ("````\n```\na\n```\n````\nb", 40, "  ```\n  a\n  ```\n\nb"),
            ("> - *a*", 40, "│ - *a*"),
            ("2024 is past. 2. is not", 40, "2024 is past. 2. is not"),
            ("| no table\nbut text", 40, "| no table\nbut text"),
            ("---", 5, "─────"),
        ] {
            assert_eq!(streamed([text], width), expected, "{text}");
        }
        console::set_colors_enabled(true);
        let coloured = streamed(["## T\n- a"], WIDTH);
        assert_eq!(coloured, "\u{1b}[1mT\u{1b}[0m\n• a");
    }

    #[test]
    fn a_line_is_final_at_its_end_and_a_table_at_its_own() {
        let mut stream = MarkdownStream::default();
        assert!(stream.push("Some **bo", WIDTH).is_empty());
        assert_eq!(stream.open(WIDTH), ["Some **bo"]);
        assert_eq!(stream.push("ld** text\n\n", WIDTH), ["Some **bold** text"]);
        assert!(stream.push("```\nx = 1", WIDTH).is_empty());
        assert_eq!(stream.open(WIDTH), ["", "  x = 1"]);
        assert_eq!(stream.push("\ny\n```\n", WIDTH), ["", "  x = 1", "  y"]);
        assert!(stream.push("|a|b|\n|-|-|\n|c", WIDTH).is_empty());
        assert_eq!(stream.open(WIDTH), ["", "a │ b", "──┼──", "c │"]);
        assert_eq!(
            stream.push("|d|\nx\n", WIDTH),
            ["", "a │ b", "──┼──", "c │ d", "x"]
        );
    }

    #[test]
    fn a_line_that_was_cut_goes_on_in_the_next_row() {
        let mut stream = MarkdownStream::default();
        stream.push("It is for", WIDTH);
        stream.cut();
        stream.push("ty-two.", WIDTH);
        assert_eq!(stream.end(WIDTH), ["ty-two."]);
    }

    #[test]
    fn neither_a_line_nor_a_table_grows_without_bound() {
        for piece in ["word ", "| word |\n"] {
            let mut stream = MarkdownStream::default();
            let mut rows = 0;
            for _ in 0..10_000 {
                rows += stream.push(piece, WIDTH).len();
                assert!(stream.line.len() + stream.table.len() <= MAX_OPEN + 100);
            }
            rows += stream.end(WIDTH).len();
            assert!(rows >= 10_000 * 5 / 40, "{rows}");
        }
    }
}
