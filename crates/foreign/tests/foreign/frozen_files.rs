//! The files with the digests beside this one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Bytes of a digest that are kept.
const DIGEST: usize = 6;
/// So much is shown of a text that differs, in bytes.
const SHOWN: usize = 4_000;

/// A file of digests: a line for each subject, in it a digest for each case.
pub(crate) struct Frozen {
    path: PathBuf,
    before: BTreeMap<String, BTreeMap<String, String>>,
    now: BTreeMap<String, BTreeMap<String, String>>,
    differs: Vec<String>,
    /// Whether the cases come from outside the repository: unknown ones are not judged, none must be there.
    is_outside: bool,
}

impl Frozen {
    /// Opens a file beside this one.
    pub(crate) fn open(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen_files");
        Self::at(folder.join(format!("{name}.json")))
    }

    pub(crate) fn at(path: PathBuf) -> Self {
        let before = std::fs::read_to_string(&path).ok();
        Self {
            before: before.map_or_else(BTreeMap::new, |text| serde_json::from_str(&text).unwrap()),
            path,
            now: BTreeMap::new(),
            differs: Vec::new(),
            is_outside: false,
        }
    }

    /// The same for cases that come from outside the repository.
    pub(crate) fn outside(self) -> Self {
        Self {
            is_outside: true,
            ..self
        }
    }

    /// Compares the digest of `text` with the frozen one.
    pub(crate) fn check(&mut self, subject: &str, case: &str, text: &str) {
        let digest = digest(text);
        let before = self.before.get(subject).and_then(|cases| cases.get(case));
        if before != Some(&digest) && !(before.is_none() && self.is_outside) {
            let text = text
                .get(..text.floor_char_boundary(SHOWN))
                .unwrap_or_default();
            self.differs.push(format!("{subject}, {case}:\n{text}"));
        }
        let cases = self.now.entry(subject.to_owned()).or_default();
        let twin = cases.insert(case.to_owned(), digest.clone());
        assert!(
            twin.is_none_or(|twin| twin == digest),
            "{subject}, {case}: twice"
        );
    }

    /// Fails if anything differed, or writes the file anew.
    pub(crate) fn close(self) {
        if is_blessed() {
            let mut text = serde_json::to_string_pretty(&self.now).unwrap();
            text.push('\n');
            std::fs::write(&self.path, text).unwrap();
            return;
        }
        if let Some(first) = self.differs.first() {
            panic!(
                "{}: {} of them are not what they were; the first is {first}",
                self.path.display(),
                self.differs.len()
            );
        }
        let gone = self
            .before
            .keys()
            .find(|subject| !self.now.contains_key(*subject));
        assert!(
            gone.is_none() || self.is_outside,
            "{gone:?} is missing: {}",
            self.path.display()
        );
    }
}

pub(crate) fn digest(text: &str) -> String {
    let mut digest = String::new();
    for byte in &blake3::hash(text.as_bytes()).as_bytes()[..DIGEST] {
        write!(digest, "{byte:02x}").unwrap();
    }
    digest
}

/// Returns `true` if the files are to be written anew.
pub(crate) fn is_blessed() -> bool {
    std::env::var_os("PLIMSOLL_BLESS").is_some()
}
