//! Builds that the other steps of `ci` do not make: without any feature and with the default features.
//! `cargo xtask features` builds with each feature alone.
//!
//! All other steps enable all features, so code under `cfg(not(feature = …))` is compiled and
//! tested only here. Other tests are not run again.

use std::path::Path;

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::steps::Outcome;
use crate::test::Counts;

/// The packages that have features.
const PACKAGES: [&str; 4] = ["-p", "plimsoll-cli", "-p", "plimsoll-providers"];
/// No features, and the default features.
const SETS: [&[&str]; 2] = [&["--no-default-features"], &[]];
/// Part of the names of tests that exist only without a feature.
const ONLY_HERE: &str = "not_in_this_build";

/// The crates whose features are built one by one, by folder and package. Their features switch on
/// those of all other crates.
const ONE_BY_ONE: [(&str, &str); 2] = [("plimsoll", "plimsoll"), ("cli", "plimsoll-cli")];

/// Builds the library and the program with each of their features alone.
///
/// It is no step of `ci`: each feature compiles the crates below it anew, which takes longer than all
/// tests. Hosted CI runs it beside the others.
pub(crate) fn features(root: &Path) -> Result<(), Error> {
    let mut built = 0;
    for (folder, package) in ONE_BY_ONE {
        let manifest = root.join("crates").join(folder).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).map_err(Error::file(&manifest))?;
        for feature in features_in(&text) {
            Job::cargo(root)
                .args(["clippy", "--quiet", "--package", package])
                .args(["--no-default-features", "--features", &feature])
                .args(["--", "-D", "warnings"])
                .run()?;
            built += 1;
        }
    }
    println!("{built} features build alone");
    Ok(())
}

/// Returns the names in the table `[features]` of a manifest, except `default`.
fn features_in(manifest: &str) -> Vec<String> {
    let table = manifest.parse::<toml::Table>().ok();
    let features = table.as_ref().and_then(|table| table.get("features"));
    let names = features.and_then(toml::Value::as_table).into_iter();
    let names = names.flat_map(toml::Table::keys);
    names.filter(|name| *name != "default").cloned().collect()
}

/// Checks both builds, then runs the tests that exist only in the first one.
pub(crate) fn run(root: &Path) -> Outcome {
    for set in SETS {
        Job::cargo(root)
            .args(["clippy", "--all-targets"])
            .args(PACKAGES)
            .args(set)
            .args(["--", "-D", "warnings"])
            .run()?;
    }
    let mut counts = Counts::default();
    Job::cargo(root)
        .args(["test", "--no-default-features", "--lib", "--test", "cli"])
        .args(PACKAGES)
        .args([ONLY_HERE])
        .watch(Stream::Out, |line| counts.read(line))?;
    match counts.passed() {
        0 => Err(Error::Missing(format!(
            "no test is called {ONLY_HERE}, and what a build without features says is not tried"
        ))),
        passed => Ok(format!("{passed} passed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_of_a_manifest_are_listed() {
        let manifest =
            "[package]\nname = \"a\"\n[features]\ndefault = [\"b\"]\nb = []\nc = [\"b\"]\n";
        assert_eq!(features_in(manifest), ["b", "c"]);
        assert!(features_in("[package]").is_empty());
    }
}
