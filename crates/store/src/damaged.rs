//! Reads the logs of a damaged file, page by page and without SQLite.
//!
//! SQLite finds an entry through the pages above it, so one damaged page can hide intact entries.
//! Here every page that holds rows is read by itself: a row is readable if its own page is. The
//! formats of the file and of the write-ahead log beside it are described in
//! <https://www.sqlite.org/fileformat2.html>.

mod record;

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use plimsoll_context::{Bytes, Seq};
use plimsoll_core::{Fork, MAX_FORK_DEPTH, SessionId, SessionInfo, StoreError};

use crate::columns::{ALTERED, from_column};
use crate::fault;
use crate::read::{PAGE_BYTES, PAGE_ENTRIES, Raw, bad_entry};
use crate::write::MAX_ENTRY;
use record::{RecordValue, local, number_at, record, values, varint};

/// The page size of a file whose header is damaged: SQLite's default, which the store never
/// changes.
const PAGE_SIZE: usize = 4096;
/// The sizes in bytes of the headers of a write-ahead log and of a page in it.
const WAL_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first bytes of pages that hold rows of a table and entries of an index.
const TABLE_LEAF: u8 = 0x0d;
const INDEX_LEAF: u8 = 0x0a;

/// The file of a store, opened as a plain file at most once and never closed while the store is
/// open: closing it would drop the locks that SQLite holds on it for the whole process.
#[derive(Debug, Clone)]
pub(crate) struct DamagedFile {
    path: Arc<Path>,
    state: Arc<Mutex<ScanState>>,
}

#[derive(Debug, Default)]
struct ScanState {
    file: Option<File>,
    /// The last scan, and the state of the files at that time.
    scan: Option<(Stamp, RowLocations)>,
}

/// The size and time of both files. Changes whenever one of the files does.
type Stamp = [Option<(u64, SystemTime)>; 2];

/// The locations of all rows.
#[derive(Debug, Default)]
struct RowLocations {
    pages: Pages,
    /// Sessions by their keys.
    sessions: BTreeMap<i64, SessionRow>,
    /// The place of each entry, by its session and its number.
    entries: BTreeMap<(i64, u64), CellPosition>,
    /// The number of the last entry of each session, from an index. It may be known although the
    /// entry and the row of the session are lost.
    last: BTreeMap<i64, u64>,
}

/// The location of the newest version of each page.
#[derive(Debug, Default)]
struct Pages {
    size: usize,
    count: u32,
    /// The pages in the write-ahead log, and their offsets there.
    wal: HashMap<u32, u64>,
    wal_path: PathBuf,
}

/// A row of the table `sessions`. A lost row is known by its key and, from an index, its name.
#[derive(Debug)]
struct SessionRow {
    id: SessionId,
    created: u64,
    updated: u64,
    title: String,
    /// `None` if the row is lost.
    entries: Option<u64>,
    parent: Option<(i64, u64, Seq)>,
    bytes: Bytes,
}

/// A cell of a page.
#[derive(Debug, Clone, Copy)]
struct CellPosition {
    page: u32,
    offset: usize,
}

impl DamagedFile {
    pub(crate) fn new(path: &Arc<Path>) -> Self {
        Self {
            path: Arc::clone(path),
            state: Arc::default(),
        }
    }

    /// Returns `true` if the file had to be read page by page.
    pub(crate) fn was_read(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.scan.is_some()
    }

    /// Returns the sessions that can be found, most recently written first. `None` if there are
    /// none.
    pub(crate) fn sessions(&self) -> Result<Option<Vec<SessionInfo>>, StoreError> {
        self.scanned(|scan, _| {
            let keys = scan.sessions.keys();
            let mut sessions: Vec<SessionInfo> = keys.filter_map(|key| scan.info(*key)).collect();
            sessions.sort_by_key(|info| Reverse(info.updated));
            Ok((!sessions.is_empty()).then_some(sessions))
        })
    }

    /// Checks whether the number of entries of a session is known.
    pub(crate) fn knows_length(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.scanned(|scan, _| {
            let row = scan.sessions.values().find(|row| row.id == *session);
            Ok(row.is_some_and(|row| row.entries.is_some()))
        })
    }

