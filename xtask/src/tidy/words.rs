//! Checks for words that are not used here: each thing has one name.
//!
//! Foreign names are allowed: code in backticks, strings without a space (keys of a wire format),
//! strings in tests, packages we depend on, and exceptions by `tidy:allow`.

use std::collections::BTreeSet;

use super::allow::FileExceptions;
use super::fault::Fault;
use super::markdown;
use super::source::{CodePart, SourceTokenKind, SourceTokens};
use super::tree::Tree;

/// A word or a pair of words in all its forms, and the advice. Forms are listed one by one, so that
/// no other word matches by accident.
struct BannedWord {
    forms: &'static [&'static [&'static str]],
    say: &'static str,
}

/// The banned words. The first form is the name for `tidy:allow`.
const BANNED: [BannedWord; 7] = [
    BannedWord {
        forms: &[&["conversation"], &["conversations"]],
        say: "say session, or transcript",
    },
    BannedWord {
        forms: &[&["observation"], &["observations"]],
        say: "say tool result",
    },
    BannedWord {
        forms: &[
            &["condense"],
            &["condensed"],
            &["condenser"],
            &["condenses"],
        ],
        say: "say compact, or summarize",
    },
    BannedWord {
        forms: &[
            &["function", "call"],
            &["function", "calls"],
            &["function", "calling"],
        ],
        say: "say tool call",
    },
    BannedWord {
        forms: &[&["helper"], &["helpers"]],
        say: "name it for what it does",
    },
    BannedWord {
        forms: &[&["util"], &["utils"]],
        say: "name it for what it does",
    },
    BannedWord {
        forms: &[&["manager"], &["managers"]],
        say: "name it for what it does",
    },
];

impl BannedWord {
    fn name(&self) -> String {
        self.forms
            .first()
            .map(|words| words.join(" "))
            .unwrap_or_default()
    }

    fn is_in(&self, words: &[String]) -> bool {
        self.forms.iter().any(|form| {
            let mut places = words.windows(form.len());
            places.any(|place| place.iter().zip(*form).all(|(a, b)| a == b))
        })
    }
}

/// Returns banned words in code, comments, prose and file names.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let foreign = foreign_names(tree);
    let mut faults = Vec::new();
    for (file, text) in tree.rust() {
        let mut found = Vec::new();
        for token in SourceTokens::of(file, text).tokens() {
            match token.kind {
                SourceTokenKind::Word if !foreign.contains(token.text) => {
                    found.extend(banned_in(token.text).map(|hit| (token.line, hit)));
                }
                SourceTokenKind::Text
                    if token.part == CodePart::Product && token.text.contains(' ') =>
                {
                    for (line, text) in token.lines() {
                        let text = text.replace("\\n", " ");
                        found.extend(banned_in(&text).map(|hit| (line, hit)));
                    }
                }
                SourceTokenKind::Comment | SourceTokenKind::Doc => {
                    for (line, text) in token.lines() {
                        let text = outside_backticks(text);
                        found.extend(banned_in(&text).map(|hit| (line, hit)));
                    }
                }
                _ => {}
            }
        }
        tell(&file.path, text, found, &mut faults);
    }
    for (file, text) in tree.markdown() {
        let prose = markdown::prose(text);
        let hits = prose
            .iter()
            .flat_map(|(line, words)| banned_in(words).map(|hit| (*line, hit)));
        tell(&file.path, text, hits.collect(), &mut faults);
    }
    for file in tree.files() {
        if file.path.ends_with(".rs") || file.path.ends_with(".md") {
            let text = file.text.as_deref().unwrap_or_default();
            let hits = banned_in(&file.path).map(|hit| (0, hit)).collect();
            tell(&file.path, text, hits, &mut faults);
        }
    }
    faults
}

fn tell(path: &str, text: &str, found: Vec<(usize, &BannedWord)>, faults: &mut Vec<Fault>) {
    let allowed = FileExceptions::of(text);
    for (line, hit) in found {
        let word = hit.name();
        if !allowed.covers(line, &word) {
            let cure = format!("{} (a name given by others: `tidy:allow({word})`)", hit.say);
            faults.push(Fault::at(path, line, format!("`{word}`: {cure}")));
        }
    }
}

/// Returns all banned words in a text. An identifier counts as several words.
fn banned_in(text: &str) -> impl Iterator<Item = &'static BannedWord> {
    let words = words(text);
    BANNED.iter().filter(move |banned| banned.is_in(&words))
}

/// Splits prose or an identifier into words, in lower case.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphabetic()) {
        let mut word = String::new();
        for c in run.chars() {
            let hump = c.is_uppercase() && word.ends_with(char::is_lowercase);
            if hump {
                words.push(std::mem::take(&mut word).to_lowercase());
            }
            word.push(c);
        }
        if !word.is_empty() {
            words.push(word.to_lowercase());
        }
    }
    words
}

fn outside_backticks(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').step_by(2).collect();
    pieces.join(".")
}

/// Returns the names of foreign packages, as they are written in code.
fn foreign_names(tree: &Tree) -> BTreeSet<String> {
    let lock = tree
        .file("Cargo.lock")
        .and_then(|file| file.text_if(".lock"));
    let names = lock.unwrap_or_default().lines().filter_map(|line| {
        let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
        Some(name.replace('-', "_"))
    });
    names.filter(|name| !name.starts_with("plimsoll")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let lock = "[[package]]\nname = \"futures-util\"\n";
        let tree = Tree::of(&[(path, text), ("Cargo.lock", lock)]);
        let faults = check(&tree);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unused_words_are_found_wherever_they_hide() {
        let table = [
            ("a.rs", "struct ContextManager;", 1),
            ("a.rs", "fn string_utils() {}", 1),
            ("a.rs", "fn f(a: FunctionCall) {}", 1),
            ("a.rs", "// A small helper.", 1),
            ("a.rs", "/// The function\n/// call.", 0),
            ("a.rs", "//! Function calls are\n//! observations.", 2),
            ("a.rs", "let s = \"start a new conversation\";", 1),
            ("a.md", "# Conversations\n\nA helper.\n", 2),
            ("src/utils.rs", "", 1),
        ];
        for (path, text, number) in table {
            assert_eq!(
                faults(path, text).len(),
                number,
                "{text}: {:?}",
                faults(path, text)
            );
        }
    }

    #[test]
    fn names_of_others_and_other_words_are_left_alone() {
        let table = [
            ("a.rs", "use futures_util::Stream;"),
            ("a.rs", "let key = \"function_call\";"),
            (
                "a.rs",
                "// As `ConversationBuffer` does; utility and management are fine.",
            ),
            ("a.rs", "std::thread::spawn(f);"),
            (
                "tests/a.rs",
                "let said = \"bound to a different conversation\";",
            ),
            (
                "a.rs",
                "let said = \"a different conversation\"; // tidy:allow(conversation)",
            ),
            (
                "a.rs",
                "// tidy:allow-file(function call)\n\n\nfn function_call() {}",
            ),
            (
                "a.md",
                "Their `Conversation` is our session.\n\n```text\nhelper\n```\n",
            ),
        ];
        for (path, text) in table {
            assert_eq!(faults(path, text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_advice_names_place_word_and_cure() {
        assert_eq!(
            faults("a.md", "One\n\nfunction calling\n"),
            [
                "a.md:3: `function call`: say tool call (a name given by others: `tidy:allow(function call)`)"
            ]
        );
    }
}
