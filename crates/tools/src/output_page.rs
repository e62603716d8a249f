//! [`OutputPage`]: collects lines up to a maximum size, and counts them.
//!
//! Each tool adds its own closing note. A shortened result always has a note.

use plimsoll_context::Bytes;

/// Maximum size of the content in one result. It corresponds to the maximum of 8,000 tokens for a
/// result, since English text and code have at least 3 bytes a token.
pub const PAGE: Bytes = Bytes(24_000);

/// Lines up to a maximum size.
#[derive(Debug)]
pub(crate) struct OutputPage {
    text: String,
    max_lines: usize,
    lines: usize,
    closed: bool,
}

impl OutputPage {
    pub(crate) fn new(max_lines: usize) -> Self {
        Self {
            text: String::new(),
            max_lines,
            lines: 0,
            closed: false,
        }
    }

    /// Adds a line if it fits. After a line that did not fit, no more lines are added.
    pub(crate) fn push(&mut self, line: &str) {
        let fits = self.lines < self.max_lines && ((self.text.len() + line.len()) as u64) < PAGE.0;
        if self.closed || !fits {
            self.closed = true;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Returns the lines, followed by the note in brackets on a line of its own. An empty note is
    /// omitted.
    pub(crate) fn close(mut self, note: &str) -> String {
        if !note.is_empty() {
            self.text.push('[');
            self.text.push_str(note);
            self.text.push(']');
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stops_at_the_first_line_that_does_not_fit() {
        let mut page = OutputPage::new(100);
        for line in ["abcd", "e".repeat(PAGE.0 as usize).as_str(), "x"] {
            page.push(line);
        }
        assert_eq!(page.lines(), 1);
        assert_eq!(page.close("1 of 3"), "abcd\n[1 of 3]");
        let mut page = OutputPage::new(2);
        for line in ["a", "b", "c"] {
            page.push(line);
        }
        assert_eq!(page.close(""), "a\nb\n");
    }
}
