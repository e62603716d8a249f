//! Checks the layers of the packages: dependencies only point to lower layers. A package
//! that is missing from the table is a fault; add it here and to the map.

use super::fault::Fault;
use super::manifests::{DependencyKind, Manifest};
use super::tree::Tree;

/// Every package and its layer. A package depends only on lower layers.
const LAYERS: [(&str, u8); 17] = [
    ("plimsoll-context", 1),
    ("plimsoll-agent", 2),
    ("plimsoll-wire", 2),
    ("plimsoll-core", 3),
    ("plimsoll-providers", 4),
    ("plimsoll-tools", 4),
    ("plimsoll-mcp", 4),
    ("plimsoll-store", 4),
    ("plimsoll-foreign", 4),
    ("plimsoll-logs", 4),
    ("plimsoll-restate", 4),
    ("plimsoll", 5),
    ("plimsoll-cli", 6),
    ("plimsoll-replay", 6),
    (MOCK, 7),
    (TEST_KIT, 7),
    ("xtask", 7),
];

/// Pairs of crates of the same layer. The first may depend on the second.
const NEIGHBORS: [(&str, &str); 4] = [
    ("plimsoll-logs", "plimsoll-foreign"),
    ("plimsoll-restate", "plimsoll-store"),
    // One configuration of TLS for all clients.
    ("plimsoll-restate", "plimsoll-providers"),
    ("plimsoll-mcp", "plimsoll-providers"),
];

/// The kit that tests share.
const TEST_KIT: &str = "plimsoll-testkit";

/// The mock servers, a program and a library for developers.
const MOCK: &str = "plimsoll-mock";

/// The packages that only tests and programs for developers depend on, whatever their layer.
pub(crate) const FOR_TESTS: [&str; 2] = [TEST_KIT, MOCK];

/// Returns packages without a layer, and dependencies that point up or sideways.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.manifests() {
        // Another rule reports unreadable manifests.
        let Ok(manifest) = Manifest::of(text) else {
            continue;
        };
        let name = manifest.name();
        let Some(layer) = layer(name) else {
            let text = format!("{name} has no layer: give it one in xtask/src/tidy/layers.rs");
            faults.push(Fault::of(&file.path, text));
            continue;
        };
        for (kind, dependency) in manifest.dependencies() {
            if FOR_TESTS.contains(&dependency.as_str()) && kind == DependencyKind::Test {
                continue;
            }
            let Some(below) = self::layer(&dependency) else {
                continue;
            };
            let beside = NEIGHBORS.contains(&(name, dependency.as_str()));
            if below < layer || (below == layer && beside) {
                continue;
            }
            let text = format!(
                "{name} (layer {layer}) may not depend on {dependency} (layer {below}): dependencies point down"
            );
            faults.push(Fault::of(&file.path, text));
        }
    }
    faults
}

fn layer(name: &str) -> Option<u8> {
    let found = LAYERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, dependencies: &str) -> usize {
        let text = format!("[package]\nname = \"{name}\"\n{dependencies}");
        check(&Tree::of(&[("crates/x/Cargo.toml", &text)])).len()
    }

    #[test]
    fn arrows_point_down() {
        let table = [
            (
                "plimsoll-agent",
                "[dependencies]\nplimsoll-context.workspace = true",
                0,
            ),
            (
                "plimsoll-agent",
                "[dependencies]\nplimsoll-wire.workspace = true",
                1,
            ),
            (
                "plimsoll-context",
                "[dependencies]\nplimsoll-core.workspace = true",
                1,
            ),
            (
                "plimsoll-context",
                "[dev-dependencies]\nplimsoll-core.workspace = true",
                1,
            ),
            (
                "plimsoll-store",
                "[dev-dependencies]\nplimsoll-core.workspace = true",
                0,
            ),
            (
                "plimsoll-store",
                "[dev-dependencies]\nplimsoll-mock.workspace = true",
                0,
            ),
            (
                "plimsoll-store",
                "[dependencies]\nplimsoll-mock.workspace = true",
                1,
            ),
            (
                "plimsoll-store",
                "[build-dependencies]\nplimsoll = { path = \"../plimsoll\" }",
                1,
            ),
            (
                "plimsoll-store",
                "[target.'cfg(unix)'.dependencies]\nx = { package = \"plimsoll-cli\" }",
                1,
            ),
            (
                "plimsoll-foreign",
                "[dependencies]\nplimsoll-wire.workspace = true",
                0,
            ),
            (
                "plimsoll-wire",
                "[dependencies]\nplimsoll-foreign.workspace = true",
                1,
            ),
            (
                "plimsoll-context",
                "[dev-dependencies]\nplimsoll-testkit.workspace = true",
                0,
            ),
            (
                "plimsoll-cli",
                "[dependencies]\nplimsoll-testkit.workspace = true",
                1,
            ),
            ("plimsoll-store", "[dependencies]\nserde = \"1\"", 0),
            ("plimsoll-attic", "", 1),
        ];
        for (name, dependencies, number) in table {
            assert_eq!(faults(name, dependencies), number, "{name}: {dependencies}");
        }
    }
}
