//! Checks that every Rust file begins with a `//!` head, and that the root of every crate has the
//! lints that only product code obeys. The quality of the head is left to reviewers.

use super::fault::Fault;
use super::purity;
use super::tree::Tree;

/// The lints of every library and program. The manifest cannot set them: they would reach tests.
const LINTS: [&str; 3] = [
    "#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]",
    "#![warn(clippy::indexing_slicing, clippy::string_slice)]",
    "#![warn(clippy::print_stdout, clippy::print_stderr)]",
];
/// The crate that only tests use, and that fails as tests do.
const TEST_KIT: &str = "testkit";
/// The additional lint of the pure crates, which their `clippy.toml` fills.
const PURE_LINT: &str = "#![warn(clippy::disallowed_methods, clippy::disallowed_types)]";

/// Returns files without a head, and roots of crates without the lints.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let headless = tree.rust().filter(|(_, text)| {
        let head = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("//!"));
        head.is_none_or(|head| head.trim().is_empty())
    });
    let mut faults: Vec<Fault> = headless
        .map(|(file, _)| {
            Fault::at(
                &file.path,
                1,
                "open the file with `//!` and say what it is for",
            )
        })
        .collect();
    for (file, text) in tree.rust() {
        let Some(folder) = file.crate_folder().filter(|folder| *folder != TEST_KIT) else {
            continue;
        };
        let roots = ["lib.rs", "main.rs"].map(|root| format!("crates/{folder}/src/{root}"));
        if !roots.contains(&file.path) {
            continue;
        }
        let pure = purity::is_pure(folder).then_some(&PURE_LINT);
        let missing = LINTS
            .iter()
            .chain(pure)
            .filter(|lint| !text.contains(**lint));
        faults.extend(missing.map(|lint| Fault::of(&file.path, format!("write {lint}"))));
    }
    faults
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

    #[test]
    fn a_root_without_the_lints_is_found() {
        let lints = format!("//! A.\n{}\n", LINTS.join("\n"));
        let tree = Tree::of(&[
            ("crates/cli/src/main.rs", lints.as_str()),
            ("crates/cli/src/run.rs", "//! B.\n"),
            ("crates/wire/src/lib.rs", lints.as_str()),
        ]);
        assert_eq!(places(&check(&tree)), ["crates/wire/src/lib.rs:0"]);
    }
}
