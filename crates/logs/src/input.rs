//! [`LogFile`]: the entries of a log, plain or compressed with gzip or zstd, up to a size limit. They are the lines of
//! a file, and messages in the list of a document or in the rows of a database. Each can be read again by its place.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;
use memchr::memmem;
use plimsoll_foreign::replace_half_characters;
use plimsoll_wire::__internals::RawObject;
use ruzstd::decoding::StreamingDecoder;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::detect::{HEAD, SQLITE, detect};
use crate::error::LogError;
use crate::opencode;
use crate::session::SessionLog;

/// The maximum size of a log, in bytes after decompression. Logs of very long sessions have 200 MB.
pub const MAX_LOG: u64 = 1024 * 1024 * 1024;
/// The maximum length of a line, in bytes. A longer line is skipped as damaged.
pub const MAX_LINE: u64 = 64 * 1024 * 1024;

/// The maximum length of the first key of an entry, in bytes.
const MAX_KEY: usize = 256;
/// The maximum number of bytes that are parsed to find the entry behind one that was cut off.
const MAX_SEARCHED: usize = 2 * MAX_LINE as usize;
/// The first bytes of compressed files, and the programs that unpack them.
const PACKED: [(&[u8], &str); 2] = [(&[0x1f, 0x8b], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd")];
/// Editors of Windows put it before the text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Decompresses an input if its first bytes indicate a compression format. A small input may become a very large one.
///
/// # Errors
///
/// Those of the input. Reading a compressed one fails if it is cut off or damaged.
pub fn unpack(mut input: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    Ok(match unpacker(input.fill_buf()?) {
        Some("gzip") => Box::new(BufReader::new(Unpacked(MultiGzDecoder::new(input)))),
        Some(_) => {
            let decoder = StreamingDecoder::new(input);
            let decoder = decoder.map_err(|error| cut(ErrorKind::InvalidData, &error))?;
            Box::new(BufReader::new(Unpacked(decoder)))
        }
        None => Box::new(input),
    })
}

/// Returns the program that unpacks a file which begins with these bytes. `None` for a file that is not compressed.
fn unpacker(start: &[u8]) -> Option<&'static str> {
    let mut packed = PACKED.into_iter();
    let of = packed.find(|(bytes, _)| start.starts_with(bytes));
    of.map(|(_, program)| program)
}

/// Returns the error for a log that was changed while it was read.
pub(crate) fn changed() -> io::Error {
    let words = "the log was changed while it was read; try again when its agent has stopped";
    io::Error::new(ErrorKind::InvalidData, words)
}

/// Returns the error for a log that cannot be unpacked.
fn not_unpacked(error: io::Error) -> io::Error {
    let words = format!(
        "its unpacked content needs a temporary file ({error}); set TMPDIR to a folder with room for it"
    );
    io::Error::new(error.kind(), words)
}

/// Returns the error for a log over [`MAX_LOG`].
fn too_large(unpacker: Option<&str>) -> io::Error {
    let newest = match unpacker {
        Some(program) => format!("{program} -dc FILE | tail -c 500M"),
        None => "tail -c 500M FILE".to_owned(),
    };
    io::Error::other(format!(
        "it has more than {MAX_LOG} bytes, which is the limit; take its newest part with \
         `{newest} > part.jsonl` and rescue that"
    ))
}

/// A decoder whose errors name their cause.
struct Unpacked<R>(R);

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer);
        read.map_err(|error| cut(error.kind(), &error))
    }
}

fn cut(kind: ErrorKind, error: &dyn fmt::Display) -> io::Error {
    let words =
        format!("the compressed file is cut off or damaged ({error}); copy or download it again");
    io::Error::new(kind, words)
}

/// The place of an entry in a log.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EntryPlace {
    /// The position of its first byte in the file.
    offset: u64,
    pub(crate) bytes: usize,
    /// The number by which a reader of the log finds it: that of the line, or of the message in a list, from 1. A
    /// document is one line.
    pub(crate) number: usize,
    /// Whether it is in a list of messages.
    pub(crate) is_listed: bool,
}

impl EntryPlace {
    /// Returns the place of a part of the text that begins here.
    fn of_part(self, text: &[u8], part: &[u8]) -> Self {
        let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        Self {
            offset: self.offset + offset as u64,
            bytes: part.len(),
            ..self
        }
    }
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_listed { "message" } else { "line" };
        write!(f, "{name} {}", self.number)
    }
}

/// An entry of a log: the keys of a JSON object, with the raw texts of their values.
pub(crate) struct Entry<'a> {
    pub(crate) place: EntryPlace,
    pub(crate) text: &'a [u8],
    pub(crate) keys: RawObject<'a>,
}

