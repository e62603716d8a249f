//! Checks that the crates of layers 1 and 2 are pure: they decide and never act, so they must not use
//! a clock, file, socket, thread, process, environment or random source, nor an async runtime.
//!
//! Modules and dependencies are checked here. Clippy checks types and functions with the crates'
//! `clippy.toml`.

use regex::Regex;

use super::fault::Fault;
use super::tree::{Tree, product};

/// The pure crates: folder and package.
const PURE: [(&str, &str); 3] = [
    ("context", "plimsoll-context"),
    ("agent", "plimsoll-agent"),
    ("wire", "plimsoll-wire"),
];

/// Code with access to the outside: modules of `std`, alone or in a group, and async functions.
/// Clippy checks the other names (`Instant`, `RandomState`), and [`PACKAGES`] the packages.
const OUTSIDE: [&str; 2] = [
    r"\bstd::(?:\{(?:[^;]*[\s{,])?)?(env|fs|net|os|process|thread)\b",
    r"(\basync (?:fn|move|\|)|\.await\b)",
];

/// Packages that provide a runtime, a clock, files, sockets or randomness.
const PACKAGES: [&str; 35] = [
    "async-executor",
    "async-std",
    "async-trait",
    "axum",
    "chrono",
    "curl",
    "fastrand",
    "futures",
    "futures-executor",
    "futures-util",
    "getrandom",
    "hyper",
    "jiff",
    "libsqlite3-sys",
    "memmap2",
    "mio",
    "notify",
    "polling",
    "rand",
    "rand_core",
    "rayon",
    "reqwest",
    "rusqlite",
    "smol",
    "socket2",
    "sqlx",
    "tempfile",
    "time",
    "tokio",
    "tokio-stream",
    "tokio-util",
    "ureq",
    "uuid",
    "walkdir",
    "web-time",
];

/// Returns forbidden names in the sources of the pure crates. Their tests may read files.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let patterns: Vec<Regex> = OUTSIDE
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect();
    let mut faults = Vec::new();
    for (file, text) in tree.rust() {
        if !file.crate_folder().is_some_and(is_pure)
            || !file.path.contains("/src/")
            || file.is_test()
        {
            continue;
        }
        let code = without_comments(product(text));
        for found in patterns.iter().flat_map(|rule| rule.captures_iter(&code)) {
            let Some(name) = found.get(1) else { continue };
            let before = code.get(..name.start()).unwrap_or_default();
            let line = 1 + before.matches('\n').count();
            let text = format!("`{}` reaches outside: pass the value in", name.as_str());
            faults.push(Fault::at(&file.path, line, text));
        }
    }
    faults.extend(uneven_settings(tree));
    faults
}

/// Checks whether the crate in this folder is pure.
pub(crate) fn is_pure(folder: &str) -> bool {
    PURE.iter().any(|(name, _)| *name == folder)
}

/// Empties the lines of comments, so that the other lines keep their numbers.
fn without_comments(text: &str) -> String {
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let lines = text
        .lines()
        .map(|line| if is_comment(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns differences between the `clippy.toml` files of the pure crates. Clippy reads only the
/// nearest file, so each crate needs the whole list.
fn uneven_settings(tree: &Tree) -> Vec<Fault> {
    let existing = PURE.iter().filter(|(folder, _)| exists(tree, folder));
    let settings: Vec<(String, Option<&str>)> = existing
        .map(|(folder, _)| {
            let path = format!("crates/{folder}/clippy.toml");
            let text = tree.file(&path).and_then(|file| file.text_if(".toml"));
            (path, text)
        })
        .collect();
    let first = settings.iter().find_map(|(_, text)| *text);
    let uneven = settings
        .iter()
        .filter(|(_, text)| text.is_none() || *text != first);
    uneven
        .map(|(path, _)| Fault::of(path, "each pure crate has the same clippy.toml"))
        .collect()
}

/// Returns the pure packages that exist.
pub(crate) fn crates_in(tree: &Tree) -> impl Iterator<Item = &'static str> {
    let pure = PURE.iter().filter(|(folder, _)| exists(tree, folder));
    pure.map(|(_, package)| *package)
}

fn exists(tree: &Tree, folder: &str) -> bool {
    let manifest = format!("crates/{folder}/Cargo.toml");
    tree.file(&manifest).is_some()
}

/// Returns forbidden packages in the output of `cargo tree --prefix none` for a pure package.
pub(crate) fn check_dependencies(package: &str, listed: &str) -> Vec<Fault> {
    let mut names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| PACKAGES.contains(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let fault = |name: &str| {
        Fault::of(
            package,
            format!("depends on {name}, which acts on the outside"),
        )
    };
    names.into_iter().map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn names_that_reach_outside_are_found_in_pure_crates_only() {
        let text = "\
//! `std::fs` in prose is fine.
use std::fs;
use std::{collections::BTreeMap, fmt::{self, Write}, net, time::Duration};
fn a() { std::thread::sleep(x); }
async fn b() {}
fn c() { a().await; let fs = net; std::mem::take(fs); }
#[cfg(test)]
mod tests { use std::fs; }
";
        let tree = Tree::of(&[
            ("crates/context/src/a.rs", text),
            ("crates/context/tests/a.rs", text),
            ("crates/core/src/a.rs", text),
        ]);
        let lines = [2, 3, 4, 5, 6].map(|line| format!("crates/context/src/a.rs:{line}"));
        assert_eq!(places(&check(&tree)), lines);
    }

    #[test]
    fn packages_that_reach_out_are_found() {
        let listed = "plimsoll-wire v0.1.0 (/x)\nserde v1.0.0\ntokio v1.54.0\ntokio v1.54.0 (*)\n";
        let said: Vec<_> = check_dependencies("plimsoll-wire", listed)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            said,
            ["plimsoll-wire: depends on tokio, which acts on the outside"]
        );
    }

    #[test]
    fn only_crates_that_exist_are_asked_about() {
        let tree = Tree::of(&[
            ("crates/agent/Cargo.toml", ""),
            ("crates/cli/Cargo.toml", ""),
        ]);
        assert_eq!(crates_in(&tree).collect::<Vec<_>>(), ["plimsoll-agent"]);
    }

    #[test]
    fn the_settings_of_the_pure_crates_are_one() {
        let crates = [
            ("crates/context/Cargo.toml", ""),
            ("crates/context/clippy.toml", "a = 1"),
            ("crates/wire/Cargo.toml", ""),
        ];
        let with = |text| {
            let mut files = crates.to_vec();
            files.extend([("crates/wire/clippy.toml", text)]);
            places(&check(&Tree::of(&files)))
        };
        assert_eq!(with("a = 1"), [""; 0]);
        assert_eq!(with("a = 2"), ["crates/wire/clippy.toml:0"]);
        assert_eq!(
            places(&check(&Tree::of(&crates))),
            ["crates/wire/clippy.toml:0"]
        );
    }
}
