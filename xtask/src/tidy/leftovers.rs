//! Checks that nothing is left for later: no notes to oneself, no test or example that never runs.
//! Open work belongs into an issue. Clippy reports unfinished branches (`todo!`).

use regex::Regex;

use super::fault::Fault;
use super::markdown;
use super::tree::Tree;

/// Notes to oneself.
const NOTES: &str = r"\b(TODO|FIXME|XXX|HACK)\b";
/// Lines of Rust that leave something for later, and the advice.
const LEFT: [(&str, &str); 3] = [
    (
        r"^\s*//.*\b(TODO|FIXME|XXX|HACK)\b|;\s*//.*\b(TODO|FIXME|XXX|HACK)\b",
        "a note to oneself: do it now, or file an issue",
    ),
    (
        r"^\s*//[/!]\s*```.*\bignore\b",
        "an example that never runs: let it compile (`no_run`) or call it `text`",
    ),
    (
        r"^\s*#!?\[(ignore|cfg_attr\(.*\bignore)\b",
        "a test that never runs: repair it or remove it",
    ),
];

/// Returns leftovers in code, comments and prose.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let rules: Vec<(Regex, &str)> = LEFT
        .iter()
        .filter_map(|(pattern, advice)| Some((Regex::new(pattern).ok()?, *advice)))
        .collect();
    let mut faults = Vec::new();
    for (file, text) in tree.rust() {
        for (line, content) in (1..).zip(text.lines()) {
            for (_, advice) in rules.iter().filter(|(rule, _)| rule.is_match(content)) {
                faults.push(Fault::at(&file.path, line, *advice));
            }
        }
    }
    let notes = Regex::new(NOTES).ok();
    let is_note = |text: &str| notes.as_ref().is_some_and(|notes| notes.is_match(text));
    for (file, text) in tree.markdown() {
        let prose = markdown::prose(text).into_iter();
        for (line, _) in prose.filter(|(_, prose)| is_note(prose)) {
            faults.push(Fault::at(
                &file.path,
                line,
                "a note to oneself: file an issue",
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn leftovers_are_found_in_code_comments_and_prose() {
        // Each `@` is removed, so that this file has no leftovers itself.
        let text = "\
//! Head.
@// TODO: later
@/// ```ignore
@/// a();
@/// ```
fn a() { b(); // FIX@ME
}
@#[ignore = \"slow\"]
fn b() {}
@#[cfg_attr(windows, ignore)]
fn c() { let fine = [\"TODO\", \"#[ignore]\"]; ignore::Walk::new(); a[ignore]; }
"
        .replace('@', "");
        let tree = Tree::of(&[("a.rs", &text), ("b.md", "Fine: `TODO`.\n\nFIXME soon.\n")]);
        assert_eq!(
            places(&check(&tree)),
            ["a.rs:2", "a.rs:3", "a.rs:6", "a.rs:8", "a.rs:10", "b.md:3"]
        );
    }
}