impl<'a> Entry<'a> {
    /// Parses the text of an entry.
    pub(crate) fn parse(place: EntryPlace, text: &'a [u8]) -> serde_json::Result<Self> {
        let keys = serde_json::from_slice(text)?;
        Ok(Self { place, text, keys })
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

/// Takes an entry of a log.
type Each<'e> = &'e mut dyn FnMut(&mut SessionLog, &Entry<'_>);

/// The file of a session, not compressed.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) agent: Agent,
    file: File,
    /// Whether its lines are a session of a database: its data, and then its messages.
    is_session: bool,
}

impl LogFile {
    /// Opens a log. A compressed log, a pipe, and a session in a database become a temporary file without a name.
    pub(crate) fn open(path: &Path, session: Option<&str>) -> Result<Self, LogError> {
        let failed = LogError::read(path);
        let mut file = File::open(path).map_err(&failed)?;
        let metadata = file.metadata().map_err(&failed)?;
        let mut packed = BufReader::new(file.try_clone().map_err(&failed)?);
        let start = packed.fill_buf().map_err(&failed)?;
        let (unpacker, is_session) = (unpacker(start), start.starts_with(SQLITE));
        // The other sessions of a database do not count.
        if metadata.len() > MAX_LOG && !is_session {
            return Err(failed(too_large(unpacker)));
        }
        let mut input = unpack(packed).map_err(&failed)?.take(MAX_LOG + 1);
        let mut head = Vec::new();
        let read = input.by_ref().take(HEAD as u64).read_to_end(&mut head);
        read.map_err(&failed)?;
        let agent = detect(&head).ok_or_else(|| LogError::Unknown {
            path: path.to_owned(),
        })?;
        if is_session || unpacker.is_some() || !metadata.is_file() {
            let no_file = |error| failed(not_unpacked(error));
            file = tempfile::tempfile().map_err(no_file)?;
            let mut out = BufWriter::new(&file);
            if is_session {
                opencode::write_rows(path, session.unwrap_or_default(), &mut out)?;
            } else {
                out.write_all(&head).map_err(no_file)?;
                loop {
                    let piece = input.fill_buf().map_err(&failed)?;
                    let read = piece.len();
                    if read == 0 {
                        break;
                    }
                    out.write_all(piece).map_err(no_file)?;
                    input.consume(read);
                }
                if input.limit() == 0 {
                    return Err(failed(too_large(unpacker)));
                }
            }
            out.flush().map_err(no_file)?;
        }
        Ok(Self {
            agent,
            file,
            is_session,
        })
    }

    /// Reads the text of an entry again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidData`] if the file was changed before it: no entry stands there any more.
    pub(crate) fn text(&self, place: EntryPlace) -> io::Result<Vec<u8>> {
        let mut text = vec![0; place.bytes];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(place.offset))?;
        let read = file.read_exact(&mut text);
        read.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        if text.first() != Some(&b'{') || text.last() != Some(&b'}') {
            return Err(changed());
        }
        replace_half_characters(&mut text);
        replace_invalid_bytes(&mut text);
        Ok(text)
    }

    /// Reads the entries in the order of the file. A line above [`MAX_LINE`] is damage.
    fn read(&self, log: &mut SessionLog, each: Each<'_>) -> io::Result<()> {
        let mut place = EntryPlace::default();
        if let Some(mut text) = self.document()? {
            place.number = 1;
            log.replaced(&mut text, "the file");
            self.objects(place, &text, log, each);
            return Ok(());
        }
        let mut input = self.input()?;
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            place.offset += place.bytes as u64;
            place.number = line - usize::from(self.is_session);
            place.is_listed = self.is_session && line > 1;
            let mut bounded = input.by_ref().take(MAX_LINE + 1);
            place.bytes = bounded.read_until(b'\n', &mut text)?;
            if place.bytes == 0 {
                break;
            }
            if text.len() as u64 > MAX_LINE && text.last() != Some(&b'\n') {
                place.bytes += input.skip_until(b'\n')?;
                let what = format!("longer than {MAX_LINE} bytes");
                log.damaged(place, place.bytes, what);
                continue;
            }
            log.replaced(&mut text, format_args!("line {line}"));
            self.objects(place, &text, log, each);
        }
        Ok(())
    }

    fn input(&self) -> io::Result<BufReader<&File>> {
        let mut file = &self.file;
        file.rewind()?;
        Ok(BufReader::new(file))
    }

