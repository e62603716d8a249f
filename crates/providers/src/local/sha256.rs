//! Checksums of files. Blocks: a gigabyte takes a second or more.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The size of a read in bytes.
const BUFFER: usize = 1024 * 1024;

/// Returns the sha256 of a file in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    let mut sum = Sha256::new();
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            let sum = Bytes::copy_from_slice(&sum.finalize());
            return Ok(format!("{sum:x}"));
        }
        sum.update(piece);
        let read = piece.len();
        file.consume(read);
    }
}
