//! [`TrustStore`]: the files of projects that a person trusts, by path and content.
//!
//! The files that instruct or configure agents may have been written by somebody else, or by a
//! model. They have no effect until a person has read them and trusts them. Trust applies to exactly
//! this content. A changed or new file must be trusted again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::found::FoundFiles;

/// The name of the store's file in Plimsoll's data directory.
pub const TRUST_FILE: &str = "trusted.json";
/// Maximum number of trusted folders. Beyond it, the one that was trusted first is forgotten.
pub const MAX_TRUSTED: usize = 1_000;
/// Maximum size of the store. A larger one is damaged.
const MAX_STORE: u64 = 16 * 1024 * 1024;

/// The files that a person trusts.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    /// The file with the list. Without a path nothing is trusted.
    path: Option<PathBuf>,
}

/// The reason why files cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The list of trusted files cannot be read or written.
    #[error("the list of trusted files, {path}, cannot be used: {why}", path = path.display())]
    Store {
        /// The list.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// There is no place for the list.
    #[error("there is no place to remember it; set PLIMSOLL_HOME to a directory")]
    NoStore,
}

/// A folder with the trusted files below it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TrustedFolder {
    folder: PathBuf,
    /// The hash of each file's content, by its path below the folder.
    files: BTreeMap<PathBuf, String>,
}

impl TrustStore {
    /// Creates a store with the list in this file, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
        }
    }

    /// Returns the files that are new or have changed since the person trusted the folder. If the
    /// list cannot be read, these are all files.
    #[must_use]
    pub fn untrusted<'a>(&self, found: &'a FoundFiles) -> Vec<&'a Path> {
        let folders = self.folders().unwrap_or_default();
        let trusted = folders.iter().find(|it| it.folder == found.folder());
        let is_trusted = |path: &Path, text: &str| {
            let hash = trusted.and_then(|folder| folder.files.get(path));
            hash.is_some_and(|trusted| *trusted == hash_of(text))
        };
        let files = found.files();
        let new = files.filter(|(path, text)| !is_trusted(path, text));
        new.map(|(path, _)| path).collect()
    }

    /// Trusts these files with their current content.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn trust(&self, found: &FoundFiles) -> Result<(), TrustError> {
        let mut folders = self.folders()?;
        let known = folders.iter().position(|it| it.folder == found.folder());
        let known = known.map(|at| folders.remove(at));
        let mut folder = known.unwrap_or_else(|| TrustedFolder {
            folder: found.folder().to_owned(),
            files: BTreeMap::new(),
        });
        let files = found.files();
        let new = files.map(|(path, text)| (path.to_owned(), hash_of(text)));
        folder.files.extend(new);
        folders.push(folder);
        let over = folders.len().saturating_sub(MAX_TRUSTED);
        self.write(folders.get(over..).unwrap_or_default())
    }

    /// Revokes the trust in a folder. Returns `true` if there was any.
    ///
    /// # Errors
    /// If the list cannot be read or written.
    pub fn revoke(&self, found: &FoundFiles) -> Result<bool, TrustError> {
        let mut folders = self.folders()?;
        let before = folders.len();
        folders.retain(|it| it.folder != found.folder());
        if folders.len() < before {
            self.write(&folders)?;
        }
        Ok(folders.len() < before)
    }

    fn folders(&self) -> Result<Vec<TrustedFolder>, TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoStore)?;
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.fault(error)),
        };
        let text = io::read_to_string(file.take(MAX_STORE)).map_err(|error| self.fault(error))?;
        serde_json::from_str(&text)
            .map_err(|error| self.fault(format!("{error}; delete the file and start anew")))
    }

    /// Writes the list completely or not at all, readable for its owner only.
    fn write(&self, folders: &[TrustedFolder]) -> Result<(), TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoStore)?;
        let written = || -> io::Result<()> {
            let text = serde_json::to_string(folders)?;
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let new = path.with_extension(format!("new-{}", std::process::id()));
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        written().map_err(|error| self.fault(error))
    }

    fn fault(&self, why: impl ToString) -> TrustError {
        TrustError::Store {
            path: self.path.clone().unwrap_or_default(),
            why: why.to_string(),
        }
    }
}

