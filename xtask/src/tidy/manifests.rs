//! Checks the manifests of the packages: each describes itself, inherits the shared keys and is
//! named after its folder. `layers.rs` checks the dependencies.

use toml::{Table, Value};

use super::fault::Fault;
use super::layers::FOR_TESTS;
use super::tree::Tree;

/// Keys of `[package]` that every package inherits from the workspace.
const INHERITED: [&str; 4] = ["edition", "license", "rust-version", "version"];
/// Keys that a registry shows. Every published package inherits them as well.
const SHOWN: [&str; 4] = ["categories", "homepage", "keywords", "repository"];

/// The kind of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Test,
}

/// The `Cargo.toml` of a package.
#[derive(Debug)]
pub(crate) struct Manifest {
    table: Table,
}

impl Manifest {
    /// Parses a manifest. The error is the parser's message.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let table = text.parse::<Table>();
        let table = table.map_err(|error| error.message().to_owned())?;
        Ok(Self { table })
    }

    /// Returns the package's name, or an empty text if it has none.
    pub(crate) fn name(&self) -> &str {
        self.package("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns every dependency by its package name, including those of single platforms.
    pub(crate) fn dependencies(&self) -> Vec<(DependencyKind, String)> {
        let platforms = self.table.get("target").and_then(Value::as_table);
        let platforms = platforms.into_iter().flat_map(Table::values);
        let tables = platforms.filter_map(Value::as_table).chain([&self.table]);
        let mut found = Vec::new();
        for table in tables {
            for (section, kind) in [
                ("dependencies", DependencyKind::Normal),
                ("build-dependencies", DependencyKind::Build),
                ("dev-dependencies", DependencyKind::Test),
            ] {
                let Some(list) = table.get(section).and_then(Value::as_table) else {
                    continue;
                };
                for (key, value) in list {
                    let renamed = value.get("package").and_then(Value::as_str);
                    found.push((kind, renamed.unwrap_or(key).to_owned()));
                }
            }
        }
        found
    }

    fn package(&self, key: &str) -> Option<&Value> {
        self.table.get("package")?.get(key)
    }

    /// Returns the faults of a package in this folder below `crates/`.
    fn faults(&self, folder: Option<&str>) -> Vec<String> {
        let mut faults = Vec::new();
        let name = self.name();
        let wanted = match folder {
            None => "xtask".to_owned(),
            Some("plimsoll") => "plimsoll".to_owned(),
            Some(folder) => format!("plimsoll-{folder}"),
        };
        if name != wanted {
            faults.push(format!(
                "the package is called `{name}`; its folder says `{wanted}`"
            ));
        }
        let description = self.package("description").and_then(Value::as_str);
        if description.is_none_or(|text| text.trim().is_empty()) {
            faults.push("say in `description` what the package is".to_owned());
        }
        let shown = folder.map_or(&[] as &[&str], |_| &SHOWN);
        for key in INHERITED.iter().chain(shown) {
            if !self.package(key).is_some_and(inherits) {
                faults.push(format!(
                    "take `{key}` from the workspace: `{key}.workspace = true`"
                ));
            }
        }
        if folder.is_none() && self.package("publish") != Some(&Value::Boolean(false)) {
            faults.push("nobody else needs it: `publish = false`".to_owned());
        }
        if !self.table.get("lints").is_some_and(inherits) {
            faults.push("take the lints from the workspace: `[lints] workspace = true`".to_owned());
        }
        faults
    }
}

/// Returns the faults of all manifests.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.manifests() {
        let found = match Manifest::of(text) {
            Ok(manifest) => manifest.faults(file.crate_folder()),
            Err(why) => vec![why],
        };
        faults.extend(found.into_iter().map(|text| Fault::of(&file.path, text)));
    }
    let workspace = tree.file("Cargo.toml");
    let found = workspace
        .and_then(|file| file.text_if("Cargo.toml"))
        .map(versions);
    let found = found.into_iter().flatten();
    faults.extend(found.map(|text| Fault::of("Cargo.toml", text)));
    faults
}

/// Returns the packages of this repository that the workspace requires in a version other than its
/// own. A registry would then deliver packages that were not tested.
fn versions(text: &str) -> Vec<String> {
    let Ok(table) = text.parse::<Table>() else {
        return vec!["it is no TOML".to_owned()];
    };
    let at = |keys: &[&str]| {
        let mut value = table.get("workspace");
        for key in keys {
            value = value.and_then(|value| value.get(key));
        }
        value
    };
    let own = at(&["package", "version"]);
    let dependencies = at(&["dependencies"]).and_then(Value::as_table);
    let ours = dependencies
        .into_iter()
        .flatten()
        .filter(|(name, _)| !FOR_TESTS.contains(&name.as_str()))
        .filter(|(_, asked)| asked.get("path").is_some());
    let others = ours.filter(|(_, asked)| asked.get("version") != own);
    let told = others.map(|(name, _)| {
        format!("`{name}` is asked for in another version than `[workspace.package]` has")
    });
    told.collect()
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[package]
name = \"plimsoll-store\"
description = \"Sessions.\"
version.workspace = true
edition.workspace = true
rust-version.workspace = true
license.workspace = true
categories.workspace = true
homepage.workspace = true
keywords.workspace = true
repository.workspace = true

[lints]
workspace = true
";

    fn faults(text: &str) -> Vec<String> {
        let faults = check(&Tree::of(&[("crates/store/Cargo.toml", text)]));
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_good_manifest_has_no_fault() {
        assert_eq!(faults(GOOD), [""; 0]);
    }

    #[test]
    fn each_line_of_a_good_manifest_is_needed() {
        for missing in GOOD.lines().filter(|line| line.contains(" = ")) {
            let text = GOOD.replace(missing, "");
            assert_eq!(
                faults(&text).len(),
                1,
                "without {missing}: {:?}",
                faults(&text)
            );
        }
        let empty = GOOD.replace("Sessions.", " ");
        assert_eq!(
            faults(&empty),
            ["crates/store/Cargo.toml: say in `description` what the package is"]
        );
        assert_eq!(faults("not toml").len(), 1);
    }

    #[test]
    fn our_packages_have_one_version() {
        let workspace = |asked: &str| {
            format!(
                "[workspace.package]\nversion = \"1.2.3\"\n[workspace.dependencies]\n\
                 serde = \"1\"\nplimsoll-store = {{ {asked}path = \"crates/store\" }}\n"
            )
        };
        let faults = |asked| versions(&workspace(asked));
        assert_eq!(faults("version = \"1.2.3\", "), [""; 0]);
        for wrong in ["", "version = \"1.2.2\", "] {
            assert_eq!(
                faults(wrong),
                ["`plimsoll-store` is asked for in another version than `[workspace.package]` has"]
            );
        }
    }
}
