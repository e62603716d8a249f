//! Reads the entries of a log, plain or compressed with gzip or zstd, up to a size limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use plimsoll_wire::__internals::RawObject;
use ruzstd::decoding::StreamingDecoder;
use serde_json::{Map, Value};

use crate::error::LogError;
use crate::session::SessionLog;

/// The maximum size of a log, in bytes after decompression. Logs of very long sessions have 200 MB.
pub const MAX_LOG: u64 = 1024 * 1024 * 1024;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Editors of Windows put it before the text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Reads the whole text of a log, and decompresses it if its first bytes indicate a compression format.
pub(crate) fn read_text(path: &Path) -> Result<Vec<u8>, LogError> {
    let failed = LogError::read(path);
    let file = File::open(path).map_err(&failed)?;
    let mut bytes = file.metadata().map_err(&failed)?.len();
    let mut text = Vec::new();
    if bytes <= MAX_LOG {
        let input = unpack(BufReader::new(file)).map_err(&failed)?;
        let read = input.take(MAX_LOG + 1).read_to_end(&mut text);
        bytes = read.map_err(&failed)? as u64;
    }
    if bytes > MAX_LOG {
        return Err(failed(io::Error::other(format!(
            "it has more than {MAX_LOG} bytes, which is the limit; take its newest part with \
             `tail -c 500M FILE > part.jsonl` and rescue that"
        ))));
    }
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// Decompresses an input if its first bytes indicate a compression format.
///
/// # Errors
///
/// Those of the input. Reading ends with [`ErrorKind::UnexpectedEof`] where a compressed input is cut off or
/// damaged. The decompressed input has no limit.
pub fn unpack(mut input: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let head = input.fill_buf()?;
    if head.starts_with(&GZIP) {
        let unpacked = Unpacked(MultiGzDecoder::new(input));
        return Ok(Box::new(BufReader::new(unpacked)));
    }
    if head.starts_with(&ZSTD) {
        let decoder = StreamingDecoder::new(input);
        let unpacked = Unpacked(decoder.map_err(|error| damaged(&error))?);
        return Ok(Box::new(BufReader::new(unpacked)));
    }
    Ok(Box::new(input))
}

/// A decompressed input, whose errors name the remedy.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| damaged(&error))
    }
}

fn damaged(error: &dyn std::fmt::Display) -> io::Error {
    let words =
        format!("the compressed file is cut off or damaged ({error}); copy or download it again");
    io::Error::new(ErrorKind::UnexpectedEof, words)
}

/// An entry of a log: the keys of a JSON object on a line, with the raw texts of their values.
pub(crate) struct Entry<'a> {
    /// The number of its line, from 1.
    pub(crate) line: usize,
    pub(crate) text: &'a [u8],
    keys: RawObject<'a>,
}

impl<'a> Entry<'a> {
    /// Parses the text of an entry.
    pub(crate) fn parse(line: usize, text: &'a [u8]) -> serde_json::Result<Self> {
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

/// Calls `each` with every entry of a log. Anything else on a line is damage.
pub(crate) fn for_each_entry<'a>(
    log: &mut SessionLog,
    text: &'a [u8],
    mut each: impl FnMut(&mut SessionLog, &Entry<'a>),
) {
    for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
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
    }
}

/// Returns the entries on a line: usually one, and several if a crash lost the line end between them. A crash may also
/// leave zeros in a file.
pub(crate) fn entries(
    line: usize,
    text: &[u8],
) -> impl Iterator<Item = serde_json::Result<Entry<'_>>> {
    text.split(|byte| *byte == 0).flat_map(move |piece| {
        let mut rest = piece;
        std::iter::from_fn(move || {
            let text = rest.trim_ascii();
            let mut objects = serde_json::Deserializer::from_slice(text).into_iter();
            let keys = objects.next()?;
            let behind = match keys {
                Ok(_) => text.get(objects.byte_offset()..),
                Err(_) => entry_behind(text),
            };
            rest = behind.unwrap_or_default();
            let text = text.get(..text.len() - rest.len()).unwrap_or_default();
            Some(keys.map(|keys| Entry { line, text, keys }))
        })
    })
}

/// Returns the entry behind one that was cut off: it begins with the same key, and ends with the line.
fn entry_behind(torn: &[u8]) -> Option<&[u8]> {
    let colon = torn.iter().position(|byte| *byte == b':')?;
    let start = torn.get(..=colon)?;
    let starts = torn.windows(start.len()).enumerate().skip(1);
    let mut starts = starts.filter(|(_, text)| *text == start);
    starts.find_map(|(at, _)| {
        let entry = torn.get(at..)?;
        Entry::parse(0, entry).is_ok().then_some(entry)
    })
}
