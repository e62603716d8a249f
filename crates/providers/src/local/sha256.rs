//! Checksums of files. Blocks: a gigabyte takes a second or more.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The size of a read in bytes.
const BUFFER: usize = 1024 * 1024;

/// Returns the sha256 of a file in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER];
    let mut sum = Sha256::new();
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => sum.update(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
