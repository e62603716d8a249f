//! [`Root`]: the directory that the file tools stay inside.
//!
//! It resolves paths and rejects those that lead out. `safe_open.rs` then opens them without following
//! links. It is not a sandbox: `bash` is not restricted by it, and a hard link to a file outside counts
//! as a file inside.

use std::borrow::Cow;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use plimsoll_core::ToolError;

use crate::error::ToolsError;
use crate::similar;

/// A workspace root.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
}

impl Root {
    /// Creates a root from a readable directory.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be read.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, ToolsError> {
        let path = path.as_ref();
        let real = path.canonicalize();
        let read = real.and_then(|real| fs::read_dir(&real).map(|_| real));
        read.map(|path| Self { path })
            .map_err(|source| ToolsError::Root {
                path: path.to_owned(),
                source,
            })
    }

    /// Returns the path, without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Resolves a path that a model wrote, relative to the root or absolute. The target need not exist.
    /// All links are resolved, so the result contains none.
    ///
    /// # Errors
    /// If the path leads out of the root, contains a broken link, or cannot be followed.
    pub fn resolve(&self, given: &str) -> Result<PathBuf, ToolError> {
        if given.is_empty() || given.contains('\0') {
            return Err(ToolError::new(
                "`path` is empty or has a NUL in it; give one such as `src/main.rs` or `.`",
            ));
        }
        let mut existing = self.path.join(given);
        let mut missing = PathBuf::new();
        let real = loop {
            match existing.canonicalize() {
                Ok(real) => break real,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if existing.symlink_metadata().is_ok() {
                        return Err(ToolError(format!(
                            "`{given}` goes through a link that leads nowhere; use another path"
                        )));
                    }
                    let Some(name) = existing.file_name() else {
                        // A `..` after a directory that does not exist.
                        return Err(self.refusal(given));
                    };
                    missing = if missing.as_os_str().is_empty() {
                        PathBuf::from(name)
                    } else {
                        Path::new(name).join(missing)
                    };
                    existing.pop();
                }
                Err(error) => return Err(ToolError(format!("`{given}`: {error}"))),
            }
        };
        if !real.starts_with(&self.path) {
            return Err(self.refusal(given));
        }
        // Joining an empty path would append a slash.
        Ok(if missing.as_os_str().is_empty() {
            real
        } else {
            real.join(missing)
        })
    }

    /// Resolves the path of an existing file or directory, see [`Root::resolve`].
    pub(crate) fn existing(&self, given: &str) -> Result<PathBuf, ToolError> {
        let path = self.resolve(given)?;
        match path.symlink_metadata() {
            Ok(_) => Ok(path),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut text = format!("there is no `{}`", self.shown(&path));
                if let Some(near) = similar::sibling(&path) {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "; did you mean `{}`?", self.shown(&near));
                }
                // Small models name several files at once, and then again.
                let first = given.split(',').next().filter(|first| *first != given);
                let is_there =
                    |first: &&str| self.resolve(first.trim()).is_ok_and(|path| path.exists());
                if let Some(first) = first.filter(is_there) {
                    let _ = write!(text, "; name one in each call, first `{}`", first.trim());
                }
                Err(ToolError(text))
            }
            Err(error) => Err(ToolError(format!("`{given}`: {error}"))),
        }
    }

    /// Returns the path relative to the root, with `/` between names. It is computed from the path
    /// alone, without reading links. A path outside stays absolute or begins with `..`.
    pub(crate) fn relative(&self, given: &Path) -> String {
        let given = given.strip_prefix(&self.path).unwrap_or(given);
        let mut names: Vec<Cow<'_, str>> = Vec::new();
        let mut first = "";
        for component in given.components() {
            match component {
                Component::Normal(name) => names.push(name.to_string_lossy()),
                Component::ParentDir => match names.last() {
                    Some(name) if name != ".." => drop(names.pop()),
                    _ => names.push("..".into()),
                },
                Component::RootDir | Component::Prefix(_) => first = "/",
                Component::CurDir => {}
            }
        }
        if names.is_empty() && first.is_empty() {
            ".".to_owned()
        } else {
            format!("{first}{}", names.join("/"))
        }
    }

    /// Returns a path as shown to the model: relative to the root, with `/` as separator, on one line.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.path).unwrap_or(path);
        if relative.as_os_str().is_empty() {
            return ".".to_owned();
        }
        one_line(&relative.to_string_lossy().replace('\\', BACKSLASH))
    }

    fn refusal(&self, given: &str) -> ToolError {
        let mut text = format!(
            "`{given}` is outside the workspace root; give a path inside it, relative to it"
        );
        let inside = given.trim_start_matches('/');
        if inside != given && !inside.is_empty() && self.path.join(inside).exists() {
            let _ = write!(text, ", such as `{inside}`");
        }
        ToolError(text)
    }
}

