//! The files of a transcript, as they are at its end.

use foldhash::HashMap;

use super::calls::Act;
use super::format::Section;
use super::rows::Row;
use super::words::{any_in, list};
use super::work::Order;

/// The counted actions, in the order of [`FileRecord::counts`].
const COUNTED: [Act; 3] = [Act::Written, Act::Edited, Act::Read];
/// What was done to a file.
#[derive(Debug, Default)]
pub(crate) struct FileRecord<'t> {
    path: String,
    counts: [u32; 3],
    /// The action after which the file may not exist, or may not be changed.
    ending: Option<Act>,
    /// The position of the last action in the transcript.
    last: Order,
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
        let Some(counted) = COUNTED.iter().position(|counted| *counted == act) else {
            self.end(path, act, at);
            return None;
        };
        let file = self.file(path)?;
        // A file that is used again exists. Reading says nothing about its changes.
        if act != Act::Read {
            (file.ending, file.changed) = (None, Some(at));
        } else if file.is_gone() {
            file.ending = None;
        }
        file.last = at;
        let count = file.counts.get_mut(counted)?;
        *count = count.saturating_add(1);
        Some(file)
    }

    /// Returns the file with a path, which is added if it is new. A relative path is that of the
    /// only file that ends with it.
    fn file(&mut self, path: &str) -> Option<&mut FileRecord<'t>> {
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
        Some(file)
    }

    /// Records that a file, the files of a folder, or those of a pattern were removed, or that their
    /// changes may be undone. If another folder may be meant, that is not certain.
    fn end(&mut self, path: &str, ending: Act, at: Order) {
        let places = self.all.iter().map(|file| is_within(&file.path, path));
        let places: Vec<Option<bool>> = places.collect();
        let is_exact = places.contains(&Some(true));
        for (file, place) in self.all.iter_mut().zip(&places) {
            let Some(is_certain) = place.filter(|is_certain| *is_certain || !is_exact) else {
                continue;
            };
            file.ending = match ending {
                Act::PerhapsUndone if file.is_gone() => Some(Act::PerhapsRemoved),
                Act::PerhapsUndone if !file.has_changed() => continue,
                Act::Removed if !is_certain => Some(Act::PerhapsRemoved),
                ending => Some(ending),
            };
            file.last = at;
            file.sources.clear();
        }
        let is_new = places.iter().all(Option::is_none) && !path.contains('*') && path != ".";
        if is_new && ending == Act::Removed {
            let file = self.file(path).into_iter();
            file.for_each(|file| (file.ending, file.last) = (Some(ending), at));
        }
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
        file.sources.push(names);
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
            let is_aside = is_note || any_in("temporary", &file.path);
            file.changed > Some(tested) && file.ending != Some(Act::Removed) && !is_aside
        };
        let mut files: Vec<&FileRecord<'_>> = self.all.iter().filter(is_untested).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.changed));
        files.into_iter().map(|file| file.path.as_str()).collect()
    }
}

/// Checks whether `path` ends with the parts of `end`.
fn is_end(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns `Some` if a file may be the path `of`, or one of that folder or pattern: `true` if it is
/// certain, `false` if one of the two is named in another folder.
fn is_within(path: &str, of: &str) -> Option<bool> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let heads = ends.chain([path.len()]).filter_map(|end| path.get(..end));
    let mut heads = heads.filter(|head| !head.is_empty());
    if heads.clone().any(|head| head == of) {
        return Some(true);
    }
    let is_found = match of.split_once('*') {
        // The names that begin and end as the pattern does.
        Some((before, behind)) => heads.any(|head| {
            let end = behind.rsplit('*').next().unwrap_or(behind);
            let is_begun = head.starts_with(before) || head.contains(&format!("/{before}"));
            is_begun && head.ends_with(end)
        }),
        None => of == "." || heads.any(|head| is_end(head, of) || is_end(of, head)),
    };
    is_found.then_some(false)
}

impl<'t> FileRecord<'t> {
    fn has_changed(&self) -> bool {
        matches!(self.counts, [written, edited, _] if written + edited > 0)
    }

    fn is_gone(&self) -> bool {
        matches!(self.ending, Some(Act::Removed | Act::PerhapsRemoved))
    }

    /// Returns the line of the file. The files that were there before and changed are first, since
    /// many new ones are scripts to try something, and those that were only read are last.
    pub(crate) fn into_row(self) -> Row<'t> {
        let rank = match (self.ending, self.has_changed(), self.counts) {
            (None, true, [0, ..]) => 0,
            (None, false, _) => 2,
            _ => 1,
        };
        let mut row = Row::new(Section::Files, self.last, self.words());
        (row.rank, row.sources) = (rank, self.sources);
        row
    }

    /// Returns the path with what was done. Reading is omitted for a changed file.
    fn words(&self) -> String {
        let is_told = |act: Act| act != Act::Read || !self.has_changed();
        let done = COUNTED.iter().zip(self.counts).filter(|(act, count)| {
            *count > 0 && is_told(**act) && self.ending != Some(Act::Removed)
        });
        let done = done.map(|(act, count)| format!("{} {count}", act.word()));
        let done = done.chain(self.ending.map(|ending| ending.word().to_owned()));
        format!("{} ({})", self.path, done.collect::<Vec<_>>().join(", "))
    }
}
