//! Opens regular files, and distinguishes text from binary data. Never blocks on a FIFO or a device.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};

use plimsoll_context::Bytes;
use plimsoll_core::ToolError;

use crate::safe_open;
use crate::scope::{LocatedPath, Scope};

/// Number of bytes that are read to decide whether a file is text.
pub(crate) const SNIFFED: usize = 8 * 1024;

/// Kinds of binary files by their first bytes.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x7fELF", "an ELF program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"MZ", "a Windows program"),
    (b"\0asm", "a WebAssembly program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"GGUF", "model weights"),
];

/// Opens a regular file of the workspace for reading. Returns it with its length.
pub(crate) fn open(scope: &Scope, file: &LocatedPath) -> Result<(File, u64), ToolError> {
    let shown = scope.shown(file);
    let failed = |error: io::Error| ToolError(format!("cannot read `{shown}`: {error}"));
    regular(&shown, &fs::symlink_metadata(&file.real).map_err(failed)?)?;
    let file = safe_open::open(scope.root().path(), &file.relative).map_err(failed)?;
    // The file may have been replaced since the check.
    let metadata = file.metadata().map_err(failed)?;
    regular(&shown, &metadata)?;
    Ok((file, metadata.len()))
}

/// Returns an error unless the file is a regular one.
pub(crate) fn regular(shown: &str, metadata: &Metadata) -> Result<(), ToolError> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(ToolError(format!("`{shown}` is a directory; use list")))
    } else {
        Err(ToolError(format!(
            "`{shown}` is a pipe, socket or device, not a file; leave it alone"
        )))
    }
}

/// Returns the kind of a file that begins with these bytes, if it is not text.
pub(crate) fn not_text(start: &[u8]) -> Option<&'static str> {
    let has_nul = start.contains(&0);
    // A text may begin with the letters of a magic number, but contains no NUL.
    let telling = |magic: &[u8]| has_nul || magic.starts_with(b"%PDF") || !magic.is_ascii();
    let known = |(magic, _): &&(&[u8], &str)| start.starts_with(magic) && telling(magic);
    if let Some((_, kind)) = KINDS.iter().find(known) {
        return Some(kind);
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Some("UTF-16 text");
    }
    has_nul.then_some("binary data")
}

/// Returns the error for a file that is not text.
pub(crate) fn no_text(shown: &str, kind: &str, bytes: u64) -> ToolError {
    ToolError(format!(
        "`{shown}` is {kind} of {bytes} bytes, not text; convert it first, with bash say"
    ))
}

/// Reads a whole file of at most `max` bytes. `why` completes the error for larger files.
pub(crate) fn read_bytes(
    scope: &Scope,
    given: &str,
    file: &LocatedPath,
    max: Bytes,
    why: &str,
) -> Result<Vec<u8>, ToolError> {
    let (file, len) = open(scope, file)?;
    let too_large = |len| {
        ToolError(format!(
            "`{given}` has {len} bytes, more than the {max} that can be {why}; use bash"
        ))
    };
    if len > max.0 {
        return Err(too_large(len));
    }
    let mut bytes = Vec::new();
    // A file may grow while it is read, and files in /proc report no length.
    let read = file.take(max.0.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| ToolError(format!("cannot read `{given}`: {error}")))?;
    if bytes.len() as u64 > max.0 {
        Err(too_large(bytes.len() as u64))
    } else {
        Ok(bytes)
    }
}

/// Reads a whole text file of at most `max` bytes.
pub(crate) fn read_text(
    scope: &Scope,
    given: &str,
    file: &LocatedPath,
    max: Bytes,
) -> Result<String, ToolError> {
    let bytes = read_bytes(scope, given, file, max, "edited")?;
    let start = bytes.get(..SNIFFED).unwrap_or(&bytes);
    if let Some(kind) = not_text(start) {
        return Err(no_text(given, kind, bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|_| {
        ToolError(format!(
            "`{given}` is not UTF-8, so it cannot be edited safely; use bash"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_bytes() {
        for (start, kind) in [
            (&b""[..], None),
            (b"plain", None),
            (b"caf\xe9", None),
            ("\u{feff}bom".as_bytes(), None),
            (b"a\0b", Some("binary data")),
            (b"%PDF-1.7 no nul", Some("a PDF document")),
            (b"\x89PNG\r\n\x1a\n", Some("a PNG image")),
            (b"MZ and PK are letters", None),
            (b"MZ\x90\0", Some("a Windows program")),
            (b"\xff\xfeh\0i\0", Some("UTF-16 text")),
        ] {
            assert_eq!(not_text(start), kind, "{start:?}");
        }
    }
}
