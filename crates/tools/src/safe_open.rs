//! Opens and replaces files below a directory without following any link on the way.
//!
//! After a path was checked, another process may replace a directory on it by a link. Therefore one
//! directory after the other is opened, without following links. On Windows the path is opened directly.

#[cfg(unix)]
pub(crate) use unix::{open, readable, remove, replace};
#[cfg(not(unix))]
pub(crate) use windows::{open, readable, remove, replace};

/// Maximum number of attempts to find an unused name for a temporary file. Interrupted writes may have
/// left some behind.
#[cfg(unix)]
const TRIES: u32 = 100;

#[cfg(unix)]
mod unix {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use std::path::{Component, Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
    use rustix::io::Errno;

    use super::TRIES;

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

    /// Opens a file for reading. Does not block on a pipe without a writer.
    pub(crate) fn open(root: &Path, relative: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = descend(root, relative, flags, MissingDirs::Refused)?;
        Ok(File::from(file))
    }

    /// Opens a directory. Returns it with a path that refers to the open directory, even if its own
    /// path changes.
    pub(crate) fn readable(root: &Path, relative: &Path) -> io::Result<(File, PathBuf)> {
        let folder = descend(root, relative, FOLDER, MissingDirs::Refused)?;
        let folder = File::from(folder);
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
            if path.exists() {
                return Ok((folder, path));
            }
        }
        Ok((folder, root.join(relative)))
    }

    /// Replaces or creates a file and the directories above it, atomically: a reader sees either the
    /// old or the new bytes, even after a crash. Permissions are kept.
    pub(crate) fn replace(root: &Path, relative: &Path, bytes: &[u8]) -> io::Result<()> {
        let Some(name) = relative.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder = descend(root, parent, FOLDER, MissingDirs::Created)?;
        let (mut file, temporary) = temporary(&folder)?;
        let written = fill(&mut file, &folder, name, bytes)
            .and_then(|()| Ok(fs::renameat(&folder, temporary.as_str(), &folder, name)?));
        if written.is_err() {
            // If removing fails too, the file stays; its name identifies its origin.
            let _ = fs::unlinkat(&folder, temporary.as_str(), AtFlags::empty());
        }
        written
    }

    /// Removes a file.
    pub(crate) fn remove(root: &Path, relative: &Path) -> io::Result<()> {
        let Some(name) = relative.file_name() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder = descend(root, parent, FOLDER, MissingDirs::Refused)?;
        Ok(fs::unlinkat(&folder, name, AtFlags::empty())?)
    }

