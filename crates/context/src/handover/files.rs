//! The files of a transcript, as they are at its end.

use foldhash::HashMap;

use super::calls::{Act, EDITED, PERHAPS_REMOVED, PERHAPS_UNDONE, READ, REMOVED, WRITTEN};
use super::format::Kind;
use super::select::{NAMES_OF_FILE, Order, Row};
use super::words::{any_in, list};

/// The maximum number of files that one removal can concern. Older files stay as they are.
const ENDED_MAX: usize = 1_000;
/// The word for a changed file that no build or test followed.
const UNTESTED: &str = "not tested";

/// An action of a call on files.
#[derive(Debug)]
pub(crate) struct FileAct {
    pub(crate) act: Act,
    /// Their paths; of an end, also patterns and other words that may name them.
    pub(crate) paths: Vec<String>,
    /// The folder whose files are all meant if no known file has one of the paths.
    pub(crate) or_all_of: Option<String>,
}

impl FileAct {
    pub(crate) fn new(act: Act, paths: Vec<String>) -> Self {
        let or_all_of = None;
        Self {
            act,
            paths,
            or_all_of,
        }
    }
}

/// What was done to a file.
#[derive(Debug, Default)]
struct FileRecord<'t> {
    path: String,
    /// Whether it was written as a new file, edited, or only read.
    done: Act,
    /// The action after which the file may not exist, or may not be changed.
    ending: Act,
    /// The position of the last action in the transcript.
    last: Order,
    /// The position of the last change, unless an earlier handover knows it as tested.
    changed: Option<Order>,
    /// The calls and results with names of the file.
    sources: Vec<&'t str>,
}

/// The files, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct FileList<'t> {
    all: Vec<FileRecord<'t>>,
    /// Indices of the files with the same last name.
    by_name: HashMap<String, Vec<usize>>,
}

impl<'t> FileList<'t> {
    /// Records that a file was read, written or edited, with the texts that contain names of it. It
    /// exists then, but reading says nothing about its changes.
    pub(crate) fn note(&mut self, act: Act, path: &str, at: Order, sources: &[&'t str]) {
        let Some(file) = self.file(path, at) else {
            return;
        };
        let is_change = act != READ;
        if is_change || file.ending != PERHAPS_UNDONE {
            file.ending = "";
        }
        if is_change {
            file.changed = Some(at);
        }
        if file.done != WRITTEN && (is_change || file.done.is_empty()) {
            file.done = act;
        }
        file.sources.extend(sources);
    }

    /// Returns the file with a path, which is added if it is new. A relative path is that of the
    /// only file that ends with it.
    fn file(&mut self, path: &str, at: Order) -> Option<&mut FileRecord<'t>> {
        let path = path.trim_start_matches("./");
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = self.by_name.entry(name.to_owned()).or_default();
        let known = |index: &usize| self.all.get(*index).map_or("", |file| file.path.as_str());
        let is_same = |index: &&usize| {
            let known = known(index);
            path.contains('/') && is_end(known, path) || known.contains('/') && is_end(path, known)
        };
        let mut alike = same_name.iter().filter(is_same);
        let alike = alike.next().filter(|_| alike.next().is_none());
        let found = same_name.iter().find(|index| known(index) == path);
        let index = found.or(alike).copied().unwrap_or(self.all.len());
        if index == self.all.len() {
            same_name.push(index);
            self.all.push(FileRecord::default());
        }
        let file = self.all.get_mut(index)?;
        if file.path.len() < path.len() {
            path.clone_into(&mut file.path);
        }
        file.last = at;
        Some(file)
    }

    /// Records that the files that are named are, or may be, removed, or their changes undone. It is only
    /// certain of the same path and of those below it, not of one that may be in another folder.
    pub(crate) fn end(&mut self, act: Act, named: &FileAct, at: Order) {
        let paths = named.paths.iter().map(|path| path_parts(path));
        let paths: Vec<Vec<&str>> = paths.collect();
        let folder = named.or_all_of.as_deref().map(path_parts);
        let first = self.all.len().saturating_sub(ENDED_MAX);
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for (index, file) in self.all.iter().enumerate().skip(first) {
            let path = path_parts(&file.path);
            if paths.iter().any(|of| may_be(&path, of)) {
                known.push(index);
            } else if folder.as_ref().is_some_and(|of| may_be(&path, of)) {
                others.push(index);
            }
        }
        for index in if known.is_empty() { &others } else { &known } {
            if let Some(file) = self.all.get_mut(*index) {
                let mut rests = named
                    .paths
                    .iter()
                    .filter_map(|path| file.path.strip_prefix(path));
                let is_same = rests.any(|rest| rest.is_empty() || rest.starts_with('/'));
                let is_certain = act != REMOVED || is_same;
                file.end(if is_certain { act } else { PERHAPS_REMOVED }, at);
            }
        }
        let new = named
            .paths
            .iter()
            .filter(|_| act == REMOVED && known.is_empty());
        for path in new {
            if let Some(file) = self.file(path, at) {
                file.ending = REMOVED;
            }
        }
    }

