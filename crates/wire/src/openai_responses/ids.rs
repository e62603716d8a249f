//! The ids and names that the API accepts. `call_ids.rs` maps the ids of calls.

use std::borrow::Cow;

use crate::arguments::legal_name;
use crate::call_ids::CallIdForm;
pub(super) use crate::call_ids::MAX_ID;

/// Returns `true` if an id is accepted.
pub fn fits(id: &str) -> bool {
    CallIdForm::UpTo64.accepts(id)
}

/// Returns `true` if a tool's name is accepted.
pub fn is_name(name: &str) -> bool {
    fits(name) && name.chars().all(in_name)
}

/// Returns a tool's name in an accepted form, because a model may have invented an invalid one.
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
