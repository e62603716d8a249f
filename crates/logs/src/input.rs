//! Reads the entries of a log, plain or compressed with gzip or zstd, up to a size limit: the lines of a file, and
//! messages in the list of a document or in the rows of a database.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use plimsoll_foreign::replace_half_characters;
use plimsoll_wire::__internals::RawObject;
use ruzstd::decoding::StreamingDecoder;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::error::LogError;
use crate::opencode;
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryPlace {
    /// The line number, from 1. A document is one line.
    line: u32,
    /// The number of the object on its line, from 0.
    nth: u32,
    /// The number of the message in a list of that object, from 1, or 0 for the object itself.
    message: u32,
}

impl EntryPlace {
    /// Returns the number by which a reader of the log finds the entry: that of the message or the line.
    pub(crate) fn number(self) -> usize {
        match self.message {
            0 => self.line as usize,
            message => message as usize,
        }
    }

    /// Checks whether the entry is in a list of messages.
    pub(crate) fn is_listed(self) -> bool {
        self.message > 0
    }
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_listed() { "message" } else { "line" };
        write!(f, "{name} {}", self.number())
    }
}

/// An entry of a log: the keys of a JSON object, with the raw texts of their values.
pub(crate) struct Entry<'a> {
    pub(crate) place: EntryPlace,
    pub(crate) text: &'a [u8],
    pub(crate) keys: RawObject<'a>,
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

/// A piece of a log.
enum Piece<'a> {
    Entry(Entry<'a>),
    /// A part that is no entry, with its size in bytes, and why.
    Damage(EntryPlace, usize, String),
    /// The number of halves of characters that were replaced in a place.
    Halves(String, usize),
}

/// The file of a session.
pub(crate) struct Source {
    agent: Agent,
    path: PathBuf,
    /// The id in a database. Empty for the newest session.
    session: String,
}

impl Source {
    pub(crate) fn of(log: &SessionLog) -> Self {
        Self {
            agent: log.agent,
            path: log.path.clone(),
            session: log.id.clone(),
        }
    }

    /// Calls `each` with every piece, in the order of the file. Lines that are not wanted are skipped.
    fn for_each(
        &self,
        is_wanted: impl Fn(u32) -> bool,
        each: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), LogError> {
        if self.agent == Agent::Opencode && opencode::is_database(&self.path)? {
            return opencode::for_each_row(&self.path, &self.session, &mut |message, text| {
                let (line, nth) = (1, 0);
                let place = EntryPlace { line, nth, message };
                each(self.piece(place, text.as_bytes()));
            });
        }
        if let Some(mut text) = self.document()? {
            let halves = replace_half_characters(&mut text);
            each(Piece::Halves("the file".to_owned(), halves));
            self.objects(1, &text, each);
            return Ok(());
        }
        self.for_each_line(&is_wanted, each)
    }

    /// Returns the text of a log that is one JSON document over several lines. `None` for other logs.
    fn document(&self) -> Result<Option<Vec<u8>>, LogError> {
        let facts = self.agent.facts();
        if facts.lists.is_empty() {
            return Ok(None);
        }
        let failed = LogError::read(&self.path);
        let mut input = open(&self.path)?;
        let mut text = Vec::new();
        let first = input
            .by_ref()
            .take(MAX_LINE + 1)
            .read_until(b'\n', &mut text);
        first.map_err(&failed)?;
        let is_json = |text: &[u8]| serde_json::from_slice::<IgnoredAny>(text).is_ok();
        without_mark(&mut text);
        if is_json(&text) {
            return Ok(None);
        }
        input
            .take(MAX_LOG + 1)
            .read_to_end(&mut text)
            .map_err(&failed)?;
        if text.len() as u64 > MAX_LOG {
            return Err(failed(too_large()));
        }
        Ok((facts.is_document || is_json(&text)).then_some(text))
    }

    /// Calls `each` with the pieces of each line. A line above [`MAX_LINE`] is damage.
    fn for_each_line(
        &self,
        is_wanted: &dyn Fn(u32) -> bool,
        each: &mut dyn FnMut(Piece<'_>),
    ) -> Result<(), LogError> {
        let failed = LogError::read(&self.path);
        let mut input = open(&self.path)?;
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let mut bounded = input.by_ref().take(MAX_LINE + 1);
            if bounded.read_until(b'\n', &mut text).map_err(&failed)? == 0 {
                break;
            }
            if text.len() as u64 > MAX_LINE && text.last() != Some(&b'\n') {
                let place = EntryPlace {
                    line,
                    ..EntryPlace::default()
                };
                let bytes = text.len() + input.skip_until(b'\n').map_err(&failed)?;
                let what = format!("longer than {MAX_LINE} bytes");
                each(Piece::Damage(place, bytes, what));
                continue;
            }
            if !is_wanted(line) {
                continue;
            }
            if line == 1 {
                without_mark(&mut text);
            }
            let halves = replace_half_characters(&mut text);
            if halves > 0 {
                each(Piece::Halves(format!("line {line}"), halves));
            }
            self.objects(line, &text, each);
        }
        Ok(())
    }

