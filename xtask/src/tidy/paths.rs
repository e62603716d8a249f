//! Checks that nothing in the repository refers to paths of the machine it was written on.

use super::fault::Fault;
use super::tree::Tree;

/// Top folders of machine paths. A path is a fault if it begins with one of them.
const PLACES: [&str; 4] = ["/home/", "/root/", "/tmp/", "/work/"];

/// This file, which has to name them.
const THIS_FILE: &str = "xtask/src/tidy/paths.rs";

/// The folders checked in Rust files. The others are legitimate data in code that handles paths.
const IN_RUST: [&str; 1] = ["/work/"];

/// Returns absolute paths of a machine in docs, settings, scripts and sources.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for file in tree.files() {
        let Some(text) = &file.text else {
            continue;
        };
        let places: &[&str] = match file.path.rsplit('.').next() {
            _ if file.path == THIS_FILE => continue,
            Some("rs") => &IN_RUST,
            Some("md" | "toml" | "sh" | "yml" | "yaml") => &PLACES,
            _ if file.path.starts_with(".ci/") => &PLACES,
            _ => continue,
        };
        for (line, content) in (1..).zip(text.lines()) {
            for place in places {
                if begins_in(content, place) {
                    let text = format!(
                        "`{place}` is a place on one machine: say it relative to the repository"
                    );
                    faults.push(Fault::at(&file.path, line, text));
                }
            }
        }
    }
    faults
}

fn begins_in(line: &str, place: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "/._-~}$".contains(c);
    line.match_indices(place).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn paths_of_a_machine_are_found_and_others_are_not() {
        let table = [
            ("a.md", "cd /work/main", 1),
            ("a.md", "see `/root/x` and (/tmp/y)", 2),
            (
                "a.md",
                "crates/work/src, https://example.com/home/x, $HOME/tmp/x",
                0,
            ),
            (".ci/run", "cd /work/main", 1),
            ("a.toml", "path = \"/home/me\"", 1),
            ("a.rs", "let a = \"/work/main\"; let b = \"/tmp/b\";", 1),
            ("a.json", "/work/main", 0),
        ];
        for (path, text, number) in table {
            let faults = check(&Tree::of(&[(path, text)]));
            assert_eq!(places(&faults).len(), number, "{path}: {text}");
        }
    }
}
