//! [`MarkdownStream`]: renders Markdown that arrives in pieces as rows.
//!
//! A block is rendered again whenever it grows. When the next block begins, its rows are final. In
//! a code block, each line is final at once. The size of a block is bounded.

use crate::terminal::highlight::Highlighter;
use crate::terminal::markdown::{PageStyle, code_rows, rows};

/// Maximum size of a block that is rendered again, in bytes. A larger block is ended early.
const MAX_BLOCK: usize = 16 * 1024;
/// Minimum indentation of the text of a list item, in columns.
const INDENT: usize = 2;

/// A text that is still arriving.
#[derive(Default)]
pub(crate) struct MarkdownStream {
    /// The open block, without the lines of code that are already rendered.
    block: String,
    /// The offset of the unfinished line in the block.
    line: usize,
    /// The open code block, if it is not within another block.
    code: Option<(Fence, Highlighter)>,
    /// The open code block within a list item or a quote.
    inner: Option<Fence>,
    /// Whether the block contains an empty line.
    is_loose: bool,
    /// Whether an empty line precedes the block.
    gap: bool,
    /// Whether anything was rendered so far.
    begun: bool,
}

/// The opening fence of a code block. A fence of the same mark closes it if it is at least as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl MarkdownStream {
    /// Adds a piece of the text. Returns the rows that became final.
    pub(crate) fn push(&mut self, text: &str, page: PageStyle) -> Vec<String> {
        let mut done = Vec::new();
        self.block.push_str(text);
        while let Some(end) = self.unfinished().find('\n') {
            let end = self.line + end + 1;
            self.end_line(end, page, &mut done);
        }
        if self.block.len() > MAX_BLOCK {
            done.extend(self.end_block(page));
        }
        done
    }

    /// Returns the rows of the open block.
    pub(crate) fn open(&self, page: PageStyle) -> Vec<String> {
        if self.block.trim().is_empty() {
            return Vec::new();
        }
        let mut open = self.before();
        match &self.code {
            // The last line of a text may lack its line break.
            Some((fence, _)) if fence.is_closed_by(self.block.trim_end()) => return Vec::new(),
            Some((_, highlighter)) => {
                let line = highlighter.clone().line(&self.block);
                open.extend(code_rows(&line, page, "", ""));
            }
            None => open.extend(rows(&self.block, page)),
        }
        open
    }

    /// Ends the text. Returns the rows of the open block.
    pub(crate) fn end(&mut self, page: PageStyle) -> Vec<String> {
        let done = self.end_block(page);
        *self = Self::default();
        done
    }

    /// Leaves the rows of the open block in place. Later text is rendered without them.
    pub(crate) fn cut(&mut self) {
        self.begun |= !self.block.is_empty();
        self.clear();
        self.gap = false;
    }

    fn unfinished(&self) -> &str {
        self.block.get(self.line..).unwrap_or_default()
    }

    fn end_line(&mut self, end: usize, page: PageStyle, done: &mut Vec<String>) {
        let line = self.block.get(self.line..end).unwrap_or_default();
        let line = line.trim_end().to_owned();
        if let Some((fence, highlighter)) = &mut self.code {
            if fence.is_closed_by(&line) {
                self.code = None;
                self.gap = true;
            } else {
                let line = highlighter.line(&line);
                done.extend(code_rows(&line, page, "", ""));
            }
            self.block.drain(..end);
            return;
        }
        if let Some(fence) = self.inner {
            if fence.is_closed_by(&line) {
                self.inner = None;
            }
            self.line = end;
            return;
        }
        let is_first = self.block.get(..self.line).is_none_or(str::is_empty);
        if line.is_empty() {
            match is_first {
                true => {
                    self.gap = self.begun;
                    self.block.drain(..end);
                }
                false if is_container(&self.block) => {
                    self.is_loose = true;
                    self.line = end;
                }
                false => {
                    let rest = self.block.split_off(end);
                    done.extend(self.end_block(page));
                    self.gap = true;
                    self.block = rest;
                }
            }
            return;
        }
        if !is_first && self.begins_block(&line) {
            let rest = self.block.split_off(self.line);
            let is_loose = self.is_loose;
            done.extend(self.end_block(page));
            self.gap = is_loose;
            self.block = rest;
            // The next iteration handles the line as the first one of its block.
            return;
        }
        if let Some((fence, language)) = Fence::of(&line) {
            if indent(&line) < INDENT {
                done.append(&mut self.before());
                self.begun = true;
                self.gap = false;
                let highlighter = Highlighter::new(language, page.colours);
                self.code = Some((fence, highlighter));
                self.block.drain(..end);
                return;
            }
            self.inner = Some(fence);
        }
        self.line = end;
        if is_first && (is_heading(&line) || is_rule(&line)) {
            let rest = self.block.split_off(end);
            done.extend(self.end_block(page));
            self.block = rest;
        }
    }

    /// Checks whether a line cannot belong to the open block.
    fn begins_block(&self, line: &str) -> bool {
        if indent(line) >= INDENT {
            return false;
        }
        let begins = Fence::of(line).is_some() || is_heading(line) || is_item(line);
        let is_quote = self.block.trim_start().starts_with('>');
        begins || (self.is_loose && !(is_quote && line.starts_with('>')))
    }

    /// Returns the empty row before the open block, if there is one.
    fn before(&self) -> Vec<String> {
        if self.gap && self.begun {
            vec![String::new()]
        } else {
            Vec::new()
        }
    }

    fn end_block(&mut self, page: PageStyle) -> Vec<String> {
        let done = self.open(page);
        self.begun |= !done.is_empty();
        self.clear();
        if !done.is_empty() {
            self.gap = false;
        }
        done
    }

    fn clear(&mut self) {
        self.block.clear();
        self.line = 0;
        self.inner = None;
        self.is_loose = false;
    }
}