/// A separator on Windows, elsewhere part of a name.
const BACKSLASH: &str = if cfg!(windows) { "/" } else { "\\" };

/// Escapes line ends and other control characters in a name.
pub(crate) fn one_line(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Workspace;

    #[test]
    fn paths_inside_are_resolved() {
        let files = Workspace::new();
        files.put("src/main.rs", "x");
        let root = files.root();
        for (given, shown) in [
            (".", "."),
            ("./", "."),
            ("src", "src"),
            ("src/", "src"),
            ("./src/main.rs", "src/main.rs"),
            ("src/../src/main.rs", "src/main.rs"),
            ("new.txt", "new.txt"),
            ("a/b/c", "a/b/c"),
            ("src/a b/日本.txt", "src/a b/日本.txt"),
        ] {
            let path = root.resolve(given).unwrap();
            assert_eq!(root.shown(&path), shown, "{given}");
            let absolute = root.path().join(given);
            assert_eq!(root.resolve(absolute.to_str().unwrap()), Ok(path));
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_lead_out_are_refused() {
        use std::os::unix::fs::symlink;
        let outside = Workspace::new();
        outside.put("secret", "s");
        let files = Workspace::new();
        files.put("src/main.rs", "x");
        let target = outside.root().path().to_owned();
        symlink(&target, files.path("out")).unwrap();
        symlink(target.join("secret"), files.path("file")).unwrap();
        symlink(target.join("absent"), files.path("nowhere")).unwrap();
        symlink("..", files.path("src/up")).unwrap();
        symlink("loop", files.path("loop")).unwrap();
        let root = files.root();
        for given in [
            "..",
            "../",
            "../x",
            "src/../../x",
            "absent/../../x",
            "/etc/passwd",
            "/",
            "/absent/x",
            "out",
            "out/secret",
            "out/new",
            "out/new/deeper",
            "file",
            "nowhere",
            "nowhere/x",
            "src/up/../..",
            "loop",
            "src/main.rs/x",
            "",
            "a\0b",
        ] {
            let refused = root.resolve(given).unwrap_err().0;
            assert!(!refused.contains('\n') && refused.len() < 200, "{refused}");
            assert!(!refused.contains(target.to_str().unwrap()), "{refused}");
        }
        // A link that stays inside is followed.
        let up = root.resolve("src/up/src/main.rs").unwrap();
        assert_eq!(root.shown(&up), "src/main.rs");
        let slash = root.resolve("/src/main.rs").unwrap_err().0;
        assert!(slash.ends_with("such as `src/main.rs`"), "{slash}");
    }

    #[test]
    fn a_name_that_is_not_there_is_answered_with_the_nearest() {
        let files = Workspace::new();
        files.put("src/main.rs", "x");
        let root = files.root();
        let text = root.existing("src/mian.rs").unwrap_err().0;
        assert_eq!(
            text,
            "there is no `src/mian.rs`; did you mean `src/main.rs`?"
        );
        let text = root.existing("src/zzzzzzzz").unwrap_err().0;
        assert_eq!(
            text, "there is no `src/zzzzzzzz`",
            "no tool is named: it may not be there"
        );
        let text = root.existing("src/main.rs, src/lib.rs").unwrap_err().0;
        assert!(
            text.ends_with("; name one in each call, first `src/main.rs`"),
            "{text}"
        );
    }

    #[test]
    fn a_path_is_made_relative_without_a_look_at_links() {
        let files = Workspace::new();
        let root = files.root();
        let absolute = format!("{}/a/../.env", root.path().display());
        for (given, relative) in [
            (".env", ".env"),
            ("./.env", ".env"),
            (".//.env", ".env"),
            ("a/./b//../.env/", "a/.env"),
            (absolute.as_str(), ".env"),
            ("", "."),
            (".", "."),
            ("a/..", "."),
            ("../x", "../x"),
            ("a/../../../x", "../../x"),
            ("/etc/../etc/passwd", "/etc/passwd"),
            ("/", "/"),
        ] {
            assert_eq!(root.relative(Path::new(given)), relative, "{given}");
        }
    }

    #[test]
    fn a_root_must_be_a_folder() {
        let files = Workspace::new();
        files.put("file", "x");
        for bad in ["absent", "file"] {
            let error = Root::new(files.path(bad)).unwrap_err().to_string();
            assert!(
                error.starts_with("cannot use ") && error.contains(bad),
                "{error}"
            );
        }
    }

    #[test]
    fn names_are_shown_in_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[1m"), "a\\nb\\u{1b}[1m");
    }
}
