//! `read`: shows a text file in pages of whole lines, or an image.
//!
//! A line longer than a page is paged by bytes, so that every part of a text file can be read.

use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};

use plimsoll_context::{Bytes, Part};
use plimsoll_core::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::{self, SNIFFED};
use crate::file_tool::Stop;
use crate::image::{IMAGE_MAX, image_part};
use crate::input::count;
use crate::scope::{LocatedPath, Scope};

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Reads a text file, in pages; a note says how to go on.";
/// Maximum number of bytes that are scanned to find a page and to count the lines. This takes about a
/// second.
pub const SCAN_MAX: Bytes = Bytes(256 * 1024 * 1024);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadInput {
    #[serde(alias = "file", alias = "file_path", alias = "filename")]
    path: String,
    /// First line, from 1
    #[serde(default, deserialize_with = "count")]
    #[serde(alias = "line", alias = "start_line", alias = "start")]
    #[schemars(with = "u64")]
    offset: Option<u64>,
    /// Lines at most
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64")]
    limit: Option<u64>,
    /// First byte of that line, from 1
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64")]
    column: Option<u64>,
}

pub(crate) fn work(scope: &Scope, input: ReadInput, stop: &Stop) -> Result<ToolOutput, ToolError> {
    let shown = &input.path;
    let located = scope.existing(shown)?;
    let (file, len) = file::open(scope, &located)?;
    let failed = |error| ToolError(format!("cannot read `{shown}`: {error}"));
    let mut reader = BufReader::with_capacity(SNIFFED, file.take(SCAN_MAX.0));
    let start = reader.fill_buf().map_err(failed)?;
    if let Some(kind) = file::not_text(start) {
        if scope.shows_images && imagesize::image_type(start).is_ok() {
            return image(scope, shown, &located);
        }
        return Err(file::no_text(shown, kind, len));
    }
    if start.starts_with("\u{feff}".as_bytes()) {
        // Skips the byte order mark.
        reader.consume(3);
    }
    let mut scan = PageScan::new(&input, scope.page());
    loop {
        let chunk = reader.fill_buf().map_err(failed)?;
        if chunk.is_empty() {
            break;
        }
        if stop.now() {
            return Err(ToolError(format!("reading `{shown}` took too long")));
        }
        let taken = chunk.len();
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            scan.take(piece);
        }
        reader.consume(taken);
    }
    let total = match reader.into_inner().limit() {
        // The file may have more lines than were scanned.
        0 => Total::AtLeast(scan.lines()),
        _ => Total::Exactly(scan.lines()),
    };
    scan.result(shown, total).map(Into::into)
}

/// Returns the image in a file.
fn image(scope: &Scope, shown: &str, file: &LocatedPath) -> Result<ToolOutput, ToolError> {
    let bytes = file::read_bytes(scope, shown, file, IMAGE_MAX, "shown")?;
    let image = image_part(&bytes).map_err(|error| ToolError(format!("`{shown}` {error}")))?;
    let size = match &image {
        Part::Image(image) => image
            .size
            .map(|(width, height)| format!(", {width} × {height} pixels")),
        _ => None,
    };
    let text = format!("[image {shown}{}]", size.unwrap_or_default());
    Ok(ToolOutput {
        parts: vec![Part::text(text), image],
    })
}

/// The number of lines of a file.
#[derive(Clone, Copy)]
enum Total {
    Exactly(u64),
    AtLeast(u64),
}

impl std::fmt::Display for Total {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(lines) => write!(f, "{lines}"),
            Self::AtLeast(lines) => write!(f, "over {lines}"),
        }
    }
}

/// Selects a page while a file is read in pieces.
struct PageScan {
    first: u64,
    column: u64,
    limit: u64,
    page_max: usize,
    page: Vec<u8>,
    /// The current line, from 1, the number of its bytes that were read, and its start in the page.
    line: u64,
    at: u64,
    line_start: usize,
    /// The length of the page's first line, as far as it was read.
    first_len: u64,
    /// The last line in the page, complete or not.
    last: u64,
    full: bool,
    /// The first line did not fit; the page contains only this many of its bytes.
    parted: Option<usize>,
}

