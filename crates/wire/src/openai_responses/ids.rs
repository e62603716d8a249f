//! Ids and names of tool calls where the API restricts their form. The map depends on the id
//! alone, so that the same call keeps its id in every request.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::openai_chat::{Text, fnv1a};

/// The longest id of a call or an item, and the longest name of a tool, that is accepted.
pub(super) const MAX_ID: usize = 64;

/// The ids of one request: two different ids never become the same.
#[derive(Debug, Default)]
pub(super) struct Ids {
    given: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Ids {
    /// The id as it is accepted: other providers' ids may be longer.
    pub(super) fn map<'a>(&mut self, id: &'a str) -> Text<'a> {
        if let Some(known) = self.given.get(id) {
            return match known == id {
                true => Cow::Borrowed(id),
                false => Cow::Owned(known.clone()),
            };
        }
        let mut salt = 0;
        let mut name = if fits(id) {
            id.to_owned()
        } else {
            short(id, salt)
        };
        while !self.taken.insert(name.clone()) {
            salt += 1;
            name = short(id, salt);
        }
        self.given.insert(id.to_owned(), name.clone());
        match name == id {
            true => Cow::Borrowed(id),
            false => Cow::Owned(name),
        }
    }
}

/// Whether an id is accepted.
pub(super) fn fits(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= MAX_ID
}

fn short(id: &str, salt: u64) -> String {
    format!("call_{:016x}", fnv1a(id.as_bytes(), salt))
}

/// Whether a tool's name is accepted.
pub(crate) fn is_name(name: &str) -> bool {
    fits(name) && name.chars().all(in_name)
}

/// A tool's name as it is accepted: a model may have made one up that is not.
pub(crate) fn name(name: &str) -> Text<'_> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let letters = name.chars().map(|c| if in_name(c) { c } else { '_' });
    let mut name: String = letters.take(MAX_ID).collect();
    if name.is_empty() {
        name.push('_');
    }
    Cow::Owned(name)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ids_become_short_and_stay_so() {
        let long = "call|".repeat(90);
        let mut ids = Ids::default();
        assert_eq!(ids.map("call_1"), "call_1");
        let first = ids.map(&long).into_owned();
        let empty = ids.map("").into_owned();
        assert!(fits(&first) && fits(&empty) && first != empty);
        assert_eq!(ids.map(&long), first);
        assert_eq!(Ids::default().map(&long), first);
        assert_ne!(ids.map(&first), first, "an id that is taken goes elsewhere");
    }

    #[test]
    fn names_keep_what_is_accepted_of_them() {
        for (given, sent) in [
            ("read_file", "read_file"),
            ("fs.read", "fs_read"),
            ("läs", "l_s"),
            ("", "_"),
        ] {
            assert_eq!(name(given), sent);
        }
        assert_eq!(name(&"x".repeat(70)).len(), MAX_ID);
    }
}
