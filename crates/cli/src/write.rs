//! Writes whole files: new ones, and replacements that take the place of a file at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// Writes a new file. An existing file stays as it is, and the error ends with the advice.
pub(crate) fn create(path: &Path, text: &str, advice: &str) -> Result<(), CliError> {
    let shown = path.display();
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::usage(format!("{shown} is there already{advice}")),
        _ => failed(path, &error),
    })
}

/// Writes a file, or replaces it at once. Writes to what is not a regular file, such as a device.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), CliError> {
    let is_special = fs::symlink_metadata(path).is_ok_and(|file| !file.is_file());
    let replaced = if is_special {
        // A link keeps leading to its file, and a device or a pipe stays one.
        File::create(path).and_then(|mut file| file.write_all(text.as_bytes()))
    } else {
        replace_with(path, text, OpenOptions::new())
    };
    replaced.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("{} cannot be written: {error}", path.display()))
}

/// Like [`replace`], for a file that only the user may read.
pub(crate) fn replace_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    replace_with(path, text, options)
}

fn replace_with(path: &Path, text: &str, mut options: OpenOptions) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut file = options.write(true).create_new(true).open(&beside)?;
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    #[test]
    fn only_a_regular_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("file"));
        let pipe = folder.path().join("pipe");
        fs::write(&file, "a longer old text").unwrap();
        symlink("file", &link).unwrap();
        replace(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        replace(&file, "newer").unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "newer");

        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        replace(&pipe, "through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        let kind = fs::symlink_metadata(&pipe).unwrap().file_type();
        assert!(kind.is_fifo());
        replace(Path::new("/dev/null"), "gone").unwrap();
        let kind = fs::metadata("/dev/null").unwrap().file_type();
        assert!(kind.is_char_device());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