    /// Calls `each` with the objects on a line, and the messages in their lists: usually one object, and several if a
    /// crash lost the line end between them.
    fn objects(&self, line: u32, text: &[u8], each: &mut dyn FnMut(Piece<'_>)) {
        let lists = &self.agent.facts().lists;
        let mut rest = text;
        for nth in 0.. {
            let text = trimmed(rest);
            let mut objects = serde_json::Deserializer::from_slice(text).into_iter();
            let Some(keys) = objects.next() else { return };
            let behind = match keys {
                Ok(_) => text.get(objects.byte_offset()..),
                Err(_) => entry_behind(text),
            };
            rest = behind.unwrap_or_default();
            let text = text.get(..text.len() - rest.len()).unwrap_or_default();
            let message = 0;
            let place = EntryPlace { line, nth, message };
            let keys: serde_json::Result<RawObject<'_>> = keys;
            let list = keys.as_ref().ok().and_then(|keys| {
                let mut lists = lists.iter().filter_map(|list| nested(keys, list));
                lists.find_map(|list| serde_json::from_str(list).ok())
            });
            let list: Vec<&RawValue> = list.unwrap_or_default();
            each(self.parsed(place, text, keys));
            for (message, raw) in (1..).zip(list) {
                let place = EntryPlace { message, ..place };
                each(self.piece(place, raw.get().as_bytes()));
            }
        }
    }

    fn piece<'t>(&self, place: EntryPlace, text: &'t [u8]) -> Piece<'t> {
        self.parsed(place, text, serde_json::from_slice(text))
    }

    fn parsed<'t>(
        &self,
        place: EntryPlace,
        text: &'t [u8],
        keys: serde_json::Result<RawObject<'t>>,
    ) -> Piece<'t> {
        match keys {
            Ok(keys) => Piece::Entry(Entry { place, text, keys }),
            Err(error) if error.is_eof() => {
                Piece::Damage(place, text.len(), "cut off in the middle".to_owned())
            }
            Err(error) => {
                let agent = self.agent.title();
                let what = format!("not an entry of {agent}: {error}");
                Piece::Damage(place, text.len(), what)
            }
        }
    }
}

/// Calls `each` with every entry. Anything else is damage. The messages in a list follow the entry that contains it.
pub(crate) fn for_each_entry(
    log: &mut SessionLog,
    mut each: impl FnMut(&mut SessionLog, &Entry<'_>),
) -> Result<(), LogError> {
    Source::of(log).for_each(|_| true, &mut |piece| match piece {
        Piece::Entry(entry) => each(log, &entry),
        Piece::Halves(place, count) => log.replaced(count, place),
        Piece::Damage(place, bytes, why) => log.damaged(place, bytes, why),
    })
}

/// Returns the place of the last entry of this kind.
pub(crate) fn newest_place(
    log: &SessionLog,
    is_wanted: impl Fn(&Entry<'_>) -> bool,
) -> Result<Option<EntryPlace>, LogError> {
    let mut newest = None;
    Source::of(log).for_each(|_| true, &mut |piece| match piece {
        Piece::Entry(entry) if is_wanted(&entry) => newest = Some(entry.place),
        _ => {}
    })?;
    Ok(newest)
}

/// Reads entries again, in the order of `places`, in which one may occur several times. Calls `each` with the number
/// of the place, and the entry, or `None` if it is not there any more. Keeps only entries whose turn has not come.
pub(crate) fn for_each_again(
    source: &Source,
    places: &[EntryPlace],
    mut each: impl FnMut(usize, Option<&Entry<'_>>),
) -> Result<(), LogError> {
    let mut last_uses: HashMap<EntryPlace, usize> = HashMap::new();
    last_uses.extend(places.iter().enumerate().map(|(at, place)| (*place, at)));
    let mut waiting: HashMap<EntryPlace, Vec<u8>> = HashMap::new();
    let lines: HashSet<u32> = places.iter().map(|place| place.line).collect();
    let mut next = 0;
    source.for_each(|line| lines.contains(&line), &mut |piece| {
        let Piece::Entry(entry) = piece else { return };
        let Some(last) = last_uses.get(&entry.place) else {
            return;
        };
        while places.get(next) == Some(&entry.place) {
            each(next, Some(&entry));
            next += 1;
        }
        if next <= *last {
            waiting.insert(entry.place, entry.text.to_vec());
        }
        while let Some(place) = places.get(next)
            && let Some(text) = waiting.get(place)
        {
            each(next, entry_of(*place, text).as_ref());
            if last_uses.get(place) == Some(&next) {
                waiting.remove(place);
            }
            next += 1;
        }
    })?;
    for (at, place) in places.iter().enumerate().skip(next) {
        let text = waiting.get(place);
        each(at, text.and_then(|text| entry_of(*place, text)).as_ref());
    }
    Ok(())
}

fn entry_of(place: EntryPlace, text: &[u8]) -> Option<Entry<'_>> {
    let keys = serde_json::from_slice(text).ok()?;
    Some(Entry { place, text, keys })
}

/// Returns the raw text of a value. `a.b` is a key of an object.
fn nested<'a>(keys: &RawObject<'a>, path: &str) -> Option<&'a str> {
    let Some((outer, key)) = path.split_once('.') else {
        return keys.get(path);
    };
    let outer: RawObject<'a> = serde_json::from_str(keys.get(outer)?).ok()?;
    outer.get(key)
}

fn without_mark(text: &mut Vec<u8>) {
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
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