    /// Returns the entries after number `after`, like [`crate::read::page`]. `None` if nothing of
    /// the session can be found.
    pub(crate) fn page(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Option<Vec<Raw>>, StoreError> {
        self.scanned(|scan, file| {
            let found = scan.sessions.iter().find(|(_, row)| row.id == *session);
            let Some((key, _)) = found else {
                return Ok(None);
            };
            let (mut page, mut bytes) = (Vec::new(), 0);
            for n in after.saturating_add(1)..=scan.length(*key) {
                let raw = match scan.whole_entry(file, *key, n) {
                    Ok(raw) => raw,
                    Err(why) if page.is_empty() => {
                        return Err(bad_entry(&self.path, session, n, why));
                    }
                    Err(_) => break,
                };
                bytes += raw.json.len() as u64;
                if !page.is_empty() && bytes > PAGE_BYTES.0 {
                    break;
                }
                page.push(raw);
                if page.len() == PAGE_ENTRIES {
                    break;
                }
            }
            Ok(Some(page))
        })
    }

    /// Returns the number of the first entry after `after` that has a row, readable or not.
    pub(crate) fn next_entry(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Option<u64>, StoreError> {
        self.scanned(|scan, _| {
            let found = scan.sessions.iter().find(|(_, row)| row.id == *session);
            let (mut key, mut last) = (found.map(|(key, _)| *key), u64::MAX);
            let mut next = None;
            for _ in 0..=MAX_FORK_DEPTH {
                let Some(of) = key else { break };
                let parent = scan.sessions.get(&of).and_then(|row| row.parent);
                let shared = parent.map_or(0, |(_, shared, _)| shared);
                // Its own entries follow the shared ones.
                let from = after.max(shared).saturating_add(1);
                if from <= last {
                    let mut rows = scan.entries.range((of, from)..=(of, last));
                    next = rows.next().map(|((_, n), _)| *n).or(next);
                }
                last = last.min(shared);
                key = parent.map(|(parent, ..)| parent);
            }
            Ok(next)
        })
    }

    /// Runs `work` with a scan of the current files.
    fn scanned<T>(
        &self,
        work: impl FnOnce(&RowLocations, &File) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ScanState { file, scan } = &mut *state;
        let fault = fault::io(&self.path);
        let file = match file {
            Some(file) => file,
            none => none.insert(File::open(&self.path).map_err(&fault)?),
        };
        let wal = sibling_path(&self.path);
        let now = [&*self.path, &wal].map(|path| {
            let file = fs::metadata(path).ok()?;
            Some((file.len(), file.modified().ok()?))
        });
        let (_, scan) = match scan.take().filter(|(stamp, _)| *stamp == now) {
            Some(had) => scan.insert(had),
            None => scan.insert((now, RowLocations::new(file, wal).map_err(&fault)?)),
        };
        work(scan, file)
    }
}

impl RowLocations {
    fn new(file: &File, wal: PathBuf) -> io::Result<Self> {
        let mut scan = Self {
            pages: Pages::new(file, wal)?,
            ..Self::default()
        };
        let mut names = BTreeMap::new();
        for number in 1..=scan.pages.count {
            let Some(page) = scan.pages.read(file, number) else {
                continue;
            };
            scan.take(number, &page, &mut names);
        }
        // Sessions whose rows are lost: their names may still be in an index, or their entries may
        // exist.
        let keys: Vec<i64> = scan.entries.keys().map(|(key, _)| *key).collect();
        for key in names.keys().copied().chain(keys) {
            let id = names.get(&key).cloned().or_else(|| nameless(key));
            if let (Some(id), Entry::Vacant(place)) = (id, scan.sessions.entry(key)) {
                place.insert(SessionRow {
                    id,
                    created: 0,
                    updated: 0,
                    title: String::new(),
                    entries: None,
                    parent: None,
                    bytes: Bytes(0),
                });
            }
        }
        Ok(scan)
    }

    /// Adds the rows of one page.
    fn take(&mut self, number: u32, page: &[u8], names: &mut BTreeMap<i64, SessionId>) {
        // The first page begins with the header of the file.
        let start = if number == 1 { 100 } else { 0 };
        let kind = page.get(start).copied();
        if !matches!(kind, Some(TABLE_LEAF | INDEX_LEAF)) {
            return;
        }
        let cells = number_at(page, start + 3, 2).unwrap_or(0);
        for cell in 0..cells {
            let at = start + 8 + 2 * cell;
            let Some(offset) = number_at(page, at, 2) else {
                return;
            };
            let Some((key, values)) = record(page, offset, kind == Some(TABLE_LEAF)) else {
                continue;
            };
            let place = CellPosition {
                page: number,
                offset,
            };
            match (kind, values.as_slice()) {
                (
                    Some(TABLE_LEAF),
                    [
                        RecordValue::Null,
                        RecordValue::Integer(session),
                        RecordValue::Integer(n),
                        RecordValue::Integer(_),
                        RecordValue::Text(_),
                        // The checksum.
                        _,
                    ],
                ) => {
                    self.entries.insert((*session, from_column(*n)), place);
                }
                (
                    Some(TABLE_LEAF),
                    [
                        RecordValue::Null,
                        RecordValue::Text(id),
                        RecordValue::Integer(created),
                        RecordValue::Integer(updated),
                        title,
                        RecordValue::Integer(entries),
                        RecordValue::Integer(_),
                        parent,
                        RecordValue::Integer(shared),
                        RecordValue::Integer(items),
                        // Distinguishes the log from others of its name.
                        _,
                        RecordValue::Integer(bytes),
                    ],
                ) => {
                    let Some(id) = name(id) else { continue };
                    let title = match title {
                        RecordValue::Text(title) => String::from_utf8_lossy(title).into_owned(),
                        _ => String::new(),
                    };
                    let parent = match parent {
                        RecordValue::Integer(parent) => {
                            Some((*parent, from_column(*shared), Seq(from_column(*items))))
                        }
                        _ => None,
                    };
                    let row = SessionRow {
                        id,
                        created: from_column(*created),
                        updated: from_column(*updated),
                        title,
                        entries: Some(from_column(*entries)),
                        parent,
                        bytes: Bytes(from_column(*bytes)),
                    };
                    // A page that is no longer in use may contain an older version of a row.
                    let had = self.sessions.get(&key);
                    if had.is_none_or(|had| had.entries <= row.entries) {
                        self.sessions.insert(key, row);
                    }
                }
                (
                    Some(INDEX_LEAF),
                    [
                        RecordValue::Integer(session),
                        RecordValue::Integer(n),
                        RecordValue::Integer(_),
                    ],
                ) => {
                    let last = self.last.entry(*session).or_default();
                    *last = from_column(*n).max(*last);
                }
                (Some(INDEX_LEAF), [RecordValue::Text(id), RecordValue::Integer(key)]) => {
                    names.extend(name(id).map(|id| (*key, id)));
                }
                _ => {}
            }
        }
    }

    /// Returns the number of a session's entries: from its row, or the last known entry.
    fn length(&self, key: i64) -> u64 {
        let row = self.sessions.get(&key).and_then(|row| row.entries);
        let mut own = self.entries.range((key, 0)..=(key, u64::MAX));
        let own = own.next_back().map(|((_, n), _)| *n);
        let indexed = self.last.get(&key).copied();
        [row, own, indexed].into_iter().flatten().max().unwrap_or(0)
    }

    fn info(&self, key: i64) -> Option<SessionInfo> {
        let row = self.sessions.get(&key)?;
        let fork = row.parent.and_then(|(parent, entries, items)| {
            let from = self.sessions.get(&parent)?.id.clone();
            Some(Fork {
                from,
                entries,
                items,
            })
        });
        Some(SessionInfo {
            id: row.id.clone(),
            created: row.created,
            updated: row.updated,
            entries: self.length(key),
            bytes: row.bytes,
            title: row.title.clone(),
            fork,
        })
    }

    /// Reads an unaltered entry, or returns the reason why it cannot be read.
    fn whole_entry(&self, file: &File, key: i64, n: u64) -> Result<Raw, &'static str> {
        let raw = self.entry(file, key, n);
        // A text that is cut short by its page is not an entry.
        let is_whole = |(raw, _): &(Raw, i64)| {
            serde_json::from_slice::<serde::de::IgnoredAny>(&raw.json).is_ok()
        };
        let (raw, sum) = raw.filter(is_whole).ok_or("its page is damaged")?;
        if raw.matches(sum) {
            Ok(raw)
        } else {
            Err(ALTERED)
        }
    }

    /// Reads an entry and its checksum, of a session or of a session that it was forked from.
    fn entry(&self, file: &File, mut key: i64, n: u64) -> Option<(Raw, i64)> {
        for _ in 0..=MAX_FORK_DEPTH {
            match self.sessions.get(&key).and_then(|row| row.parent) {
                Some((parent, shared, _)) if n <= shared => key = parent,
                _ => break,
            }
        }
        let place = self.entries.get(&(key, n))?;
        let page = self.pages.read(file, place.page)?;
        let payload = self.pages.payload(file, &page, place.offset)?;
        let values = values(&payload)?;
        match values.as_slice() {
            [
                _,
                _,
                RecordValue::Integer(number),
                RecordValue::Integer(at),
                RecordValue::Text(json),
                RecordValue::Integer(sum),
            ] if from_column(*number) == n => {
                let (at, json) = (from_column(*at), json.to_vec());
                Some((Raw { n, at, json }, *sum))
            }
            _ => None,
        }
    }
}

impl Pages {
    fn new(file: &File, wal_path: PathBuf) -> io::Result<Self> {
        let mut header = [0; 100];
        let read = read_at(file, 0, &mut header);
        let size = match number_at(&header, 16, 2) {
            Some(1) => 65_536,
            Some(size) if size >= 512 && size.is_power_of_two() => size,
            _ => PAGE_SIZE,
        };
        let size = if read.is_ok() && header.starts_with(b"SQLite format 3\0") {
            size
        } else {
            PAGE_SIZE
        };
        let count = file.metadata()?.len().div_ceil(size as u64);
        let mut pages = Self {
            size,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            wal: HashMap::new(),
            wal_path,
        };
        pages.read_wal();
        Ok(pages)
    }

