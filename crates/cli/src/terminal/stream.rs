//! [`MarkdownStream`]: renders Markdown that arrives in pieces as rows.
//!
//! The last block, or the last item of a list, is rendered again whenever it grows. When the next
//! one begins, its rows are final. In a code block, each line is final at once. The size of a block
//! is bounded.

use crate::terminal::markdown::{PageStyle, Rendered, render};

/// Maximum size of a block that is rendered again, in bytes. A larger block is ended early.
const MAX_BLOCK: usize = 16 * 1024;

/// A text that is still arriving.
#[derive(Default)]
pub(crate) struct MarkdownStream {
    /// The source of the open block.
    block: String,
    /// Whether an empty row precedes the block.
    gap: bool,
    /// The number of rows of the block that are final already.
    written: usize,
    /// The opening fence of the code block that is open.
    fence: Option<String>,
}

impl MarkdownStream {
    /// Adds a piece of the text. Returns the rows that became final.
    pub(crate) fn push(&mut self, text: &str, page: PageStyle) -> Vec<String> {
        self.block.push_str(text);
        let mut done = self.end_blocks(page);
        if self.block.len() > MAX_BLOCK {
            done.extend(self.open(page));
            self.cut();
        }
        done
    }

    /// Returns the rows of the open block that are not final yet.
    pub(crate) fn open(&self, page: PageStyle) -> Vec<String> {
        let mut rows = self.render(&self.block, page).rows;
        rows.drain(..self.written.min(rows.len()));
        rows
    }

    /// Ends the text. Returns the rows of the open block.
    pub(crate) fn end(&mut self, page: PageStyle) -> Vec<String> {
        let done = self.open(page);
        *self = Self::default();
        done
    }

    /// Leaves the rows of the open block in place. Later text is rendered without them.
    pub(crate) fn cut(&mut self) {
        self.block = self.fence.clone().unwrap_or_default();
        self.gap = false;
        self.written = 0;
    }

    /// Removes the complete blocks. Returns their rows.
    fn end_blocks(&mut self, page: PageStyle) -> Vec<String> {
        // An unfinished line may still become part of the block before it.
        let complete = self.block.rfind('\n').map_or(0, |at| at + 1);
        let Some(text) = self.block.get(..complete).filter(|text| !text.is_empty()) else {
            return Vec::new();
        };
        let Rendered { mut rows, last } = self.render(text, page);
        self.fence = last.fence;
        let end = if self.fence.is_some() {
            rows.len()
        } else {
            last.row
        };
        let written = self.written;
        if last.source > 0 {
            self.block.drain(..last.source);
            (self.gap, self.written) = (last.gap, 0);
        }
        if self.fence.is_some() {
            self.written = if last.source > 0 { end - last.row } else { end };
        }
        rows.truncate(end);
        rows.drain(..written.min(end));
        rows
    }

    fn render(&self, text: &str, page: PageStyle) -> Rendered {
        let gap = self.gap && !text.trim().is_empty();
        render(text, gap, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style::Colours;

    const PAGE: PageStyle = PageStyle {
        width: 40,
        colours: Colours::None,
    };

    const TEXT: &str = "# Title\nA *short* text\nof two lines.\n\n- one\n- two\n\n  with more\n  ```sh\n  \
        ls\n\n  cd\n  ```\n- three\n\n1. first\n2. second\n\n```rust\nfn x() {\n\n}\n```\nBehind it.\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n\n---\nThe end, at last; 四十二 is a long line that is broken.";

    const ROWS: &str = "# Title\n\nA *short* text\nof two lines.\n\n- one\n- two\n\n  with more\n\n    ls\n\n    cd\n\n\
        - three\n\n1. first\n2. second\n\n  fn x() {\n\n  }\n\nBehind it.\n\n\
        a │ b\n──┼──\n1 │ 2\n\n│ quoted\n\n────────────────────────────────────────\n\n\
        The end, at last; 四十二 is a long line\nthat is broken.";

    fn streamed(pieces: impl Iterator<Item = String>) -> String {
        let mut stream = MarkdownStream::default();
        let mut rows = Vec::new();
        for piece in pieces {
            rows.extend(stream.push(&piece, PAGE));
        }
        rows.extend(stream.end(PAGE));
        rows.join("\n")
    }

    #[test]
    fn however_a_text_is_cut_it_becomes_the_same_rows() {
        assert_eq!(streamed(std::iter::once(TEXT.to_owned())), ROWS);
        assert_eq!(streamed(TEXT.chars().map(String::from)), ROWS);
        assert_eq!(streamed(TEXT.split_inclusive(' ').map(str::to_owned)), ROWS);
    }

    #[test]
    fn rows_are_final_as_soon_as_nothing_can_change_them() {
        let mut stream = MarkdownStream::default();
        assert!(stream.push("Some **bo", PAGE).is_empty());
        assert_eq!(stream.open(PAGE), ["Some **bo"]);
        assert!(stream.push("ld** text\n\n", PAGE).is_empty());
        assert_eq!(stream.open(PAGE), ["Some **bold** text"]);
        assert_eq!(stream.push("```\nx = 1", PAGE), ["Some **bold** text", ""]);
        assert_eq!(stream.open(PAGE), ["  x = 1"]);
        assert_eq!(stream.push("\ny", PAGE), ["  x = 1"]);
        assert_eq!(stream.end(PAGE), ["  y"]);
    }

    #[test]
    fn a_fence_that_ends_a_text_is_no_code() {
        let mut stream = MarkdownStream::default();
        assert_eq!(stream.push("```\nx = 1\n```", PAGE), ["  x = 1"]);
        assert!(stream.open(PAGE).is_empty());
        assert!(stream.end(PAGE).is_empty());
    }

    #[test]
    fn a_line_that_was_cut_goes_on_in_the_next_row() {
        let mut stream = MarkdownStream::default();
        stream.push("It is for", PAGE);
        stream.cut();
        stream.push("ty-two.", PAGE);
        assert_eq!(stream.end(PAGE), ["ty-two."]);
    }

    #[test]
    fn no_block_grows_without_bound() {
        let mut stream = MarkdownStream::default();
        let mut rows = 0;
        for _ in 0..10_000 {
            rows += stream.push("word ", PAGE).len();
            assert!(stream.block.len() <= MAX_BLOCK);
        }
        rows += stream.end(PAGE).len();
        assert!(rows >= 10_000 * 5 / 40, "{rows}");
    }
}
