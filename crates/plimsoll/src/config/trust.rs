//! [`TrustStore`]: the files of projects that a person trusts, by path and content.
//!
//! The files that instruct or configure agents may have been written by somebody else, or by a
//! model. They have no effect until a person has read them and trusts them. Trust applies to exactly
//! this content. A changed or new file must be trusted again.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use plimsoll_tools::saved_files::replace_private;

use super::fault::{ConfigError, Origin};
use super::found::FoundFiles;

/// The name of the store's file in Plimsoll's data directory.
pub const TRUST_FILE: &str = "trusted.json";
/// Maximum size of the store.
const MAX_STORE: usize = 16 * 1024 * 1024;

/// The files that a person trusts.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    /// The file with the list. Without a path nothing is trusted.
    path: Option<PathBuf>,
}

/// The trusted folders, with the hash of the content of each trusted file by its path below the folder.
type Folders = BTreeMap<PathBuf, BTreeMap<PathBuf, String>>;

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
        let mut folders = self.folders().unwrap_or_default();
        let trusted = folders.remove(found.folder()).unwrap_or_default();
        let files = found.files();
        let new = files.filter(|(path, text)| trusted.get(*path) != Some(&hash_of(text)));
        new.map(|(path, _)| path).collect()
    }

    /// Trusts these files with their current content.
    ///
    /// # Errors
    /// If the list cannot be written, or is too long.
    pub fn trust(&self, found: &FoundFiles) -> Result<(), ConfigError> {
        let mut folders = self.folders()?;
        let folder = folders.entry(found.folder().to_owned()).or_default();
        let files = found.files();
        folder.extend(files.map(|(path, text)| (path.to_owned(), hash_of(text))));
        self.write(&folders)
    }

    /// Revokes the trust in a folder. Returns `true` if there was any.
    ///
    /// # Errors
    /// If the list cannot be read or written.
    pub fn revoke(&self, found: &FoundFiles) -> Result<bool, ConfigError> {
        let mut folders = self.folders()?;
        let was_trusted = folders.remove(found.folder()).is_some();
        if was_trusted {
            self.write(&folders)?;
        }
        Ok(was_trusted)
    }

    fn folders(&self) -> Result<Folders, ConfigError> {
        let path = self.path()?;
        let file = match File::open(path) {
            Ok(file) => file.take(MAX_STORE as u64),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Folders::new()),
            Err(error) => return Err(unusable(path, error)),
        };
        let text = io::read_to_string(file).map_err(|error| unusable(path, error))?;
        serde_json::from_str(&text)
            .map_err(|error| unusable(path, format!("{error}; delete the file and start anew")))
    }

    /// Writes the list completely or not at all, readable for its owner only.
    fn write(&self, folders: &Folders) -> Result<(), ConfigError> {
        let path = self.path()?;
        let text = serde_json::to_string(folders).map_err(|error| unusable(path, error))?;
        if text.len() > MAX_STORE {
            let why = "too many files are trusted; revoke the trust in a folder";
            return Err(unusable(path, why));
        }
        replace_private(path, &text).map_err(|error| unusable(path, error))
    }

    fn path(&self) -> Result<&Path, ConfigError> {
        let none = "there is no place to remember it; set PLIMSOLL_HOME to a directory";
        let path = self.path.as_deref();
        path.ok_or_else(|| ConfigError::of(&Origin::Default, none))
    }
}

fn unusable(path: &Path, why: impl Display) -> ConfigError {
    let path = path.display();
    let text = format!("the list of trusted files, {path}, cannot be used: {why}");
    ConfigError::of(&Origin::Default, text)
}

fn hash_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let store = &project.store;
        let long = format!("/{}", "x".repeat(MAX_STORE - 100));
        let many = Folders::from([(long.into(), BTreeMap::new())]);
        store.write(&many).unwrap();
        let error = store.trust(&project.found()).unwrap_err().to_string();
        assert!(error.contains("too many files are trusted"), "{error}");
        assert_eq!(store.folders().unwrap(), many);
        for damaged in ["{", "[]", "{\"/\": 1}"] {
            fs::write(project.home.path().join("data/trusted.json"), damaged).unwrap();
            assert_eq!(project.untrusted(), ["AGENTS.md"]);
            let error = store.trust(&project.found()).unwrap_err().to_string();
            assert!(error.contains("trusted.json, cannot be used"), "{error}");
        }
    }
}
