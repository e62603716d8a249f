//! Reads the lines of a log, plain or compressed with gzip or zstd, up to a size limit.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use plimsoll_foreign::replace_half_characters;
use plimsoll_wire::__internals::RawObject;
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Map, Value};

use crate::error::LogError;
use crate::session::SessionLog;

/// The maximum size of a log, in bytes after decompression. Logs of very long sessions have 200 MB.
pub const MAX_LOG: u64 = 1024 * 1024 * 1024;
/// The maximum length of a line, in bytes. A longer line is skipped as damaged.
pub const MAX_LINE: u64 = 64 * 1024 * 1024;

/// The maximum length of the first key of an entry, in bytes.
const MAX_KEY: usize = 256;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Editors of Windows put it before the text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Opens a file and decompresses it if its first bytes indicate a compression format.
///
/// # Errors
///
/// [`LogError::Read`], also for a directory or a file over [`MAX_LOG`]. Reading ends with an error if the decompressed
/// bytes exceed that limit.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, LogError> {
    let failed = LogError::read(path);
    let file = File::open(path).map_err(&failed)?;
    if file.metadata().map_err(&failed)?.len() > MAX_LOG {
        return Err(failed(too_large()));
    }
    unpack(BufReader::new(file)).map_err(failed)
}

/// Decompresses an input if its first bytes indicate a compression format.
///
/// # Errors
///
/// Those of the input. Reading ends with [`ErrorKind::UnexpectedEof`] where a compressed input is cut off or
/// damaged, and with another error after [`MAX_LOG`] bytes.
pub fn unpack(mut input: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let head = input.fill_buf()?;
    if head.starts_with(&GZIP) {
        return Ok(bounded(MultiGzDecoder::new(input)));
    }
    if head.starts_with(&ZSTD) {
        let decoder = StreamingDecoder::new(input);
        return Ok(bounded(decoder.map_err(|error| cut(&error))?));
    }
    Ok(Box::new(input))
}

/// Returns the error for a log over [`MAX_LOG`].
fn too_large() -> io::Error {
    io::Error::other(format!(
        "it has more than {MAX_LOG} bytes, which is the limit; take its newest part with \
         `tail -c 500M FILE > part.jsonl` and rescue that"
    ))
}

/// Appends the rest of a log that is one document, within the limit for a log, and replaces halves of characters.
pub(crate) fn read_rest(
    log: &mut SessionLog,
    input: impl Read,
    into: &mut Vec<u8>,
) -> Result<(), LogError> {
    let mut read = input.take(MAX_LOG + 1).read_to_end(into);
    if into.len() as u64 > MAX_LOG {
        read = Err(too_large());
    }
    read.map_err(LogError::read(&log.path))?;
    log.replaced(replace_half_characters(into), "the file");
    Ok(())
}

fn bounded(unpacked: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::new(Bounded {
        unpacked,
        left: MAX_LOG,
    }))
}

/// A reader that fails after [`MAX_LOG`] bytes, since a small compressed file may contain a very
/// large one.
struct Bounded<R> {
    unpacked: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.unpacked.read(buffer);
        let read = read.map_err(|error| match error.kind() {
            // Those of the decoders. The file itself fails with other kinds.
            ErrorKind::UnexpectedEof
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidData
            | ErrorKind::Other => cut(&error),
            _ => error,
        })?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(too_large)?;
        Ok(read)
    }
}

fn cut(error: &dyn std::fmt::Display) -> io::Error {
    let words =
        format!("the compressed file is cut off or damaged ({error}); copy or download it again");
    io::Error::new(ErrorKind::UnexpectedEof, words)
}

/// The place of an entry in a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct EntryPlace {
    /// The line number, from 1. In a document, the index of the message.
    pub(crate) line: usize,
    /// The number of the entry on its line, from 0.
    nth: usize,
}

impl From<usize> for EntryPlace {
    fn from(line: usize) -> Self {
        Self { line, nth: 0 }
    }
}

/// An entry of a log: the keys of a JSON object on a line, with the raw texts of their values.
pub(crate) struct Entry<'a> {
    pub(crate) place: EntryPlace,
    pub(crate) text: &'a [u8],
    keys: RawObject<'a>,
}

