//! Checks that nothing is left for later: no notes to oneself, no unfinished branches, no test or
//! example that never runs. Open work belongs into an issue.

use super::fault::Fault;
use super::markdown;
use super::source::{SourceTokenKind, SourceTokens, Token};
use super::tree::Tree;

/// Notes to oneself, as found in comments.
const NOTES: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// Returns leftovers in code, comments and prose.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.rust() {
        let source = SourceTokens::of(file, text);
        let comments = source.tokens().iter().filter(|token| !token.is_code());
        for (line, text) in comments.flat_map(Token::lines) {
            if let Some(note) = note_in(text) {
                faults.push(Fault::at(&file.path, line, note));
            }
        }
        for (line, text) in source
            .tokens()
            .iter()
            .filter(|token| token.kind == SourceTokenKind::Doc)
            .flat_map(Token::lines)
        {
            if is_ignored_example(text) {
                let text =
                    "an example that never runs: let it compile (`no_run`) or call it `text`";
                faults.push(Fault::at(&file.path, line, text));
            }
        }
        for (line, text) in unfinished(&source.code()) {
            faults.push(Fault::at(&file.path, line, text));
        }
    }
    for (file, text) in tree.markdown() {
        for (line, prose) in markdown::prose(text) {
            if let Some(note) = note_in(&prose) {
                faults.push(Fault::at(&file.path, line, note));
            }
        }
    }
    faults
}

fn note_in(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let note = words.find(|word| NOTES.contains(word))?;
    Some(format!("`{note}`: do it now, or file an issue"))
}

/// Checks for the beginning of a code block in a doc comment that rustdoc would skip.
fn is_ignored_example(comment: &str) -> bool {
    let Some((_, info)) = comment.split_once("```") else {
        return false;
    };
    info.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| word == "ignore")
}

fn unfinished(code: &[Token<'_>]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let text = |at: usize| code.get(at).map(|token| token.text);
    let mut attribute_depth = 0_usize;
    for (at, token) in code.iter().enumerate() {
        match token.text {
            "[" if attribute_depth > 0 || at.checked_sub(1).and_then(text) == Some("#") => {
                attribute_depth += 1;
            }
            "]" => attribute_depth = attribute_depth.saturating_sub(1),
            "ignore" if attribute_depth > 0 && token.kind == SourceTokenKind::Word => {
                found.push((token.line, "a test that never runs: mend it or remove it"));
            }
            "todo" | "unimplemented" if text(at + 1) == Some("!") => {
                found.push((
                    token.line,
                    "an unfinished branch: write it, or return an error",
                ));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn leftovers_are_found_in_code_comments_and_prose() {
        let text = "\
//! Head.
// TODO: later
/// ```ignore
/// a();
/// ```
fn a() { todo!() }
#[test]
#[ignore = \"slow\"]
fn b() {}
#[cfg_attr(windows, ignore)]
fn c() { let fine = [\"TODO\", \"#[ignore]\"]; ignore::Walk::new(); a[ignore]; }
";
        let tree = Tree::of(&[("a.rs", text), ("b.md", "Fine: `TODO`.\n\nFIXME soon.\n")]);
        assert_eq!(
            places(&check(&tree)),
            ["a.rs:2", "a.rs:3", "a.rs:6", "a.rs:8", "a.rs:10", "b.md:3"]
        );
    }
}
