//! `read`: shows a text file in pages of whole lines, or an image.
//!
//! A line longer than a page is paged by bytes, so that every part of a text file can be read.

use plimsoll_context::{Bytes, Part, counted};
use plimsoll_core::{ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::{self, SNIFFED};
use crate::file_tool::Stop;
use crate::image::{IMAGE_MAX, image_part};
use crate::input;
use crate::output_page::PAGE;
use crate::scope::{LocatedPath, Scope};

/// The description of the tool for the model.
pub(crate) const DESCRIPTION: &str = "Reads a text file, in pages; a note says how to go on.";
/// Maximum size of a file that is read.
pub const READ_MAX: Bytes = Bytes(64 * 1024 * 1024);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadInput {
    #[serde(alias = "file", alias = "file_path", alias = "filename")]
    path: String,
    /// First line, from 1
    #[serde(
        default,
        alias = "line",
        alias = "start_line",
        alias = "start",
        deserialize_with = "input::number"
    )]
    #[schemars(with = "u64")]
    offset: Option<usize>,
    /// Lines at most
    #[serde(default)]
    #[schemars(with = "u64")]
    limit: Option<usize>,
    /// First byte of that line, from 1
    #[serde(default)]
    #[schemars(with = "u64")]
    column: Option<usize>,
}

pub(crate) fn work(scope: &Scope, input: ReadInput, _: &Stop) -> Result<ToolOutput, ToolError> {
    let shown = &input.path;
    let located = scope.existing(shown)?;
    let bytes = file::read_bytes(scope, shown, &located, READ_MAX, "read")?;
    let start = bytes.get(..SNIFFED).unwrap_or(&bytes);
    if let Some(kind) = file::not_text(start) {
        if scope.shows_images && imagesize::image_type(start).is_ok() {
            return image(scope, shown, &located);
        }
        return Err(file::no_text(shown, kind, bytes.len() as u64));
    }
    // Skips the byte order mark.
    let text = bytes.strip_prefix("\u{feff}".as_bytes());
    page(&input, text.unwrap_or(&bytes), PAGE.0 as usize).map(Into::into)
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

/// A contiguous part of a file, from the beginning of a line or from within a line.
struct Excerpt<'a> {
    text: &'a [u8],
    /// Number of lines that end in it, or with it.
    lines: usize,
}

impl<'a> Excerpt<'a> {
    /// Returns as many whole lines of `text` as fit, or the beginning of the first one.
    fn new(text: &'a [u8], max_lines: usize, max_bytes: usize) -> Self {
        let (mut end, mut lines) = (0, 0);
        for line in text.split_inclusive(is_line_end).take(max_lines) {
            // The line end of a first line that fits exactly may exceed the limit by one byte.
            let own = if lines == 0 { without_end(line) } else { line };
            if end + own.len() > max_bytes {
                break;
            }
            end += line.len();
            lines += 1;
        }
        if lines == 0 {
            end = whole_characters(text.get(..max_bytes).unwrap_or(text)).len();
        }
        let (text, _) = text.split_at(end);
        Self { text, lines }
    }
}

/// Returns the page that starts where `input` says, with notes about the rest.
fn page(input: &ReadInput, bytes: &[u8], max_bytes: usize) -> Result<String, ToolError> {
    let first = input.offset.unwrap_or(1).max(1);
    let column = input.column.unwrap_or(1).max(1);
    let limit = input.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let lines = bytes.split_inclusive(is_line_end);
    let total = lines.clone().count();
    if total == 0 && first == 1 {
        return Ok("[empty file]".to_owned());
    }
    let Some(line) = lines.clone().nth(first - 1) else {
        let shown = &input.path;
        return Err(ToolError(format!(
            "`offset` {first} is beyond the end: `{shown}` has {}",
            counted(total as u64, "line")
        )));
    };
    let length = without_end(line).len();
    if column > 1 && column > length {
        return Err(ToolError(format!(
            "`column` {column} is beyond the end of line {first}, which has {length} bytes"
        )));
    }
    let before: usize = lines.take(first - 1).map(<[u8]>::len).sum();
    let (_, rest) = bytes.split_at(before + column - 1);
    let excerpt = Excerpt::new(rest, limit, max_bytes);
    let last = first + excerpt.lines.saturating_sub(1);
    let mut notes = Vec::new();
    if excerpt.lines == 0 {
        let to = column - 1 + excerpt.text.len();
        notes.push(format!(
            "line {first} of {total}, bytes {column}-{to} of {length}"
        ));
        notes.push(format!("continue with offset {first}, column {}", to + 1));
    } else if first > 1 || column > 1 || last < total {
        notes.push(if first == last {
            format!("line {last} of {total}")
        } else {
            format!("lines {first}-{last} of {total}")
        });
        if column > 1 {
            notes.push(format!("line {first} from byte {column}"));
        }
        if last < total {
            notes.push(format!("continue with offset {}", last + 1));
        }
    }
    let text = String::from_utf8_lossy(excerpt.text);
    if text.contains("\r\n") {
        notes.push("CRLF line ends".to_owned());
    }
    if matches!(text, std::borrow::Cow::Owned(_)) {
        notes.push("not UTF-8: \u{fffd} stands for what is no text".to_owned());
    }
    let mut text = text.replace("\r\n", "\n").replace('\0', "\u{fffd}");
    if !notes.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{}]", notes.join("; ")));
    }
    Ok(text)
}

fn is_line_end(byte: &u8) -> bool {
    *byte == b'\n'
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
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
            (
                r#"{"file_path":"five","start_line":4,"limit":1}"#,
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
            assert_eq!(read(&files, arguments).as_deref(), Ok(text), "{arguments}");
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
            text in "([a-z語🦀\n]|\n){0,400}", page in 4..60usize, limit in 1..5usize
        ) {
            let mut left = text.as_bytes();
            for _ in 0..2_000 {
                let excerpt = Excerpt::new(left, limit, page);
                prop_assert!(excerpt.text.len() <= page + 1 && excerpt.lines <= limit);
                prop_assert!(std::str::from_utf8(excerpt.text).is_ok());
                if left.is_empty() {
                    break;
                }
                prop_assert!(!excerpt.text.is_empty());
                (_, left) = left.split_at(excerpt.text.len());
            }
            prop_assert!(left.is_empty());
        }
    }
}