impl<'a> Entry<'a> {
    /// Returns the raw text of a value.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        self.keys.get(key)
    }

    /// Returns a value, or `null` if there is none.
    pub(crate) fn value(&self, key: &str) -> serde_json::Result<Value> {
        serde_json::from_str(self.raw(key).unwrap_or("null"))
    }

    /// Returns the whole entry.
    pub(crate) fn object(&self) -> serde_json::Result<Map<String, Value>> {
        serde_json::from_slice(self.text)
    }

    /// Returns a value that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let raw = self.raw(key).filter(|raw| raw.starts_with('"'))?;
        serde_json::from_str(raw).ok()
    }
}

/// Calls `each` with every entry. Anything else on a line is damage.
pub(crate) fn for_each_entry(
    log: &mut SessionLog,
    mut each: impl FnMut(&mut SessionLog, &Entry<'_>),
) -> Result<(), LogError> {
    let path = log.path.clone();
    for_each_line(&path, |line, text, halves| {
        let Some(text) = text else {
            return log.damaged(line, format!("longer than {MAX_LINE} bytes"));
        };
        if halves > 0 {
            log.replaced(halves, format!("line {line}"));
        }
        for entry in entries(line, text) {
            let why = match entry {
                Ok(entry) => {
                    each(log, &entry);
                    continue;
                }
                Err(error) if error.is_eof() => "cut off in the middle".to_owned(),
                Err(error) => format!("not an entry of {}: {error}", log.agent.title()),
            };
            log.damaged(line, why);
        }
    })
}

/// Reads some entries again: calls `each` with every wanted one.
pub(crate) fn for_each_again(
    path: &Path,
    wanted: &HashSet<EntryPlace>,
    mut each: impl FnMut(&Entry<'_>),
) -> Result<(), LogError> {
    let lines: HashSet<usize> = wanted.iter().map(|place| place.line).collect();
    for_each_line(path, |line, text, _| {
        let text = text.filter(|_| lines.contains(&line)).unwrap_or_default();
        let entries = entries(line, text).flatten();
        let wanted = entries.filter(|entry| wanted.contains(&entry.place));
        wanted.for_each(|entry| each(&entry));
    })
}

/// Returns the entries on a line: usually one, and several if a crash lost the line end between them.
fn entries(line: usize, text: &[u8]) -> impl Iterator<Item = serde_json::Result<Entry<'_>>> {
    let mut rest = text;
    (0..).map_while(move |nth| {
        let text = trimmed(rest);
        let mut objects = serde_json::Deserializer::from_slice(text).into_iter();
        let keys = objects.next()?;
        let behind = match keys {
            Ok(_) => text.get(objects.byte_offset()..),
            Err(_) => entry_behind(text),
        };
        rest = behind.unwrap_or_default();
        let text = text.get(..text.len() - rest.len())?;
        let place = EntryPlace { line, nth };
        Some(keys.map(|keys| Entry { place, text, keys }))
    })
}

/// Returns the entry behind one that was cut off: it begins with the same key, and ends with the line.
fn entry_behind(torn: &[u8]) -> Option<&[u8]> {
    let start = torn.get(..MAX_KEY.min(torn.len()))?;
    let start = start.get(..=start.iter().position(|byte| *byte == b':')?)?;
    let starts = torn.windows(start.len()).enumerate().skip(1);
    let mut starts = starts.filter(|(_, text)| *text == start);
    starts.find_map(|(at, _)| {
        let entry = torn.get(at..)?;
        let parsed: serde_json::Result<RawObject<'_>> = serde_json::from_slice(entry);
        parsed.is_ok().then_some(entry)
    })
}

/// Returns a text without white space and zeros around it. A crash may leave zeros in a file.
fn trimmed(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    let end = text.iter().rposition(|byte| !is_blank(byte));
    let end = end.map_or(0, |at| at + 1);
    text.get(start..end).unwrap_or_default()
}

/// Calls `each` with the number (from 1) of each line, its bytes, and the number of halves of characters that were
/// replaced in it. A line above [`MAX_LINE`] has no bytes.
fn for_each_line(
    path: &Path,
    mut each: impl FnMut(usize, Option<&[u8]>, usize),
) -> Result<(), LogError> {
    let failed = LogError::read(path);
    let mut input = open(path)?;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut bounded = input.by_ref().take(MAX_LINE + 1);
        if bounded.read_until(b'\n', &mut line).map_err(&failed)? == 0 {
            break;
        }
        if line.len() as u64 > MAX_LINE && line.last() != Some(&b'\n') {
            each(number, None, 0);
            input.skip_until(b'\n').map_err(&failed)?;
            continue;
        }
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let halves = replace_half_characters(&mut line);
        each(number, Some(line.as_slice()), halves);
    }
    Ok(())
}
