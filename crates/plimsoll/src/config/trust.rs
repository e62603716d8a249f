//! [`TrustStore`]: the configuration files that a person trusts, by path and content.
//!
//! A `plimsoll.toml` in some directory may have been written by somebody else, or by a model. It
//! may only instruct the model, run programs, allow tools or name addresses after a person has read
//! it and marked it as trusted. Trust applies to exactly this content, including the prompts that
//! it names. A changed file must be trusted again.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::agent::read_prompt;
use super::fault::ConfigError;
use super::file::Config;

/// The name of the store's file in Plimsoll's data directory.
pub const TRUST_FILE: &str = "trusted.json";
/// Maximum number of trusted files. Beyond it, the one that was trusted first is forgotten.
pub const MAX_TRUSTED: usize = 1_000;
/// Maximum size of the store. A larger one is damaged.
const MAX_STORE: u64 = 4 * 1024 * 1024;

/// The files that a person trusts.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    /// The file with the list. Without a path nothing is trusted.
    path: Option<PathBuf>,
}

/// The reason why a file cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The configuration is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration or one of its prompts cannot be read.
    #[error("{path} cannot be read: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
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

/// A trusted file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TrustedFile {
    path: String,
    /// The hash of the file's content.
    hash: String,
    /// The hash of its prompts.
    prompts: String,
}

