//! The actions on a file.

use crate::calls::Act;

/// The number of actions on a file by kind, and the time of the last one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileActions {
    pub(crate) read: u32,
    pub(crate) written: u32,
    pub(crate) edited: u32,
    /// The number of the entry with the last action.
    pub(crate) last: usize,
}

impl FileActions {
    pub(crate) fn note(&mut self, act: Act, at: usize) {
        let count = match act {
            Act::Read => &mut self.read,
            Act::Written => &mut self.written,
            Act::Edited => &mut self.edited,
        };
        *count = count.saturating_add(1);
        self.last = at;
    }

    /// Adds the actions on the same file under another name.
    pub(crate) fn add(&mut self, other: &Self) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.edited = self.edited.saturating_add(other.edited);
        self.last = self.last.max(other.last);
    }

    /// Returns `true` if the file was used more than once.
    pub(crate) fn is_again(&self) -> bool {
        u64::from(self.read) + u64::from(self.written) + u64::from(self.edited) > 1
    }

    /// Formats the actions, like `written 1, edited 2`. Reading is omitted for a changed file.
    pub(crate) fn words(&self) -> String {
        let is_changed = self.written > 0 || self.edited > 0;
        let read = if is_changed { 0 } else { self.read };
        let all = [
            ("written", self.written),
            ("edited", self.edited),
            ("read", read),
        ];
        let done = all.iter().filter(|(_, count)| *count > 0);
        let done: Vec<String> = done
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        done.join(", ")
    }

    /// Parses the format of [`FileActions::words`].
    pub(crate) fn parse(words: &str, at: usize) -> Option<Self> {
        let mut deeds = Self {
            last: at,
            ..Self::default()
        };
        for deed in words.split(", ") {
            let (word, count) = deed.split_once(' ')?;
            let count = count.parse().ok()?;
            match word {
                "read" => deeds.read = count,
                "written" => deeds.written = count,
                "edited" => deeds.edited = count,
                _ => return None,
            }
        }
        Some(deeds)
    }
}
