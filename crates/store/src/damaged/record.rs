//! Records and numbers in SQLite's file format: <https://www.sqlite.org/fileformat2.html>.

/// A value of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RecordValue<'a> {
    Null,
    Integer(i64),
    Text(&'a [u8]),
    Other,
}

/// Returns the number of payload bytes that a row stores on its own page.
pub(super) fn local(length: usize, usable: usize) -> usize {
    let (most, least) = (usable - 35, (usable - 12) * 32 / 255 - 23);
    if length <= most {
        return length;
    }
    match least + (length - least) % (usable - 4) {
        some if some <= most => some,
        _ => least,
    }
}

/// Returns the key and the values of a cell, as far as they are on this page. A text that continues
/// on another page counts as a text.
pub(super) fn record(
    page: &[u8],
    offset: usize,
    is_row: bool,
) -> Option<(i64, Vec<RecordValue<'_>>)> {
    let (length, at) = varint(page, offset)?;
    let (key, at) = if is_row { varint(page, at)? } else { (0, at) };
    let length = usize::try_from(length).ok()?;
    let end = at.checked_add(local(length, page.len()))?;
    Some((key, values(page.get(at..end)?)?))
}

/// Returns the values of a record.
pub(super) fn values(payload: &[u8]) -> Option<Vec<RecordValue<'_>>> {
    let (header, mut at) = varint(payload, 0)?;
    let header = usize::try_from(header).ok()?;
    let mut body = header;
    let mut values = Vec::new();
    while at < header {
        let (kind, next) = varint(payload, at)?;
        at = next;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            12.. => usize::try_from((kind - 12) / 2).ok()?,
            _ => return None,
        };
        let end = body.checked_add(size)?;
        // A value after a text that continues on another page is on that page too.
        let here = payload.len();
        let bytes = payload.get(body.min(here)..end.min(here))?;
        values.push(match kind {
            0 => RecordValue::Null,
            8 => RecordValue::Integer(0),
            9 => RecordValue::Integer(1),
            1..=6 if bytes.len() == size => RecordValue::Integer(signed(bytes)),
            13.. if kind % 2 == 1 => RecordValue::Text(bytes),
            _ => RecordValue::Other,
        });
        body = end;
    }
    Some(values)
}

/// Parses a big-endian integer of one to eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let first = bytes
        .first()
        .map_or(0, |first| i64::from(first.cast_signed()));
    bytes
        .iter()
        .skip(1)
        .fold(first, |number, byte| (number << 8) | i64::from(*byte))
}

/// Parses an integer of one to nine bytes. Returns it with its end.
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut number: u64 = 0;
    for index in 0..9 {
        let byte = *bytes.get(at.checked_add(index)?)?;
        if index == 8 {
            number = (number << 8) | u64::from(byte);
        } else {
            number = (number << 7) | u64::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
        }
        return Some((number.cast_signed(), at + index + 1));
    }
    None
}

pub(super) fn number_at(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| (number << 8) | usize::from(*byte)),
    )
}
