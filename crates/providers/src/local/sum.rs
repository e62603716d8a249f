//! The sum of a file. Blocking: a gigabyte takes a second or more.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// How much is read at once.
const BUFFER: usize = 1024 * 1024;

/// A file's sha256 in hexadecimal digits.
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
