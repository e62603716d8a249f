//! The files of the repository that git tracks or would track. Ignored files, such as the target
//! directory, are not included.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;

/// Maximum size of a file, in bytes: each clone downloads it. The largest is the vocabulary
/// of o200k, which never changes. Data shared by tests
/// is stored outside the repository.
pub(crate) const MAX_FILE: u64 = 2 << 20;

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// The path from the root of the repository, with `/` on every system.
    pub(crate) path: String,
    /// The size on disk.
    pub(crate) bytes: u64,
    /// The text, if it is UTF-8 and no larger than `MAX_FILE`.
    pub(crate) text: Option<String>,
}

/// All files, sorted by path.
#[derive(Debug)]
pub(crate) struct Tree {
    files: Vec<File>,
}

impl File {
    /// Returns the text of the file if its name has this ending.
    pub(crate) fn text_if(&self, ending: &str) -> Option<&str> {
        if self.path.ends_with(ending) {
            self.text.as_deref()
        } else {
            None
        }
    }

    /// Returns `true` if the whole file is a test: in a folder `tests`, or a module file
    /// `tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }

    /// Returns the folder below `crates/` that the file belongs to.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

impl Tree {
    /// Lists the files with git and reads them.
    pub(crate) fn read(root: &Path) -> Result<Self, Error> {
        let names = Job::new("git", root)
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .read()?;
        let mut files = Vec::new();
        for path in names.split('\0').filter(|name| !name.is_empty()) {
            let full = root.join(path);
            // Files that are deleted but not yet committed, and links and submodules.
            let Ok(meta) = full.symlink_metadata() else {
                continue;
            };
            if !meta.is_file() {
                continue;
            }
            let bytes = meta.len();
            let text = if bytes <= MAX_FILE {
                let content = std::fs::read(&full).map_err(Error::file(&full))?;
                String::from_utf8(content).ok()
            } else {
                None
            };
            let path = path.to_owned();
            files.push(File { path, bytes, text });
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Self { files })
    }

    /// Creates a tree of `(path, text)`, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            bytes: text.len() as u64,
            text: Some((*text).to_owned()),
        };
        let mut files: Vec<File> = files.iter().map(file).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files }
    }

    /// Returns all files.
    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the file with this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        let at = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        self.files.get(at.ok()?)
    }

    /// Checks whether a folder with this path contains a file.
    pub(crate) fn has_folder(&self, path: &str) -> bool {
        let inside = |file: &File| {
            let rest = file.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(inside)
    }

    /// Returns every Rust file with its text.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &str)> {
        self.ending(".rs")
    }

    /// Returns every Markdown file with its text.
    pub(crate) fn markdown(&self) -> impl Iterator<Item = (&File, &str)> {
        self.ending(".md")
    }

    /// Returns the manifests of the workspace's packages, except those below `bench/`: they measure,
    /// and only `xtask` depends on them.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = (&File, &str)> {
        self.ending("/Cargo.toml").filter(|(file, _)| {
            let parts: Vec<&str> = file.path.split('/').collect();
            matches!(parts.as_slice(), ["xtask", _] | ["crates", _, _])
        })
    }

    fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a File, &'a str)> {
        let with_text = move |file: &'a File| Some((file, file.text_if(ending)?));
        self.files.iter().filter_map(with_text)
    }
}

/// Returns the text of a Rust file before its test module, which is the last item by convention.
pub(crate) fn product(text: &str) -> &str {
    let tests = text.find("\n#[cfg(test)]\nmod ");
    tests.and_then(|at| text.get(..=at)).unwrap_or(text)
}

/// Returns the number of lines of code: without tests, comments and empty lines.
pub(crate) fn code_lines(text: &str) -> usize {
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    product(text).lines().map(str::trim).filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_folders_and_manifests_are_found() {
        let tree = Tree::of(&[
            ("xtask/Cargo.toml", ""),
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", ""),
            ("crates/a/tests/whole.rs", ""),
            ("bench/peers/Cargo.toml", ""),
            ("Cargo.toml", ""),
        ]);
        assert!(tree.file("crates/a/src/lib.rs").is_some());
        assert!(tree.file("crates/a/src").is_none());
        assert!(tree.has_folder("crates/a/src") && !tree.has_folder("crates/a/sr"));
        let manifests: Vec<_> = tree.manifests().map(|(file, _)| &file.path).collect();
        assert_eq!(manifests, ["crates/a/Cargo.toml", "xtask/Cargo.toml"]);
        let tests: Vec<_> = tree.files().iter().filter(|file| file.is_test()).collect();
        assert_eq!(tests.len(), 1);
    }

    #[test]
    fn this_repository_is_read() {
        let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let tree = Tree::read(Path::new(&root).parent().unwrap()).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").is_some());
        assert!(!tree.has_folder("target"));
    }
}