impl Fence {
    /// Parses a line as a fence. Returns it with the language behind it.
    fn of(line: &str) -> Option<(Self, &str)> {
        let line = line.trim_start();
        let mark = line
            .chars()
            .next()
            .filter(|mark| matches!(mark, '`' | '~'))?;
        let language = line.trim_start_matches(mark);
        let length = line.len() - language.len();
        // A line may also begin with inline code.
        let is_code = mark == '`' && language.contains('`');
        (length >= 3 && !is_code).then(|| (Self { mark, length }, language.trim()))
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::of(line).is_some_and(|(other, language)| {
            other.mark == self.mark && other.length >= self.length && language.is_empty()
        })
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level) && (text.is_empty() || text.starts_with(' '))
}

/// Checks for a line of three or more `-`, `*` or `_`.
fn is_rule(line: &str) -> bool {
    let marks: String = line.chars().filter(|c| *c != ' ').collect();
    let all = |mark: char| marks.chars().all(|c| c == mark);
    marks.len() >= 3 && (all('-') || all('*') || all('_'))
}

/// Checks whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let text = match line.len() - digits.len() {
        0 => line.strip_prefix(['-', '*', '+']),
        1..=9 => digits.strip_prefix(['.', ')']),
        _ => None,
    };
    text.is_some_and(|text| text.is_empty() || text.starts_with(' ')) && !is_rule(line)
}

/// Checks whether a block may continue after an empty line.
fn is_container(block: &str) -> bool {
    let block = block.trim_start_matches(' ');
    block.starts_with('>') || is_item(block.lines().next().unwrap_or_default())
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

    const ROWS: &str = "# Title\nA *short* text\nof two lines.\n\n- one\n- two\n\n  with more\n\n    ls\n\n    cd\n\n\
        - three\n\n1. first\n2. second\n\n  fn x() {\n\n  }\n\nBehind it.\n\n\
        a │ b\n──┼──\n1 │ 2\n\n│ quoted\n\n────────────────────────────────────────\n\
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
        assert_eq!(stream.push("ld** text\n\n", PAGE), ["Some **bold** text"]);
        assert!(stream.open(PAGE).is_empty());
        assert!(
            stream
                .push("```\nx = 1", PAGE)
                .starts_with(&[String::new()])
        );
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
