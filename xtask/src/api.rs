//! `cargo xtask api`: compares the public API of the library with its checked-in listing.
//!
//! The listing has one line for each public item that the crate `plimsoll` contains or re-exports. It is
//! made from the JSON of rustdoc. Stable toolchains write it if `RUSTC_BOOTSTRAP` is set; only rustdoc
//! may see the variable, because build scripts that read it would rebuild their crates. So cargo runs
//! xtask in place of rustdoc, and xtask runs rustdoc.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use public_api::{Builder, MINIMUM_NIGHTLY_RUST_VERSION};
use serde_json::Value;

use crate::command::Job;
use crate::error::Error;

/// The variable that tells xtask to act as rustdoc.
const AS_RUSTDOC: &str = "PLIMSOLL_XTASK_AS_RUSTDOC";
/// The checked-in listing.
const LISTING: &str = "crates/plimsoll/api.txt";
/// The version of the JSON that the crate `public-api` reads, written by Rust 1.95.
const JSON_FORMAT: u64 = 57;
/// Maximum number of different lines that are printed.
const SHOWN: usize = 40;

/// Runs rustdoc with the options for JSON if cargo has started xtask in its place.
pub(crate) fn as_rustdoc() -> Option<ExitCode> {
    std::env::var_os(AS_RUSTDOC)?;
    let status = Command::new("rustdoc")
        .args(std::env::args_os().skip(1))
        .args(["-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(AS_RUSTDOC)
        .status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Compares the listing, or renews it if `PLIMSOLL_BLESS` is set. Returns a note for the summary.
pub(crate) fn run(root: &Path) -> Result<String, Error> {
    let xtask = std::env::current_exe().map_err(Error::file("xtask"))?;
    Job::cargo(root)
        .args(["doc", "--workspace", "--lib", "--no-deps"])
        .env("RUSTDOC", xtask)
        .env(AS_RUSTDOC, "1")
        // Makes cargo keep this output apart from the pages.
        .env("RUSTDOCFLAGS", "--cfg plimsoll_api")
        .run()?;
    let folder = root.join("target/doc");
    let facade = read_json(&folder.join("plimsoll.json"))?;
    let format = facade.get("format_version").and_then(Value::as_u64);
    if format != Some(JSON_FORMAT) {
        let found = format.unwrap_or_default();
        let note = format!(
            "skipped: this rustdoc writes format {found} of its JSON, and the listing needs \
             {JSON_FORMAT} (Rust 1.95)"
        );
        println!("{note}");
        return Ok(note);
    }
    let lines = listing(&folder, &facade)?;
    let path = root.join(LISTING);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&path, text).map_err(Error::file(&path))?;
        return Ok(format!("{} items written", lines.len()));
    }
    let before = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    let before: BTreeSet<String> = before.lines().map(str::to_owned).collect();
    let gone = before.difference(&lines).map(|line| format!("- {line}"));
    let new = lines.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    for change in changes.iter().take(SHOWN) {
        println!("{change}");
    }
    match changes.len() {
        0 => Ok(format!("{} items", lines.len())),
        count => Err(Error::Missing(format!(
            "the public API differs from {LISTING} in {count} line(s); if that is meant: \
             PLIMSOLL_BLESS=1 cargo xtask api"
        ))),
    }
}

/// Returns the lines of the facade's own items, and those of the items that it re-exports.
fn listing(folder: &Path, facade: &Value) -> Result<BTreeSet<String>, Error> {
    let mut lines: BTreeSet<String> = items(&folder.join("plimsoll.json"))?;
    let sources = sources(facade);
    let crates: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.split("::").next())
        .filter(|name| name.starts_with("plimsoll_"))
        .collect();
    for name in crates {
        let found = items(&folder.join(format!("{name}.json")))?;
        let is_shown = |line: &String| {
            subject(line, name).is_some_and(|subject| {
                sources.iter().any(|source| {
                    subject
                        .strip_prefix(source.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
                })
            })
        };
        lines.extend(found.into_iter().filter(is_shown));
    }
    Ok(lines)
}

/// Returns the paths of everything that the facade re-exports.
fn sources(facade: &Value) -> BTreeSet<String> {
    let index = facade.get("index").and_then(Value::as_object);
    let items = index.into_iter().flat_map(|index| index.values());
    let uses = items.filter_map(|item| item.pointer("/inner/use/source")?.as_str());
    uses.map(str::to_owned).collect()
}

fn items(json: &PathBuf) -> Result<BTreeSet<String>, Error> {
    let api = Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build();
    let api = api.map_err(|error| Error::Unreadable {
        what: json.display().to_string(),
        why: format!("{error} (public-api reads the JSON of {MINIMUM_NIGHTLY_RUST_VERSION})"),
    })?;
    // The implementation of `Debug` or `Display` has a line already.
    let is_told = |line: &String| !line.contains("core::fmt::Formatter<'_>) -> core::fmt::Result");
    Ok(api
        .items()
        .map(ToString::to_string)
        .filter(is_told)
        .collect())
}

/// Returns the path of the item of `package` that a line is about.
fn subject<'a>(line: &'a str, package: &str) -> Option<&'a str> {
    let about = if line.starts_with("impl") {
        line.rsplit_once(" for ").map_or(line, |(_, of)| of)
    } else {
        line
    };
    let path = about.get(about.find(package)?..)?;
    let end = path.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':')));
    path.get(..end.unwrap_or(path.len()))
}

fn read_json(path: &Path) -> Result<Value, Error> {
    let text = std::fs::read(path).map_err(Error::file(path))?;
    serde_json::from_slice(&text).map_err(|error| Error::Unreadable {
        what: path.display().to_string(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_line_is_its_item() {
        for (line, path) in [
            (
                "pub fn p::Agent::run(&self, p::Said) -> p::Out",
                "p::Agent::run",
            ),
            ("impl core::fmt::Display for p::Cost", "p::Cost"),
            ("pub struct p::Usage", "p::Usage"),
        ] {
            assert_eq!(subject(line, "p::"), Some(path), "{line}");
        }
    }
}