impl PageScan {
    fn new(input: &ReadInput, page_max: usize) -> Self {
        Self {
            first: input.offset.unwrap_or(1).max(1),
            column: input.column.unwrap_or(1).max(1),
            limit: input.limit.filter(|limit| *limit > 0).unwrap_or(u64::MAX),
            page_max,
            page: Vec::new(),
            line: 1,
            at: 0,
            line_start: 0,
            first_len: 0,
            last: 0,
            full: false,
            parted: None,
        }
    }

    /// Adds a piece of one line. The last piece of a line contains its line end.
    fn take(&mut self, piece: &[u8]) {
        let end = piece.ends_with(b"\n");
        let len = piece.len() as u64 - u64::from(end);
        if self.line == self.first {
            self.first_len += len;
        }
        if self.line >= self.first && !self.full {
            self.add(piece);
        }
        if end {
            self.line += 1;
            self.at = 0;
            self.line_start = self.page.len();
        } else {
            self.at += len;
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.line - self.first >= self.limit {
            self.full = true;
            return;
        }
        let skipped = if self.line == self.first {
            (self.column - 1).saturating_sub(self.at)
        } else {
            0
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let (_, piece) = piece.split_at(skipped.min(piece.len()));
        let room = self.page_max.saturating_sub(self.page.len());
        // The line end of a first line that fits exactly may exceed the limit by one byte.
        let end = self.line == self.first && piece.ends_with(b"\n");
        if piece.len() <= room + usize::from(end) {
            self.page.extend_from_slice(piece);
            self.last = self.line;
            return;
        }
        self.full = true;
        if self.line == self.first {
            let (fits, _) = piece.split_at(room);
            self.page.extend_from_slice(fits);
            let whole = whole_characters(&self.page).len();
            self.page.truncate(whole);
            self.parted = Some(whole);
            self.last = self.line;
        } else {
            self.page.truncate(self.line_start);
            self.last = self.line - 1;
        }
    }

    /// Returns the number of lines read.
    fn lines(&self) -> u64 {
        self.line - u64::from(self.at == 0)
    }

    fn result(self, shown: &str, total: Total) -> Result<String, ToolError> {
        let lines = self.lines();
        if lines == 0 && self.first == 1 {
            return Ok("[empty file]".to_owned());
        }
        if self.first > lines {
            return Err(ToolError(format!(
                "`offset` {} is beyond the end: `{shown}` has {total} {}",
                self.first,
                if matches!(total, Total::Exactly(1)) {
                    "line"
                } else {
                    "lines"
                },
            )));
        }
        if self.column > 1 && self.column > self.first_len {
            return Err(ToolError(format!(
                "`column` {} is beyond the end of line {}, which has {} bytes",
                self.column, self.first, self.first_len
            )));
        }
        let mut notes = self.range(total);
        let text = String::from_utf8_lossy(&self.page);
        if text.contains("\r\n") {
            notes.push("CRLF line ends".to_owned());
        }
        if matches!(text, std::borrow::Cow::Owned(_)) {
            notes.push(format!(
                "not UTF-8: {} stands for what is no text",
                '\u{fffd}'
            ));
        }
        let mut text = text.replace("\r\n", "\n").replace('\0', "\u{fffd}");
        if !notes.is_empty() {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "[{}]", notes.join("; "));
        }
        Ok(text)
    }

    /// Returns the shown range and the way to continue. Empty if the page is the whole file.
    fn range(&self, total: Total) -> Vec<String> {
        let Self { first, last, .. } = *self;
        let from = self.column;
        if let Some(parted) = self.parted {
            let to = from - 1 + parted as u64;
            return vec![
                format!(
                    "line {first} of {total}, bytes {from}-{to} of {}",
                    self.first_len
                ),
                format!("continue with offset {first}, column {}", to + 1),
            ];
        }
        let more = self.full || matches!(total, Total::AtLeast(_));
        if first == 1 && from == 1 && !more {
            return Vec::new();
        }
        let mut notes = vec![if first == last {
            format!("line {last} of {total}")
        } else {
            format!("lines {first}-{last} of {total}")
        }];
        if from > 1 {
            notes.push(format!("line {first} from byte {from}"));
        }
        if more {
            notes.push(format!("continue with offset {}", last + 1));
        }
        notes
    }
}

/// Returns `bytes` without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.split_at(error.valid_up_to()).0,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::Workspace as Files;

    fn read(files: &Files, arguments: &str) -> Result<String, String> {
        files.call("read", arguments)
    }