    /// Records that a command names files. Those that were removed may exist again.
    pub(crate) fn name(&mut self, names: &[String]) {
        for name in names.iter().filter_map(|name| name.rsplit('/').next()) {
            for index in self.by_name.get(name).into_iter().flatten() {
                if let Some(file) = self.all.get_mut(*index)
                    && file.ending == REMOVED
                {
                    file.ending = PERHAPS_REMOVED;
                }
            }
        }
    }

    /// Restores a line of a handover: a path with what was done, and names.
    pub(crate) fn carry(&mut self, line: &'t str, at: Order) -> Option<()> {
        let (head, names) = line.split_once(NAMES_OF_FILE).unwrap_or((line, ""));
        let (path, words) = head.strip_suffix(')')?.rsplit_once(" (")?;
        let file = self.file(path, at)?;
        file.sources.push(names);
        for word in words.split(", ") {
            match [WRITTEN, EDITED, READ].iter().find(|act| **act == word) {
                Some(done) => file.done = done,
                None if word == UNTESTED => file.changed = Some(at),
                None => {
                    let mut endings = [REMOVED, PERHAPS_REMOVED, PERHAPS_UNDONE].iter();
                    file.ending = endings.find(|act| **act == word).unwrap_or(&"");
                }
            }
        }
        Some(())
    }

    /// Returns the lines of the files; `tested` is the position of the last build or test. Those that were
    /// there before and changed are first, since many new ones are scripts to try something, and those that
    /// were only read are last.
    pub(crate) fn into_rows(self, tested: Order) -> impl Iterator<Item = Row<'t>> {
        self.all.into_iter().map(move |file| {
            let kind = match (file.done, file.ending) {
                (EDITED, "") => Kind::Changed,
                (READ, "") => Kind::ReadFile,
                _ => Kind::OtherFile,
            };
            let text = format!("{} ({})", file.path, file.words(tested).join(", "));
            let mut row = Row::new(file.last, kind, text);
            row.sources = file.sources;
            row
        })
    }
}

impl FileRecord<'_> {
    /// Records that the file is, or may be, removed, or that its changes may be undone.
    fn end(&mut self, act: Act, at: Order) {
        self.ending = match act {
            PERHAPS_UNDONE if self.done == READ && self.ending.is_empty() => return,
            // A new file was not there before.
            PERHAPS_UNDONE if self.done == WRITTEN || !self.ending.is_empty() => PERHAPS_REMOVED,
            act => act,
        };
        self.last = at;
        self.sources.clear();
    }

    /// Returns the words behind the path. Notes and temporary files are not tested.
    fn words(&self, tested: Order) -> Vec<&'static str> {
        if self.ending == REMOVED {
            return vec![REMOVED];
        }
        let is_note = list("notes").any(|extension| self.path.ends_with(extension));
        let is_aside = is_note || any_in("temporary", &self.path);
        let is_untested = self.changed > Some(tested) && !is_aside && self.ending.is_empty();
        let untested = if is_untested { UNTESTED } else { "" };
        let mut words = vec![self.done, self.ending, untested];
        words.retain(|word| !word.is_empty());
        words
    }
}

/// Checks whether `path` ends with the parts of `end`.
fn is_end(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Checks whether a file may be `of`, or one of that folder or pattern: one of the two may be named in
/// another folder. `/quay/src/a.rs` may be `src/a.rs`.
fn may_be(path: &[&str], of: &[&str]) -> bool {
    let begins = |path: &[&str], of: &[&str]| {
        path.len() >= of.len() && path.iter().zip(of).all(|(name, of)| is_like(name, of))
    };
    let is_tail = |at: usize| {
        let tail = of.get(at..).unwrap_or_default();
        (at == 0 || tail.first() != Some(&"*")) && begins(path, tail)
    };
    of.is_empty()
        || (0..of.len()).any(is_tail)
        || (0..path.len()).any(|at| path.get(at..).is_some_and(|path| begins(path, of)))
}

/// Returns the names in a path up to any number of folders (`**`), without variables.
fn path_parts(path: &str) -> Vec<&str> {
    let path = path.rsplit("../").next().unwrap_or(path);
    let parts = path.split(['/', '\\']).take_while(|part| *part != "**");
    let is_name = |part: &&str| !matches!(*part, "" | "." | ".." | "~") && !part.contains('$');
    parts.filter(is_name).collect()
}

/// Checks whether a name begins and ends as a pattern.
fn is_like(name: &str, pattern: &str) -> bool {
    let is_sign = |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}');
    let before = pattern.split(is_sign).next().unwrap_or_default();
    let behind = pattern.rsplit(is_sign).next().unwrap_or_default();
    name == pattern
        || pattern.contains(is_sign) && name.starts_with(before) && name.ends_with(behind)
}
