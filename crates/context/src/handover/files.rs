//! The files of a transcript, as they are at its end.

use foldhash::HashMap;

use super::calls::Act;

/// The words for a file that does not exist at the end, and for one whose changes were undone.
const REMOVED: &str = "removed";
const RESTORED: &str = "changes undone";

/// What was done to a file.
#[derive(Debug, Clone)]
pub(crate) struct FileRecord {
    pub(crate) path: String,
    read: u32,
    written: u32,
    edited: u32,
    /// [`REMOVED`] or [`RESTORED`].
    ending: Option<&'static str>,
    /// The position of the last action in the transcript.
    pub(crate) last: usize,
}

/// The files, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct FileList {
    pub(crate) all: Vec<FileRecord>,
    /// Indices of the files with the same last name.
    by_name: HashMap<String, Vec<usize>>,
}

impl FileList {
    /// Records an action on a path, and returns the index of the file.
    pub(crate) fn note(&mut self, act: Act, path: &str, at: usize) -> Option<usize> {
        match act {
            Act::Removed => return self.end(path, REMOVED, at),
            Act::Restored => return self.end(path, RESTORED, at),
            Act::Read | Act::Written | Act::Edited => {}
        }
        let index = self.index(path);
        let file = self.all.get_mut(index)?;
        file.last = at;
        // A file that is used again exists.
        if file.ending == Some(REMOVED) || act != Act::Read {
            file.ending = None;
        }
        let count = match act {
            Act::Written => &mut file.written,
            Act::Edited => &mut file.edited,
            _ => &mut file.read,
        };
        *count = count.saturating_add(1);
        Some(index)
    }

    /// Returns the index of a path, which is added if it is new. A relative path is that of the only file that ends with it.
    pub(crate) fn index(&mut self, path: &str) -> usize {
        let path = path.trim_start_matches("./");
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = self.by_name.entry(name.to_owned()).or_default();
        let is_same = |index: &&usize| {
            let Some(file) = self.all.get(**index) else {
                return false;
            };
            file.path == path
                || path.contains('/') && is_end(&file.path, path)
                || file.path.contains('/') && is_end(path, &file.path)
        };
        let mut found = same_name.iter().filter(is_same);
        if let (Some(index), None) = (found.next().copied(), found.next()) {
            if let Some(file) = self.all.get_mut(index)
                && file.path.len() < path.len()
            {
                path.clone_into(&mut file.path);
            }
            return index;
        }
        let exact = same_name.iter().find(|index| {
            let file = self.all.get(**index);
            file.is_some_and(|file| file.path == path)
        });
        if let Some(index) = exact {
            return *index;
        }
        same_name.push(self.all.len());
        self.all.push(FileRecord {
            path: path.to_owned(),
            read: 0,
            written: 0,
            edited: 0,
            ending: None,
            last: 0,
        });
        self.all.len() - 1
    }

    /// Records that a file, the files of a folder, or those of a pattern were removed or restored.
    /// Returns `None`: no names stand beside them.
    fn end(&mut self, path: &str, ending: &'static str, at: usize) -> Option<usize> {
        let mut is_known = false;
        for file in &mut self.all {
            // Files in other folders are named by whole paths.
            let is_elsewhere =
                path == "." && ending == REMOVED && file.path.starts_with(['/', '~']);
            if is_elsewhere || !is_within(&file.path, path) {
                continue;
            }
            is_known = true;
            let is_changed = file.written + file.edited > 0;
            if ending == REMOVED || is_changed {
                file.ending = Some(ending);
                file.last = at;
            }
        }
        let is_pattern = path.contains('*') || path == ".";
        if !is_known && !is_pattern && ending == REMOVED {
            let index = self.index(path);
            if let Some(file) = self.all.get_mut(index) {
                file.ending = Some(ending);
                file.last = at;
            }
        }
        None
    }

    /// Restores a line of a handover: a path with what was done, and names. Returns the index of the
    /// file and the names.
    pub(crate) fn carry<'t>(&mut self, line: &'t str, at: usize) -> Option<(usize, &'t str)> {
        let (head, names) = line.split_once(": ").unwrap_or((line, ""));
        let (path, words) = head.strip_suffix(')')?.rsplit_once(" (")?;
        let index = self.index(path);
        let file = self.all.get_mut(index)?;
        file.last = at;
        file.ending = [REMOVED, RESTORED]
            .into_iter()
            .find(|ending| *ending == words);
        for done in words.split(", ") {
            let (word, times) = done.split_once(' ').unwrap_or_default();
            let count = match word {
                "read" => &mut file.read,
                "written" => &mut file.written,
                "edited" => &mut file.edited,
                _ => continue,
            };
            *count = count.saturating_add(times.parse().unwrap_or(0));
        }
        Some((index, names))
    }
}

/// Checks whether `path` ends with the parts of `end`.
fn is_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Checks whether `path` is the file `of`, is in that folder, or matches that pattern.
fn is_within(path: &str, of: &str) -> bool {
    if of == "." {
        return true;
    }
    if let Some((before, behind)) = of.split_once('*') {
        let is_begin = path.starts_with(before) || path.contains(&format!("/{before}"));
        return is_begin && path.ends_with(behind);
    }
    is_end(path, of)
        || path.contains(&format!("/{of}/"))
        || path
            .strip_prefix(of)
            .is_some_and(|rest| rest.starts_with('/'))
}

impl FileRecord {
    /// Returns `true` if the file exists at the end and differs from the one at the beginning.
    pub(crate) fn is_changed(&self) -> bool {
        self.ending.is_none() && self.written + self.edited > 0
    }

    /// Returns `true` if the agent created the file: many of these are scripts to try something.
    pub(crate) fn is_new(&self) -> bool {
        self.written > 0
    }

    /// Returns `true` if the file does not exist at the end.
    pub(crate) fn is_removed(&self) -> bool {
        self.ending == Some(REMOVED)
    }

    /// Returns `true` if the file was changed or removed.
    pub(crate) fn is_touched(&self) -> bool {
        self.ending.is_some() || self.is_changed()
    }

    /// Returns the path with what was done. Reading is omitted for a changed file.
    pub(crate) fn words(&self) -> String {
        let path = &self.path;
        if let Some(ending) = self.ending {
            return format!("{path} ({ending})");
        }
        let read = if self.is_changed() { 0 } else { self.read };
        let all = [
            ("written", self.written),
            ("edited", self.edited),
            ("read", read),
        ];
        let done = all.iter().filter(|(_, count)| *count > 0);
        let done: Vec<String> = done
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        format!("{path} ({})", done.join(", "))
    }
}