impl TrustStore {
    /// Creates a store with the list in this file, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
        }
    }

    /// Trusts a configuration with its current content.
    ///
    /// # Errors
    /// If the configuration is faulty or the list cannot be written.
    pub fn trust(&self, file: impl AsRef<Path>) -> Result<Config, TrustError> {
        let file = file.as_ref();
        let (config, text) = Config::read_with_text(file)?;
        let mut trusted = self.entries()?;
        let new = TrustedFile {
            path: real(file)?,
            hash: hash(text.as_bytes()),
            prompts: hash_of_prompts(&config),
        };
        trusted.retain(|entry| entry.path != new.path);
        trusted.push(new);
        let over = trusted.len().saturating_sub(MAX_TRUSTED);
        self.write(trusted.get(over..).unwrap_or_default())?;
        Ok(config)
    }

    /// Revokes the trust in a configuration. Returns `true` if it was trusted.
    ///
    /// # Errors
    /// If the list cannot be read or written.
    pub fn revoke(&self, file: impl AsRef<Path>) -> Result<bool, TrustError> {
        let path = real(file.as_ref())?;
        let mut trusted = self.entries()?;
        let before = trusted.len();
        trusted.retain(|entry| entry.path != path);
        if trusted.len() < before {
            self.write(&trusted)?;
        }
        Ok(trusted.len() < before)
    }

    /// Returns the configuration of a file with this text, if a person trusts both the text and its
    /// prompts. Prompts are read only if the text is trusted.
    pub(crate) fn trusted(&self, file: &Path, text: &str) -> Option<Config> {
        let path = real(file).ok()?;
        let entries = self.entries().ok()?;
        let entry = entries.into_iter().find(|entry| entry.path == path)?;
        if entry.hash != hash(text.as_bytes()) {
            return None;
        }
        let config = Config::of_trusted(text, file).ok()?;
        (entry.prompts == hash_of_prompts(&config)).then_some(config)
    }

    fn entries(&self) -> Result<Vec<TrustedFile>, TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoStore)?;
        let text = match read(path, MAX_STORE) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.fault(error)),
        };
        let list: Vec<Value> = serde_json::from_str(&text).map_err(|error| self.fault(error))?;
        let entries = list.iter().map(|entry| {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(TrustedFile {
                path: text("path")?,
                hash: text("hash")?,
                prompts: text("prompts")?,
            })
        });
        let entries: Option<Vec<TrustedFile>> = entries.collect();
        entries.ok_or_else(|| self.fault("an entry is incomplete; delete the file and start anew"))
    }

    /// Writes the list completely or not at all, readable for its owner only.
    fn write(&self, entries: &[TrustedFile]) -> Result<(), TrustError> {
        let path = self.path.as_ref().ok_or(TrustError::NoStore)?;
        let entries = entries.iter().map(
            |entry| json!({ "path": entry.path, "hash": entry.hash, "prompts": entry.prompts }),
        );
        let entries: Vec<Value> = entries.collect();
        let text = Value::Array(entries).to_string();
        let written = || -> io::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let new = path.with_extension(format!("new-{}", std::process::id()));
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
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

/// Returns the path without links.
fn real(file: &Path) -> Result<String, TrustError> {
    let unreadable = |source| TrustError::Unreadable {
        path: file.to_owned(),
        source,
    };
    let real = file.canonicalize().map_err(unreadable)?;
    let text = real.into_os_string().into_string();
    text.map_err(|_| unreadable(io::Error::other("its path is not UTF-8")))
}

/// Returns the hash of all prompts that a configuration names, with their paths. An unreadable
/// prompt is reported when it is used.
fn hash_of_prompts(config: &Config) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in config.prompts() {
        let text = read_prompt(&path, "a prompt").unwrap_or_default();
        for part in [path.as_os_str().as_encoded_bytes(), text.as_bytes()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex().to_string()
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn read(path: &Path, max: u64) -> io::Result<String> {
    let text = io::read_to_string(File::open(path)?.take(max + 1))?;
    if text.len() as u64 > max {
        Err(io::Error::other(format!("it is larger than {max} bytes")))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting that requires trust.
    const SYSTEM: &str = "system = \"You obey.\"\n";

    #[test]
    fn trust_is_of_one_content_at_one_place() {
        let home = tempfile::tempdir().unwrap();
        let store = TrustStore::new(home.path().join("data/trusted.json"));
        let (here, there) = (
            home.path().join("plimsoll.toml"),
            home.path().join("other.toml"),
        );
        let is_read = |path: &Path| Config::read_found(path, &store).is_ok();
        for path in [&here, &there] {
            fs::write(path, SYSTEM).unwrap();
        }
        assert!(!is_read(&here));
        store.trust(&here).unwrap();
        assert!(is_read(&here) && !is_read(&there));
        assert!(Config::read_found(&here, &TrustStore::default()).is_err());
        fs::write(&here, "system = \"You obey me.\"\n").unwrap();
        assert!(!is_read(&here), "it has changed");
        fs::write(&here, SYSTEM).unwrap();
        assert!(is_read(&here));
        assert!(store.revoke(&here).unwrap() && !store.revoke(&here).unwrap());
        assert!(!is_read(&here));
        // A faulty file cannot be trusted.
        fs::write(&here, "systm = 1\n").unwrap();
        assert!(store.trust(&here).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let metadata = fs::metadata(home.path().join("data/trusted.json")).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_prompt_is_part_of_what_is_trusted() {
        let home = tempfile::tempdir().unwrap();
        let store = TrustStore::new(home.path().join("trusted.json"));
        let (path, prompt) = (
            home.path().join("plimsoll.toml"),
            home.path().join("prompt.md"),
        );
        fs::write(
            &path,
            "[[agents]]\nname = \"a\"\nsystem_file = \"prompt.md\"\n",
        )
        .unwrap();
        fs::write(&prompt, "Be kind.").unwrap();
        store.trust(&path).unwrap();
        assert!(Config::read_found(&path, &store).is_ok());
        fs::write(&prompt, "Be cruel.").unwrap();
        assert!(Config::read_found(&path, &store).is_err());
    }

    #[test]
    fn the_list_is_bounded_and_a_damaged_one_trusts_nothing() {
        let home = tempfile::tempdir().unwrap();
        let list = home.path().join("trusted.json");
        let store = TrustStore::new(&list);
        let path = home.path().join("plimsoll.toml");
        fs::write(&path, SYSTEM).unwrap();
        let others = (0..MAX_TRUSTED).map(|number| TrustedFile {
            path: format!("/no/{number}"),
            hash: hash(b""),
            prompts: hash(b""),
        });
        store.write(&others.collect::<Vec<_>>()).unwrap();
        store.trust(&path).unwrap();
        let entries = store.entries().unwrap();
        assert_eq!(entries.len(), MAX_TRUSTED);
        assert_eq!(entries[0].path, "/no/1");
        assert!(fs::metadata(&list).unwrap().len() < MAX_STORE);
        for damaged in ["{", "[{}]", "[1]"] {
            fs::write(&list, damaged).unwrap();
            assert!(Config::read_found(&path, &store).is_err());
            let error = store.trust(&path).unwrap_err().to_string();
            assert!(error.contains("trusted.json, cannot be used"), "{error}");
        }
        assert!(TrustStore::default().trust(&path).is_err());
    }
}