fn hash_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProjectFiles;

    /// A project with some files, and a store.
    struct Project {
        home: tempfile::TempDir,
        store: TrustStore,
    }

    impl Project {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let store = TrustStore::new(home.path().join("data/trusted.json"));
            let project = Self { home, store };
            project.put(".git/HEAD", "");
            project
        }

        fn root(&self) -> PathBuf {
            self.home.path().join("project")
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn found(&self) -> FoundFiles {
            ProjectFiles::new(self.root()).found()
        }

        fn untrusted(&self) -> Vec<String> {
            let found = self.found();
            let paths = self.store.untrusted(&found);
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        }
    }

    #[test]
    fn trust_is_of_one_content_at_one_place() {
        let project = Project::new();
        let all = [
            "plimsoll.toml",
            "prompt.md",
            "AGENTS.md",
            ".claude/skills/b/SKILL.md",
            ".plimsoll/skills/a/SKILL.md",
            ".claude/agents/x.md",
            ".plimsoll/prompts/go.md",
        ];
        for path in all {
            project.put(path, "system_file = \"prompt.md\"");
        }
        let mut found = project.untrusted();
        found.sort_unstable();
        let mut expected = all;
        expected.sort_unstable();
        assert_eq!(found, expected);
        let summary = project.found().summary();
        assert_eq!(
            summary,
            "plimsoll.toml, prompt.md, AGENTS.md, .plimsoll/skills/a/SKILL.md and 3 more"
        );
        project.store.trust(&project.found()).unwrap();
        assert_eq!(project.untrusted(), [""; 0]);
        // Every file counts, a changed and a new one.
        for path in all {
            project.put(path, "system_file = \"prompt.md\" # changed");
            assert_eq!(project.untrusted(), [path]);
            project.put(path, "system_file = \"prompt.md\"");
        }
        project.put(".agents/skills/c/SKILL.md", "new");
        assert_eq!(project.untrusted(), [".agents/skills/c/SKILL.md"]);
        // Nothing is trusted without a list, and nothing elsewhere.
        assert_eq!(TrustStore::default().untrusted(&project.found()).len(), 8);
        assert!(TrustStore::default().trust(&project.found()).is_err());
        assert!(project.store.revoke(&project.found()).unwrap());
        assert!(!project.store.revoke(&project.found()).unwrap());
        assert_eq!(project.untrusted().len(), 8);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let list = project.home.path().join("data/trusted.json");
            let metadata = fs::metadata(list).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_folder_below_is_trusted_with_its_repository() {
        let project = Project::new();
        project.put("AGENTS.md", "x");
        project.put("below/AGENTS.md", "y");
        project.store.trust(&project.found()).unwrap();
        let below = ProjectFiles::new(project.root().join("below")).found();
        let untrusted = project.store.untrusted(&below);
        assert_eq!(untrusted, [Path::new("below/AGENTS.md")]);
        project.store.trust(&below).unwrap();
        assert!(project.store.untrusted(&below).is_empty());
        assert!(project.untrusted().is_empty());
    }

    #[test]
    fn the_list_is_bounded_and_a_damaged_one_trusts_nothing() {
        let project = Project::new();
        project.put("AGENTS.md", "x");
        let others = (0..MAX_TRUSTED).map(|number| TrustedFolder {
            folder: format!("/no/{number}").into(),
            files: BTreeMap::new(),
        });
        let store = &project.store;
        store.write(&others.collect::<Vec<_>>()).unwrap();
        store.trust(&project.found()).unwrap();
        let folders = store.folders().unwrap();
        assert_eq!(folders.len(), MAX_TRUSTED);
        assert_eq!(folders[0].folder, Path::new("/no/1"));
        for damaged in ["{", "[{}]", "[1]"] {
            fs::write(project.home.path().join("data/trusted.json"), damaged).unwrap();
            assert_eq!(project.untrusted(), ["AGENTS.md"]);
            let error = store.trust(&project.found()).unwrap_err().to_string();
            assert!(error.contains("trusted.json, cannot be used"), "{error}");
        }
    }
}