    /// Finds the pages that are newer in the write-ahead log, of complete transactions only.
    fn read_wal(&mut self) -> Option<()> {
        let wal = File::open(&self.wal_path).ok()?;
        let mut header = [0; WAL_HEADER];
        read_at(&wal, 0, &mut header).ok()?;
        (number_at(&header, 8, 4)? == self.size).then_some(())?;
        let salts = header.get(16..24)?;
        let mut pending = Vec::new();
        let mut at = WAL_HEADER as u64;
        let mut frame = [0; FRAME_HEADER];
        while read_at(&wal, at, &mut frame).is_ok() && frame.get(8..16) == Some(salts) {
            let page = u32::try_from(number_at(&frame, 0, 4)?).ok()?;
            pending.push((page, at + FRAME_HEADER as u64));
            if let Some(count @ 1..) = number_at(&frame, 4, 4) {
                self.wal.extend(pending.drain(..));
                self.count = self.count.max(u32::try_from(count).ok()?);
            }
            at += (FRAME_HEADER + self.size) as u64;
        }
        Some(())
    }

    fn read(&self, file: &File, number: u32) -> Option<Vec<u8>> {
        let mut page = vec![0; self.size];
        if let Some(at) = self.wal.get(&number) {
            read_at(&File::open(&self.wal_path).ok()?, *at, &mut page).ok()?;
            return Some(page);
        }
        let at = u64::from(number.checked_sub(1)?) * self.size as u64;
        read_at(file, at, &mut page).ok()?;
        Some(page)
    }

