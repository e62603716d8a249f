//! Extracts files from a wheel, which is a zip file. Only reads members by exact name, so a path
//! inside the wheel never becomes a path on this machine.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// The maximum size of a file in a wheel: ten times the largest one today.
pub(super) const MAX_MEMBER: u64 = 512 * 1024 * 1024;

/// Copies a member to `out`. Returns its length.
pub(super) fn copy_member(
    wheel: &Path,
    member: &str,
    out: &mut impl Write,
    limit: u64,
) -> io::Result<u64> {
    let mut archive = zip::ZipArchive::new(File::open(wheel)?).map_err(io::Error::other)?;
    let entry = archive.by_name(member).map_err(io::Error::other)?;
    let copied = io::copy(&mut entry.take(limit.saturating_add(1)), out)?;
    if copied > limit {
        return Err(io::Error::other(format!(
            "{member} is larger than {limit} bytes"
        )));
    }
    Ok(copied)
}