    /// Returns the text of a log that is one JSON document over several lines. `None` for other logs.
    fn document(&self) -> io::Result<Option<Vec<u8>>> {
        let facts = self.agent.facts();
        if facts.lists.is_empty() {
            return Ok(None);
        }
        let mut input = self.input()?;
        let mut text = Vec::new();
        let mut first = input.by_ref().take(MAX_LINE + 1);
        first.read_until(b'\n', &mut text)?;
        let is_json =
            |text: &[u8]| serde_json::from_slice::<IgnoredAny>(without_mark(text)).is_ok();
        if is_json(&text) {
            return Ok(None);
        }
        input.take(MAX_LOG).read_to_end(&mut text)?;
        Ok((facts.is_document || is_json(&text)).then_some(text))
    }

    /// Reads the objects in a text, and the messages in their lists. A line is usually one object, and several if a
    /// crash lost the line end between them.
    fn objects(&self, place: EntryPlace, whole: &[u8], log: &mut SessionLog, each: Each<'_>) {
        let lists = &self.agent.facts().lists;
        let mut rest = without_mark(whole);
        let mut damage = Some("left out the byte order mark before it").filter(|_| rest != whole);
        loop {
            let (zeros, text) = trimmed(rest);
            if zeros {
                damage = Some("left out zeros beside it");
            }
            let mut objects = serde_json::Deserializer::from_slice(text).into_iter();
            let Some(keys) = objects.next() else { return };
            let keys: serde_json::Result<RawObject<'_>> = keys;
            // Its agent does not read such a line.
            if let Some(damage) = damage.filter(|_| keys.is_ok()) {
                log.repaired(place, damage);
            }
            damage = Some("wrote it on a line of its own");
            let behind = match keys {
                Ok(_) => text.get(objects.byte_offset()..),
                Err(_) => entry_behind(text),
            };
            rest = behind.unwrap_or_default();
            let text = text.get(..text.len() - rest.len()).unwrap_or_default();
            let list = keys.as_ref().ok().and_then(|keys| {
                let mut lists = lists.iter().filter_map(|list| nested(keys, list));
                lists.find_map(|list| serde_json::from_str(list).ok())
            });
            let list: Vec<&RawValue> = list.unwrap_or_default();
            let place = place.of_part(whole, text);
            log.take(place, keys.map(|keys| Entry { place, text, keys }), each);
            for (number, raw) in (1..).zip(list) {
                let raw = raw.get().as_bytes();
                let place = EntryPlace {
                    number,
                    is_listed: true,
                    ..place.of_part(text, raw)
                };
                log.take(place, Entry::parse(place, raw), each);
            }
        }
    }
}

/// Calls `each` with every entry. Anything else is damage. The messages in a list follow the entry that contains it.
pub(crate) fn for_each_entry(
    log: &mut SessionLog,
    mut each: impl FnMut(&mut SessionLog, &Entry<'_>),
) -> Result<(), LogError> {
    let read = Arc::clone(&log.file).read(log, &mut each);
    read.map_err(LogError::read(&log.path))
}

/// Returns the raw text of a value. `a.b` is a key of an object.
fn nested<'a>(keys: &RawObject<'a>, path: &str) -> Option<&'a str> {
    let Some((outer, key)) = path.split_once('.') else {
        return keys.get(path);
    };
    let outer: RawObject<'a> = serde_json::from_str(keys.get(outer)?).ok()?;
    outer.get(key)
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Returns the entry behind one that was cut off: it begins with the same key, and ends with the line.
fn entry_behind(torn: &[u8]) -> Option<&[u8]> {
    let start = torn.get(..MAX_KEY.min(torn.len()))?;
    let start = start.get(..=start.iter().position(|byte| *byte == b':')?)?;
    let mut left = MAX_SEARCHED;
    let starts = memmem::find_iter(torn, start).skip(1);
    let mut entries = starts.map_while(|at| {
        let entry = torn.get(at..)?;
        left = left.checked_sub(entry.len())?;
        Some(entry)
    });
    entries.find(|entry| {
        let parsed: serde_json::Result<RawObject<'_>> = serde_json::from_slice(entry);
        parsed.is_ok()
    })
}

/// Returns a text without white space and zeros around it, and whether there were zeros. A crash may leave them in a
/// file.
fn trimmed(text: &[u8]) -> (bool, &[u8]) {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    let (blank, text) = text.split_at(start);
    let end = text.iter().rposition(|byte| !is_blank(byte));
    let (text, behind) = text.split_at(end.map_or(0, |at| at + 1));
    (blank.contains(&0) || behind.contains(&0), text)
}

/// Replaces each byte that is no UTF-8, so that everything else keeps its place. Returns their number.
pub(crate) fn replace_invalid_bytes(text: &mut [u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(Err(error)) = text.get(at..).map(std::str::from_utf8) {
        let start = at + error.valid_up_to();
        at = error
            .error_len()
            .map_or(text.len(), |length| start + length);
        text.get_mut(start..at).unwrap_or_default().fill(b'?');
        count += at - start;
    }
    count
}