    /// Returns the whole payload of a row, including its part on other pages.
    fn payload(&self, file: &File, page: &[u8], offset: usize) -> Option<Vec<u8>> {
        let (length, at) = varint(page, offset)?;
        let (_, at) = varint(page, at)?;
        let length = usize::try_from(length).ok()?;
        if length as u64 > MAX_ENTRY.0.saturating_add(PAGE_SIZE as u64) {
            return None;
        }
        let local = local(length, self.size);
        let mut payload = page.get(at..at.checked_add(local)?)?.to_vec();
        let mut next = if local < length {
            number_at(page, at + local, 4)?
        } else {
            0
        };
        while payload.len() < length {
            let more = self.read(file, u32::try_from(next).ok().filter(|next| *next > 0)?)?;
            next = number_at(&more, 0, 4)?;
            let rest = length - payload.len();
            payload.extend_from_slice(more.get(4..self.size.min(rest + 4))?);
        }
        Some(payload)
    }
}

fn read_at(mut file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(into)
}

fn name(text: &[u8]) -> Option<SessionId> {
    SessionId::new(std::str::from_utf8(text).ok()?).ok()
}

/// Returns the name for a session whose name is lost.
fn nameless(key: i64) -> Option<SessionId> {
    SessionId::new(format!("lost-{key}")).ok()
}

fn sibling_path(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}