    /// Returns the header of a PNG of two by three pixels.
    fn png(length: usize) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend([0, 0, 0, 2, 0, 0, 0, 3, 8, 2, 0, 0, 0]);
        bytes.resize(length, 0);
        bytes
    }

    #[test]
    fn an_image_is_shown_to_a_model_that_sees_it() {
        let files = Files::new();
        let large = usize::try_from(IMAGE_MAX.0).unwrap() + 1;
        files.put("a.png", png(64));
        files.put("half.png", png(20));
        files.put("large.png", png(large));
        let shown = files.shown("a.png").unwrap();
        let [Part::Text { text }, Part::Image(image)] = shown.parts.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!(text, "[image a.png, 2 × 3 pixels]");
        assert_eq!(image.size, Some((2, 3)));
        for (name, why) in [
            ("half.png", "`half.png` is damaged"),
            ("large.png", "more than the 5242880 that can be shown"),
        ] {
            let error = files.shown(name).unwrap_err();
            assert!(error.0.contains(why), "{error}");
        }
        let error = read(&files, r#"{"path":"a.png"}"#).unwrap_err();
        assert!(
            error.contains("a PNG image of 64 bytes, not text"),
            "{error}"
        );
    }

    #[test]
    fn pages_and_their_notes() {
        let files = Files::new();
        files.put("five", "one\ntwo\nthree\nfour\nfive\n");
        files.put("no-end", "one\ntwo");
        files.put("crlf", "one\r\ntwo\r\n");
        files.put("empty", "");
        files.put("blank", "\n");
        files.put("bom", "\u{feff}one\n");
        files.put("latin1", b"caf\xe9\n");
        for (arguments, text) in [
            (r#"{"path":"five"}"#, "one\ntwo\nthree\nfour\nfive\n"),
            (
                r#"{"path":"five","limit":2}"#,
                "one\ntwo\n[lines 1-2 of 5; continue with offset 3]",
            ),
            (
                r#"{"path":"five","offset":3,"limit":2}"#,
                "three\nfour\n[lines 3-4 of 5; continue with offset 5]",
            ),
            (
                r#"{"path":"five","offset":5,"limit":2}"#,
                "five\n[line 5 of 5]",
            ),
            (r#"{"file_path":"five","start_line":"4.0","limit":"9"}"#, ""),
            (
                r#"{"path":"five","offset":"4","limit":1.0}"#,
                "four\n[line 4 of 5; continue with offset 5]",
            ),
            (
                r#"{"path":"five","offset":0,"limit":0}"#,
                "one\ntwo\nthree\nfour\nfive\n",
            ),
            (r#"{"path":"no-end"}"#, "one\ntwo"),
            (r#"{"path":"no-end","offset":2}"#, "two\n[line 2 of 2]"),
            (r#"{"path":"crlf"}"#, "one\ntwo\n[CRLF line ends]"),
            (r#"{"path":"empty"}"#, "[empty file]"),
            (r#"{"path":"blank"}"#, "\n"),
            (r#"{"path":"bom"}"#, "one\n"),
            (
                r#"{"path":"latin1"}"#,
                "caf\u{fffd}\n[not UTF-8: \u{fffd} stands for what is no text]",
            ),
        ] {
            let got = read(&files, arguments);
            if text.is_empty() {
                let error = got.unwrap_err();
                assert!(error.contains("whole number"), "{error}");
            } else {
                assert_eq!(got.as_deref(), Ok(text), "{arguments}");
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let files = Files::new();
        files.put("five", "one\ntwo\nthree\nfour\nfive\n");
        files.put("empty", "");
        files.put("a.png", b"\x89PNG\r\n\x1a\n\0\0");
        files.put("a.bin", b"abc\0def");
        files.put("src/main.rs", "x");
        for (arguments, text) in [
            (
                r#"{"path":"five","offset":6}"#,
                "`offset` 6 is beyond the end: `five` has 5 lines",
            ),
            (
                r#"{"path":"empty","offset":2}"#,
                "`offset` 2 is beyond the end: `empty` has 0 lines",
            ),
            (
                r#"{"path":"five","offset":2,"column":9}"#,
                "`column` 9 is beyond the end of line 2, which has 3 bytes",
            ),
            (r#"{"path":"src"}"#, "`src` is a directory; use list"),
            (r#"{"path":"."}"#, "`.` is a directory; use list"),
            (
                r#"{"path":"fvie"}"#,
                "there is no `fvie`; did you mean `five`?",
            ),
            (
                r#"{"path":"a.png"}"#,
                "`a.png` is a PNG image of 10 bytes, not text; convert it first, with bash say",
            ),
            (
                r#"{"path":"a.bin"}"#,
                "`a.bin` is binary data of 7 bytes, not text; convert it first, with bash say",
            ),
            (
                r#"{"path":"../x"}"#,
                "`../x` is outside the workspace root; give a path inside it, relative to it",
            ),
        ] {
            assert_eq!(read(&files, arguments), Err(text.to_owned()));
        }
        let error = read(&files, r#"{"offset":1}"#).unwrap_err();
        assert!(error.contains("missing field `path`"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_devices_are_refused_at_once() {
        let files = Files::new();
        let pipe = files.path("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let error = read(&files, r#"{"path":"pipe"}"#).unwrap_err();
        assert_eq!(
            error,
            "`pipe` is a pipe, socket or device, not a file; leave it alone"
        );
        // If it were swapped in after the check, opening it would not block either.
        crate::safe_open::open(files.root().path(), std::path::Path::new("pipe")).unwrap();

        let devices = crate::Toolbox::new(crate::Root::new("/dev").unwrap());
        let error = crate::testing::call(&devices, "read", r#"{"path":"zero"}"#).unwrap_err();
        assert!(error.starts_with("`zero` is a pipe, socket or device"));
    }

    #[test]
    fn a_giant_line_is_paged_by_bytes() {
        let files = Files::new();
        let giant = "語🦀x".repeat(50_000);
        files.put("giant", format!("first\n{giant}\nlast\n"));
        let page = read(&files, r#"{"path":"giant"}"#).unwrap();
        assert_eq!(page, "first\n[line 1 of 3; continue with offset 2]");

        let (mut column, mut got) = (1, String::new());
        let last = loop {
            let arguments = format!(r#"{{"path":"giant","offset":2,"column":{column}}}"#);
            let page = read(&files, &arguments).unwrap();
            assert!(page.len() <= crate::PAGE.0 as usize + 200);
            let (text, note) = page.rsplit_once("\n[").unwrap();
            got.push_str(text);
            match note.split_once("column ") {
                Some((_, next)) => column = next.trim_end_matches(']').parse().unwrap(),
                None => break note.to_owned(),
            }
        };
        assert_eq!(got, format!("{giant}\nlast"));
        assert!(
            last.starts_with("lines 2-3 of 3; line 2 from byte "),
            "{last}"
        );
    }

    #[test]
    fn a_large_file_is_paged_and_its_lines_are_counted() {
        let files = Files::new();
        let lines: Vec<String> = (1..=100_000).map(|n| format!("line {n}")).collect();
        files.put("large", lines.join("\n"));
        let page = read(&files, r#"{"path":"large","offset":99990}"#).unwrap();
        assert!(page.ends_with("line 100000\n[lines 99990-100000 of 100000]"));
        let page = read(&files, r#"{"path":"large"}"#).unwrap();
        assert!(page.len() <= crate::PAGE.0 as usize + 200);
        assert!(page.contains(" of 100000; continue with offset "));
    }

    proptest! {
        #[test]
        fn following_the_notes_reads_every_byte(
            text in "([a-z語🦀\n]|\n){0,400}", page in 4..60usize, limit in 1..5u64
        ) {
            let (mut offset, mut column, mut got) = (1, 1, String::new());
            // A page that ends with a partial line has no line end of its own.
            for _ in 0..2_000 {
                let input = ReadInput { path: "x".into(), offset: Some(offset), limit: Some(limit), column: Some(column) };
                let mut scan = PageScan::new(&input, page);
                for piece in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
                    // Pieces may end anywhere.
                    piece.chunks(7).for_each(|chunk| scan.take(chunk));
                }
                let total = Total::Exactly(scan.lines());
                prop_assert!(scan.page.len() <= page + 1);
                let (last, full, parted) = (scan.last, scan.full, scan.parted);
                got.push_str(std::str::from_utf8(&scan.page).unwrap());
                let lines = scan.lines();
                prop_assert!(scan.result("x", total).is_ok());
                match parted {
                    Some(bytes) => {
                        prop_assert!(bytes > 0);
                        column += bytes as u64;
                    }
                    None if full && last < lines => (offset, column) = (last + 1, 1),
                    None => break,
                }
            }
            prop_assert_eq!(got, text);
        }
    }
}