    fn fill(file: &mut File, folder: &OwnedFd, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)?;
        if let Ok(old) = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            && FileType::from_raw_mode(old.st_mode) == FileType::RegularFile
        {
            fs::fchmod(&*file, Mode::from_raw_mode(old.st_mode))?;
        }
        file.sync_all()
    }

    /// Creates a file with an unused name. The user's umask applies to its mode.
    fn temporary(folder: &OwnedFd) -> io::Result<(File, String)> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        for _ in 0..TRIES {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".plimsoll-{}-{number}", std::process::id());
            match fs::openat(folder, name.as_str(), flags | OFlags::CLOEXEC, mode) {
                Err(Errno::EXIST) => {}
                file => return Ok((File::from(file?), name)),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The treatment of missing directories.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum MissingDirs {
        Refused,
        Created,
    }

    /// Opens a relative path without `..`, one directory after the other, without following links.
    fn descend(
        root: &Path,
        relative: &Path,
        flags: OFlags,
        missing: MissingDirs,
    ) -> Result<OwnedFd, Errno> {
        let mut folder = top(root)?;
        let mut names = relative.components().peekable();
        while let Some(name) = names.next() {
            let name = match name {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => return Err(Errno::INVAL),
            };
            let flags = match names.peek() {
                Some(_) => FOLDER,
                None => flags,
            };
            if missing == MissingDirs::Created {
                match fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error),
                }
            }
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            folder = fs::openat(&folder, name, flags, Mode::empty())?;
        }
        Ok(folder)
    }

    fn top(root: &Path) -> Result<OwnedFd, Errno> {
        fs::open(root, FOLDER | OFlags::CLOEXEC, Mode::empty())
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::{PermissionsExt, symlink};

        use super::*;

        #[test]
        fn no_link_is_followed() {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join("root");
            std::fs::create_dir_all(root.join("a/b")).unwrap();
            std::fs::write(home.path().join("secret"), "s").unwrap();
            std::fs::write(root.join("a/b/file"), "x").unwrap();
            symlink("..", root.join("up")).unwrap();
            symlink("../../secret", root.join("a/link")).unwrap();
            symlink("file", root.join("a/b/near")).unwrap();
            for (path, is_open) in [
                ("", true),
                (".", true),
                ("a/b", true),
                ("a/b/file", true),
                ("a/../a/b", false),
                ("/", false),
                ("up", false),
                ("up/secret", false),
                ("up/root/a/b/file", false),
                ("a/link", false),
                ("a/b/near", false),
                ("none", false),
            ] {
                let relative = Path::new(path);
                let opened = descend(&root, relative, OFlags::RDONLY, MissingDirs::Refused);
                assert_eq!(opened.is_ok(), is_open, "{path}: {opened:?}");
            }
            for path in ["up/new", "a/link/new", "up/root/new"] {
                assert!(replace(&root, Path::new(path), b"x").is_err(), "{path}");
            }
            // The link itself is replaced, not its target.
            replace(&root, Path::new("a/link"), b"new").unwrap();
            assert_eq!(std::fs::read(home.path().join("secret")).unwrap(), b"s");
            assert_eq!(std::fs::read(root.join("a/link")).unwrap(), b"new");
            replace(&root, Path::new("x/y/z"), b"deep").unwrap();
            assert_eq!(std::fs::read(root.join("x/y/z")).unwrap(), b"deep");
        }

        #[test]
        fn a_file_keeps_its_permissions_and_leaves_nothing_beside_it() {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            let path = root.join("run.sh");
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
            replace(root, Path::new("run.sh"), b"new").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
            let mode = |name: &str| {
                let metadata = std::fs::metadata(root.join(name)).unwrap();
                metadata.permissions().mode() & 0o7777
            };
            assert_eq!(mode("run.sh"), 0o750);
            assert_eq!(std::fs::read_dir(root).unwrap().count(), 1);

            // A new file gets the usual permissions.
            replace(root, Path::new("new"), b"x").unwrap();
            std::fs::write(root.join("plain"), "x").unwrap();
            assert_eq!(mode("new"), mode("plain"));
            // The temporary file is removed if the replacement fails.
            std::fs::create_dir(root.join("folder")).unwrap();
            assert!(replace(root, Path::new("folder"), b"x").is_err());
            assert_eq!(std::fs::read_dir(root).unwrap().count(), 4);
        }
    }
}

#[cfg(not(unix))]
mod windows {
    use std::fs::{self, File};
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    /// Opens a file for reading.
    pub(crate) fn open(root: &Path, relative: &Path) -> io::Result<File> {
        File::open(root.join(relative))
    }

    /// Returns the path of a directory, and a guard that keeps it open.
    pub(crate) fn readable(root: &Path, relative: &Path) -> io::Result<((), PathBuf)> {
        Ok(((), root.join(relative)))
    }

    /// Removes a file.
    pub(crate) fn remove(root: &Path, relative: &Path) -> io::Result<()> {
        fs::remove_file(root.join(relative))
    }

    /// Replaces or creates a file and the directories above it, atomically.
    pub(crate) fn replace(root: &Path, relative: &Path, bytes: &[u8]) -> io::Result<()> {
        let path = root.join(relative);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new()
            .prefix(".plimsoll-")
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        if let Ok(old) = fs::symlink_metadata(&path) {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }
}
