//! Checks the walls: `context`, `agent`, `wire` and `judge` decide and never act, so they must not
//! use a clock, file, socket, thread, process, environment or random source, nor an async runtime.
//!
//! Names and dependencies are checked here. Clippy checks methods with the crates' `clippy.toml`.

use super::fault::Fault;
use super::source::{CodePart, SourceTokenKind, SourceTokens, Token};
use super::tree::Tree;

/// The walled crates: folder and package.
const WALLED: [(&str, &str); 5] = [
    ("handover", "plimsoll-handover"),
    ("context", "plimsoll-context"),
    ("agent", "plimsoll-agent"),
    ("wire", "plimsoll-wire"),
    ("judge", "plimsoll-judge"),
];

/// Modules of `std` with access to the outside.
const MODULES: [&str; 6] = ["env", "fs", "net", "os", "process", "thread"];

/// Names with access to the outside, from any source.
const NAMES: [&str; 10] = [
    "Instant",
    "RandomState",
    "SystemTime",
    "async",
    "await",
    "fastrand",
    "getrandom",
    "rand",
    "reqwest",
    "tokio",
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

/// Returns forbidden names in the sources of the walled crates. Their tests may read files.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.rust() {
        let folder = file.crate_folder();
        let walled = WALLED.iter().any(|(name, _)| folder == Some(name));
        if !walled || !file.path.contains("/src/") {
            continue;
        }
        for (line, name) in reaching_out(&SourceTokens::of(file, text).code()) {
            let text = format!("`{name}` reaches out of the wall: pass the value in instead");
            faults.push(Fault::at(&file.path, line, text));
        }
    }
    faults.extend(uneven_settings(tree));
    faults
}

/// Returns differences between the `clippy.toml` files of the walled crates. Clippy reads only the
/// nearest file, so each crate needs the whole list.
fn uneven_settings(tree: &Tree) -> Vec<Fault> {
    let existing = WALLED.iter().filter(|(folder, _)| exists(tree, folder));
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
        .map(|(path, _)| Fault::of(path, "each walled crate has the same clippy.toml"))
        .collect()
}

/// Returns the walled packages that exist.
pub(crate) fn crates_in(tree: &Tree) -> impl Iterator<Item = &'static str> {
    let walled = WALLED.iter().filter(|(folder, _)| exists(tree, folder));
    walled.map(|(_, package)| *package)
}

fn exists(tree: &Tree, folder: &str) -> bool {
    let manifest = format!("crates/{folder}/Cargo.toml");
    tree.file(&manifest).is_some()
}

/// Returns forbidden packages in the output of `cargo tree --prefix none` for a walled package.
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
            format!("depends on {name}, which is outside its wall"),
        )
    };
    names.into_iter().map(fault).collect()
}

fn reaching_out<'a>(code: &[Token<'a>]) -> Vec<(usize, &'a str)> {
    let text = |at: usize| code.get(at).map(|token| token.text);
    let mut found = Vec::new();
    for (at, token) in code.iter().enumerate() {
        if token.kind != SourceTokenKind::Word || token.part == CodePart::Test {
            continue;
        }
        if NAMES.contains(&token.text) {
            found.push((token.line, token.text));
        }
        if token.text == "std" && text(at + 1) == Some(":") && text(at + 2) == Some(":") {
            let heads = heads_of(code, at + 3);
            found.extend(heads.filter(|(_, name)| MODULES.contains(name)));
        }
    }
    found
}

/// Returns the first names of the paths at a position: one, or those of a `{group}`.
fn heads_of<'a>(code: &[Token<'a>], at: usize) -> impl Iterator<Item = (usize, &'a str)> {
    let mut heads = Vec::new();
    let mut depth = 0_usize;
    let mut expects_head = true;
    for token in code.iter().skip(at) {
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "," => expects_head = depth == 1,
            _ if expects_head => {
                heads.push((token.line, token.text));
                expects_head = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn names_that_reach_out_are_found_behind_the_wall_only() {
        let text = "\
//! `std::fs` in prose is fine.
use std::fs;
use std::{collections::BTreeMap, fmt::{self, Write}, net, time::Duration};
fn a() { std::thread::sleep(x); }
use std::time::{Duration, Instant};
async fn b() {}
fn c() { let fs = net; std::mem::take(fs); let strand = \"tokio\"; }
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
            ["plimsoll-wire: depends on tokio, which is outside its wall"]
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
    fn the_settings_of_the_walls_are_one() {
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
