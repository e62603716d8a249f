//! The files of a transcript, as they are at its end.

use std::borrow::Cow;

use foldhash::HashMap;

use super::calls::Act;
use super::format::Section;
use super::rows::{NameSource, Row};
use super::words::{any_in, list};
use super::work::Order;

/// The counted actions, in the order of [`FileRecord::counts`].
const COUNTED: [Act; 3] = [Act::Written, Act::Edited, Act::Read];
/// The maximum number of texts in which names for a file are searched: the newest.
const SOURCES_MAX: usize = 8;

/// What was done to a file.
#[derive(Debug, Default)]
pub(crate) struct FileRecord<'t> {
    pub(crate) path: String,
    counts: [u32; 3],
    /// The action after which the file may not exist, or may not be changed.
    ending: Option<Act>,
    /// The position of the last action in the transcript.
    pub(crate) last: Order,
    /// The position of the last change, unless an earlier handover knows it as tested.
    changed: Option<Order>,
    /// The calls and results with names of the file.
    sources: Vec<NameSource<'t>>,
}

/// The files, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct FileList<'t> {
    pub(crate) all: Vec<FileRecord<'t>>,
    /// Indices of the files with the same last name.
    by_name: HashMap<String, Vec<usize>>,
    /// The folder of relative paths. Empty if it is not known.
    pub(crate) root: String,
}

impl<'t> FileList<'t> {
    /// Records an action on a path. Returns the file if it still exists.
    pub(crate) fn note(&mut self, act: Act, path: &str, at: Order) -> Option<&mut FileRecord<'t>> {
        let Some(counted) = COUNTED.iter().position(|counted| *counted == act) else {
            self.end(path, act, at);
            return None;
        };
        let file = self.file(path)?;
        file.last = at;
        // A file that is used again exists.
        if file.ending != Some(Act::Restored) || act != Act::Read {
            file.ending = None;
        }
        if act != Act::Read {
            file.changed = Some(at);
        }
        let count = file.counts.get_mut(counted)?;
        *count = count.saturating_add(1);
        Some(file)
    }

    /// Returns the file with a path, which is added if it is new. A relative path is that of the
    /// only file that ends with it.
    pub(crate) fn file(&mut self, path: &str) -> Option<&mut FileRecord<'t>> {
        let path = path.trim_start_matches("./");
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = self.by_name.entry(name.to_owned()).or_default();
        let known = |index: &usize| self.all.get(*index).map_or("", |file| file.path.as_str());
        let is_same = |index: &&usize| {
            let known = known(index);
            known == path
                || path.contains('/') && is_end(known, path)
                || known.contains('/') && is_end(path, known)
        };
        let mut found = same_name.iter().filter(is_same);
        let index = match (found.next(), found.next()) {
            (Some(index), None) => Some(*index),
            _ => same_name.iter().find(|index| known(index) == path).copied(),
        };
        let index = index.unwrap_or(self.all.len());
        if index == self.all.len() {
            same_name.push(index);
            self.all.push(FileRecord::default());
        }
        let file = self.all.get_mut(index)?;
        if file.path.len() < path.len() {
            path.clone_into(&mut file.path);
        }
        Some(file)
    }

    /// Records that a file, the files of a folder, or those of a pattern were removed or restored.
    fn end(&mut self, path: &str, ending: Act, at: Order) {
        let of = self.absolute(path);
        let within = self
            .all
            .iter()
            .map(|file| is_within(&self.absolute(&file.path), &of));
        let within: Vec<Option<bool>> = within.collect();
        let is_exact = within.contains(&Some(true));
        for (file, is_certain) in self.all.iter_mut().zip(&within) {
            let Some(is_certain) = is_certain.filter(|is_certain| *is_certain || !is_exact) else {
                continue;
            };
            let is_gone = matches!(file.ending, Some(Act::Removed | Act::PerhapsRemoved));
            file.ending = Some(match ending {
                Act::Removed if !is_certain => Act::PerhapsRemoved,
                Act::Restored if !is_certain && is_gone => Act::PerhapsRemoved,
                Act::Restored if !is_certain && file.has_changed() => Act::PerhapsRestored,
                Act::Restored if !is_gone && !file.has_changed() => continue,
                ending => ending,
            });
            file.last = at;
            file.sources.clear();
        }
        let is_known = within.iter().any(Option::is_some);
        if !is_known
            && ending == Act::Removed
            && !path.contains('*')
            && path != "."
            && let Some(file) = self.file(path)
        {
            (file.ending, file.last) = (Some(ending), at);
        }
    }

    fn absolute<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if self.root.is_empty() || path.starts_with(['/', '~']) {
            return Cow::Borrowed(path);
        }
        Cow::Owned(format!("{}/{path}", self.root))
    }

    /// Restores a line of a handover: a path with what was done, and names.
    pub(crate) fn carry(&mut self, line: &'t str, at: Order) -> Option<()> {
        let (head, names) = line.split_once(": ").unwrap_or((line, ""));
        let (path, words) = head.strip_suffix(')')?.rsplit_once(" (")?;
        let file = self.file(path)?;
        file.last = at;
        for done in words.split(", ") {
            file.ending = Act::from_word(done);
            let (word, times) = done.split_once(' ').unwrap_or_default();
            let mut counts = COUNTED.iter().zip(&mut file.counts);
            if let Some((_, count)) = counts.find(|(counted, _)| counted.word() == word) {
                *count = count.saturating_add(times.parse().unwrap_or(0));
            }
        }
        file.add_source(NameSource::Text(names));
        Some(())
    }

    /// Restores a changed file that no test followed.
    pub(crate) fn carry_untested(&mut self, path: &str, at: Order) {
        if let Some(file) = self.file(path) {
            file.changed = Some(at);
        }
    }

    /// Returns the paths of files that changed after `tested`, without notes and temporary files,
    /// the newest first.
    pub(crate) fn untested(&self, tested: Order) -> Vec<&str> {
        let is_untested = |file: &&FileRecord<'_>| {
            let is_note = list("notes").any(|extension| file.path.ends_with(extension));
            file.may_be_changed()
                && file.changed > Some(tested)
                && !is_note
                && !any_in("temporary", &file.path)
        };
        let mut files: Vec<&FileRecord<'_>> = self.all.iter().filter(is_untested).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.changed));
        files.into_iter().map(|file| file.path.as_str()).collect()
    }
}

