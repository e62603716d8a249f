//! The files of a transcript, as they are at its end.

use foldhash::HashMap;

use super::calls::Act;
use super::words::{any_in, list};
use super::work::Order;

/// The counted actions, in the order of [`FileRecord::counts`].
const COUNTED: [&str; 3] = ["written", "edited", "read"];
/// The words for a file that does not exist at the end, for one of which this is not certain, and
/// for one whose changes were undone.
const REMOVED: &str = "removed";
const PERHAPS_REMOVED: &str = "perhaps removed";
const RESTORED: &str = "changes undone";
/// The maximum number of texts in which names for a file are searched: the newest.
const SOURCES_MAX: usize = 8;

/// What was done to a file.
#[derive(Debug, Default)]
pub(crate) struct FileRecord<'t> {
    pub(crate) path: String,
    counts: [u32; 3],
    /// [`REMOVED`], [`PERHAPS_REMOVED`] or [`RESTORED`].
    ending: Option<&'static str>,
    /// The position of the last action in the transcript.
    pub(crate) last: Order,
    /// The position of the last change, unless an earlier handover knows it as tested.
    changed: Option<Order>,
    /// The calls and results with names of the file.
    pub(crate) sources: Vec<&'t str>,
}

/// The files, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct FileList<'t> {
    pub(crate) all: Vec<FileRecord<'t>>,
    /// Indices of the files with the same last name.
    by_name: HashMap<String, Vec<usize>>,
}

impl<'t> FileList<'t> {
    /// Records an action on a path. Returns the file if it still exists.
    pub(crate) fn note(&mut self, act: Act, path: &str, at: Order) -> Option<&mut FileRecord<'t>> {
        let counted = match act {
            Act::Written => 0,
            Act::Edited => 1,
            Act::Read => 2,
            Act::Removed => return self.end(path, REMOVED, at),
            Act::PerhapsRemoved => return self.end(path, PERHAPS_REMOVED, at),
            Act::Restored => return self.end(path, RESTORED, at),
        };
        let file = self.file(path)?;
        file.last = at;
        // A file that is used again exists.
        if file.ending != Some(RESTORED) || act != Act::Read {
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
    /// Returns `None`: no names stand beside them.
    fn end(&mut self, path: &str, ending: &'static str, at: Order) -> Option<&mut FileRecord<'t>> {
        let is_exact = self
            .all
            .iter()
            .any(|file| is_within(&file.path, path) == Some(true));
        let mut is_known = false;
        for file in &mut self.all {
            let Some(is_certain) = is_within(&file.path, path) else {
                continue;
            };
            is_known = true;
            let is_meant = is_certain || !is_exact;
            if is_meant && (ending != RESTORED || file.has_changed() || file.ending.is_some()) {
                file.ending = Some(match ending {
                    REMOVED if !is_certain => PERHAPS_REMOVED,
                    ending => ending,
                });
                file.last = at;
                file.sources.clear();
            }
        }
        if !is_known && !path.contains('*') && path != "." && ending == REMOVED {
            let file = self.file(path)?;
            (file.ending, file.last) = (Some(ending), at);
        }
        None
    }

    /// Restores a line of a handover: a path with what was done, and names.
    pub(crate) fn carry(&mut self, line: &'t str, at: Order) -> Option<()> {
        let (head, names) = line.split_once(": ").unwrap_or((line, ""));
        let (path, words) = head.strip_suffix(')')?.rsplit_once(" (")?;
        let file = self.file(path)?;
        file.last = at;
        let ending = words.rsplit(", ").next().unwrap_or(words);
        let mut endings = [REMOVED, PERHAPS_REMOVED, RESTORED].into_iter();
        file.ending = endings.find(|known| *known == ending);
        for done in words.split(", ") {
            let (word, times) = done.split_once(' ').unwrap_or_default();
            let mut counts = COUNTED.iter().zip(&mut file.counts);
            if let Some((_, count)) = counts.find(|(counted, _)| **counted == word) {
                *count = count.saturating_add(times.parse().unwrap_or(0));
            }
        }
        file.add_source(names);
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
            matches!(file.ending, None | Some(PERHAPS_REMOVED))
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
    pub(crate) fn add_source(&mut self, text: &'t str) {
        if self.sources.len() == SOURCES_MAX {
            self.sources.remove(0);
        }
        self.sources.push(text);
    }

    fn has_changed(&self) -> bool {
        matches!(self.counts, [written, edited, _] if written + edited > 0)
    }

    /// Returns the place among the files: those that were there before and changed are first, since
    /// many new ones are scripts to try something, and those that were only read are last.
    pub(crate) fn rank(&self) -> u8 {
        match (self.ending, self.has_changed(), self.counts) {
            (None, true, [0, ..]) => 0,
            (None, false, _) => 2,
            _ => 1,
        }
    }

    /// Returns the path with what was done. Reading is omitted for a changed file.
    pub(crate) fn words(&self) -> String {
        let [written, edited, read] = self.counts;
        let read = if self.has_changed() { 0 } else { read };
        let done = COUNTED.iter().zip([written, edited, read]);
        let done = done.filter(|(_, count)| *count > 0);
        // The actions stay beside an ending that is not certain.
        let done = done.filter(|_| matches!(self.ending, None | Some(PERHAPS_REMOVED)));
        let done = done.map(|(word, count)| format!("{word} {count}"));
        let done = done.chain(self.ending.map(str::to_owned));
        format!("{} ({})", self.path, done.collect::<Vec<_>>().join(", "))
    }
}
