//! Files out of a wheel, which is a zip file. Only members that are asked for by name are read,
//! so that a path inside the wheel never becomes a path on this machine.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// One file unpacked from a wheel, at most: ten times the largest there is.
pub(super) const MAX_MEMBER: u64 = 512 * 1024 * 1024;

/// Copies a member to `out` and says how long it is.
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
