//! Checks that every Rust file begins with a `//!` head. The quality of the head is left to
//! reviewers.

use super::fault::Fault;
use super::tree::Tree;

/// Returns files that begin with anything else.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let headless = tree.rust().filter(|(_, text)| {
        let head = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("//!"));
        head.is_none_or(|head| head.trim().is_empty())
    });
    headless
        .map(|(file, _)| {
            Fault::at(
                &file.path,
                1,
                "open the file with `//!` and say what it is for",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn a_file_without_a_head_is_found() {
        let tree = Tree::of(&[
            ("a.rs", "//! A.\nfn a() {}\n"),
            ("b.rs", "// Not a head.\n"),
            ("c.rs", ""),
            ("d.rs", "//!\n//! Too late.\n"),
            ("e.md", "# Not Rust\n"),
        ]);
        assert_eq!(places(&check(&tree)), ["b.rs:1", "c.rs:1", "d.rs:1"]);
    }
}
