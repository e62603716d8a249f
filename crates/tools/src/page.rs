//! [`Page`]: lines gathered into one result within a bound, and how many did not fit.
//! What the closing note says is the tool's; a bound that has cut something is never silent.

use plimsoll_context::Bytes;

/// How much of a file, a folder or a search one result shows: the 8,000 tokens that a result
/// may weigh at most, where English and code have 3 bytes a token or more.
pub const PAGE: Bytes = Bytes(24_000);
/// No page is set smaller: a line of a search must fit.
pub const PAGE_MIN: Bytes = Bytes(512);

/// Returns a number with its noun: 1 file, 2 files.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Lines within a bound.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    max_bytes: usize,
    max_lines: usize,
    lines: usize,
    closed: bool,
}

impl Page {
    pub(crate) fn new(max_bytes: usize, max_lines: usize) -> Self {
        Self {
            text: String::new(),
            max_bytes,
            max_lines,
            lines: 0,
            closed: false,
        }
    }

    /// Adds a line if it fits, and none after one that did not.
    pub(crate) fn push(&mut self, line: &str) {
        let fits = self.lines < self.max_lines && self.text.len() + line.len() < self.max_bytes;
        if self.closed || !fits {
            self.closed = true;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }

    /// How many lines it has.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// The lines and a closing note, in brackets on a line of its own; an empty note is none.
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
        let mut page = Page::new(10, 100);
        for line in ["abcd", "efghi", "x"] {
            page.push(line);
        }
        assert_eq!(page.lines(), 1);
        assert_eq!(page.close("1 of 3"), "abcd\n[1 of 3]");
        let mut page = Page::new(100, 2);
        for line in ["a", "b", "c"] {
            page.push(line);
        }
        assert_eq!(page.close(""), "a\nb\n");
    }
}
