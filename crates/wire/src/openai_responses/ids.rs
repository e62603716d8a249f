//! The ids and names that the API accepts. `call_ids.rs` maps the ids of calls.

use std::borrow::Cow;

use crate::arguments::legal_name;
use crate::call_ids::CallIdForm;
pub(super) use crate::call_ids::MAX_ID;

/// Whether an id is accepted.
pub fn fits(id: &str) -> bool {
    CallIdForm::UpTo64.accepts(id)
}

/// Whether a tool's name is accepted.
pub fn is_name(name: &str) -> bool {
    fits(name) && name.chars().all(in_name)
}

/// A tool's name as it is accepted: a model may have made one up that is not.
pub(crate) fn name(name: &str) -> Cow<'_, str> {
    legal_name(name, MAX_ID)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

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
