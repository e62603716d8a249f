//! Reads the lines of a log, plain or compressed with gzip or zstd, up to a size limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use plimsoll_foreign::{HalfCharacters, replace_half_characters};
use plimsoll_wire::__internals::RawObject;
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Map, Value};

use crate::error::LogError;
use crate::session::SessionLog;

/// The maximum size of a log, in bytes after decompression. Logs of very long sessions have 200 MB.
pub const MAX_LOG: u64 = 1024 * 1024 * 1024;
/// The maximum length of a line, in bytes. A longer line is skipped as damaged.
pub const MAX_LINE: u64 = 64 * 1024 * 1024;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Editors of Windows put it before the text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Opens a file and decompresses it if its first bytes indicate a compression format.
///
/// # Errors
///
/// [`LogError::Read`], also for a directory, or [`LogError::TooLarge`] for a file over
/// [`MAX_LOG`]. Reading ends with an error if the decompressed bytes exceed that limit.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, LogError> {
    let failed = LogError::read(path);
    let file = File::open(path).map_err(&failed)?;
    if file.metadata().map_err(&failed)?.len() > MAX_LOG {
        return Err(too_large(path));
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
fn too_large(path: &Path) -> LogError {
    LogError::TooLarge {
        path: path.to_owned(),
    }
}

/// Appends the rest of a log that is one document, within the limit for a log, and replaces halves of characters.
pub(crate) fn read_rest(
    log: &mut SessionLog,
    input: impl Read,
    into: &mut Vec<u8>,
) -> Result<(), LogError> {
    let read = input.take(MAX_LOG + 1).read_to_end(into);
    read.map_err(LogError::read(&log.path))?;
    if into.len() as u64 > MAX_LOG {
        return Err(too_large(&log.path));
    }
    log.replaced(None, replace_half_characters(into));
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
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other(format!("it unpacks to more than {MAX_LOG} bytes")))?;
        Ok(read)
    }
}

fn cut(error: &dyn std::fmt::Display) -> io::Error {
    let words = format!("the compressed file is cut off or damaged ({error})");
    io::Error::new(ErrorKind::UnexpectedEof, words)
}

/// An entry of a log: the keys of one line, with the raw texts of their values.
pub(crate) struct Entry<'a> {
    /// The line number, from 1.
    pub(crate) line: usize,
    pub(crate) text: &'a [u8],
    keys: RawObject<'a>,
}

impl<'a> Entry<'a> {
    fn parse(line: usize, text: &'a [u8]) -> serde_json::Result<Self> {
        let keys = serde_json::from_slice(text)?;
        Ok(Self { line, text, keys })
    }

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

/// Calls `each` with every line that is a JSON object. Other lines that are not blank are damage.
pub(crate) fn for_each_entry(
    log: &mut SessionLog,
    mut each: impl FnMut(&mut SessionLog, &Entry<'_>),
) -> Result<(), LogError> {
    let path = log.path.clone();
    for_each_line(&path, |line, text, halves| {
        let why = match text.map(|text| Entry::parse(line, text)) {
            None => format!("longer than {MAX_LINE} bytes"),
            Some(Ok(entry)) => {
                log.replaced(Some(line), halves);
                return each(log, &entry);
            }
            Some(Err(error)) if error.is_eof() => "cut off in the middle".to_owned(),
            Some(Err(error)) => format!("not an entry of {}: {error}", log.agent.title()),
        };
        log.damaged(line, why);
    })
}

/// Reads some lines again: calls `each` with every wanted line that is a JSON object.
pub(crate) fn for_each_again(
    path: &Path,
    is_wanted: impl Fn(usize) -> bool,
    mut each: impl FnMut(&Entry<'_>),
) -> Result<(), LogError> {
    for_each_line(path, |line, text, _| {
        if let Some(text) = text.filter(|_| is_wanted(line))
            && let Ok(entry) = Entry::parse(line, text)
        {
            each(&entry);
        }
    })
}

/// Calls `each` with the number (from 1) of each line that is not blank, its bytes without the line end, and the halves
/// of characters that were replaced in it. A line above [`MAX_LINE`] has no bytes.
fn for_each_line(
    path: &Path,
    mut each: impl FnMut(usize, Option<&[u8]>, Option<HalfCharacters>),
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
            each(number, None, None);
            input.skip_until(b'\n').map_err(&failed)?;
            continue;
        }
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let halves = replace_half_characters(&mut line);
        // A crash may leave zeros in a file.
        let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
        let end = line
            .iter()
            .rposition(|byte| !is_blank(byte))
            .map_or(0, |at| at + 1);
        let start = line.iter().take_while(|byte| is_blank(byte)).count();
        let text = line.get(start..end).unwrap_or_default();
        if !text.is_empty() {
            each(number, Some(text), halves);
        }
    }
    Ok(())
}