/// Checks whether `path` ends with the parts of `end`.
fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns `Some` if `path` may be the file `of`, or one of that folder or pattern: `true` if it is
/// certain, `false` if one of them is named in another folder.
fn is_within(path: &str, of: &str) -> Option<bool> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let heads = ends.chain([path.len()]).filter_map(|end| path.get(..end));
    let mut is_found = of == ".";
    for head in heads.filter(|head| !head.is_empty()) {
        if head == of {
            return Some(true);
        }
        is_found |= match of.split_once('*') {
            Some((before, behind)) => head.strip_suffix(behind).is_some_and(|head| {
                let name = head.rsplit_once(before).map(|(_, name)| name);
                name.is_some_and(|name| !name.contains('/'))
            }),
            None => is_end(head, of) || is_end(of, head),
        };
    }
    is_found.then_some(false)
}

impl<'t> FileRecord<'t> {
    /// Adds a text with names of the file.
    pub(crate) fn add_source(&mut self, source: NameSource<'t>) {
        if self.sources.len() == SOURCES_MAX {
            self.sources.remove(0);
        }
        self.sources.push(source);
    }

    fn has_changed(&self) -> bool {
        matches!(self.counts, [written, edited, _] if written + edited > 0)
    }

    /// Returns the line of the file.
    pub(crate) fn into_row(self) -> Row<'t> {
        let mut row = Row::new(Section::Files, self.last, self.words());
        (row.rank, row.sources) = (self.rank(), self.sources);
        row
    }

    /// Returns the place among the files: those that were there before and changed are first, since
    /// many new ones are scripts to try something, and those that were only read are last.
    fn rank(&self) -> u8 {
        match (self.ending, self.has_changed(), self.counts) {
            (None, true, [0, ..]) => 0,
            (None, false, _) => 2,
            _ => 1,
        }
    }

    /// Returns `true` unless it is certain that the file or its changes are gone.
    fn may_be_changed(&self) -> bool {
        !matches!(self.ending, Some(Act::Removed | Act::Restored))
    }

    /// Returns the path with what was done. Reading is omitted for a changed file.
    pub(crate) fn words(&self) -> String {
        let done = COUNTED.iter().zip(self.counts);
        let done = done.filter(|(act, count)| {
            *count > 0 && self.may_be_changed() && !(self.has_changed() && **act == Act::Read)
        });
        let done = done.map(|(act, count)| format!("{} {count}", act.word()));
        let done = done.chain(self.ending.map(|ending| ending.word().to_owned()));
        format!("{} ({})", self.path, done.collect::<Vec<_>>().join(", "))
    }
}
