//! `cargo xtask features`: builds without features, and with each feature alone. The steps of `ci` build
//! with all of them.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;

/// The crates whose features are built one by one, by folder and package. Their features switch on
/// those of all other crates.
const ONE_BY_ONE: [(&str, &str); 2] = [("plimsoll", "plimsoll"), ("cli", "plimsoll-cli")];

/// Builds the library and the program without features, and with each of their features alone.
///
/// It is no step of `ci`: each feature compiles the crates below it anew, which takes longer than all
/// tests. Hosted CI runs it beside the others.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let mut built = 0;
    for (folder, package) in ONE_BY_ONE {
        let manifest = root.join("crates").join(folder).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).map_err(Error::file(&manifest))?;
        let features = features_in(&text);
        for feature in std::iter::once(String::new()).chain(features) {
            Job::cargo(root)
                .args(["clippy", "--quiet", "--package", package])
                .args(["--no-default-features", "--features", &feature])
                .args(["--", "-D", "warnings"])
                .run()?;
            built += 1;
        }
    }
    println!("{built} sets of features build");
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
