//! Finds the names that a text mentions most: identifiers, paths and file names.
//!
//! The marker of a shortened tool result lists them, so that the model can decide which
//! results to recall without reading the whole result again.

use std::collections::HashMap;

/// The minimum and maximum length of a name, in bytes.
const MIN_NAME: usize = 6;
const MAX_NAME: usize = 40;
/// The maximum number of different names that are counted in a text.
const MAX_NAMES: usize = 1_000;

/// Returns the names that `text` mentions most often, separated by `, `, in at most `max` bytes.
/// Omits names in `shown`, and parts of them.
///
/// A name has an underscore, a capital letter after its first letter, or letters and digits. Among
/// names that are mentioned equally often, the first ones are preferred.
pub(crate) fn prominent_names(text: &str, shown: &[&str], max: usize) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for name in names_of(text) {
        if let Some(count) = counts.get_mut(name) {
            *count += 1;
        } else if names.len() < MAX_NAMES {
            counts.insert(name, 1);
            names.push(name);
        }
    }
    names.retain(|name| !shown.iter().any(|shown| shown.contains(name)));
    // The sort is stable: names with equal counts stay in order.
    names.sort_by_key(|name| std::cmp::Reverse(counts.get(name).copied()));
    let mut list = String::new();
    for name in names {
        let separator = if list.is_empty() { "" } else { ", " };
        if list.len() + separator.len() + name.len() <= max {
            list.push_str(separator);
            list.push_str(name);
        }
    }
    list
}

fn names_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let mut before = "";
    text.split_inclusive(move |letter| !is_part(letter))
        .filter_map(move |piece| {
            let word = piece.trim_end_matches(|letter| !is_part(letter));
            let separator = piece.get(word.len()..).unwrap_or_default();
            let before = std::mem::replace(&mut before, separator);
            // `\nfoo` in a JSON text means `foo`, and `\u{1b}[31mfoo` has a colour code before it.
            let is_escaped = before == "\\" || (before == "[" && word.starts_with(is_digit));
            let word = word.trim_matches(|letter| "-./".contains(letter));
            (!is_escaped && is_name(word)).then_some(word)
        })
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn is_name(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    (MIN_NAME..=MAX_NAME).contains(&word.len())
        && has(u8::is_ascii_alphabetic)
        && (has(|letter| *letter == b'_')
            || has(u8::is_ascii_digit)
            || word
                .bytes()
                .skip(1)
                .any(|letter| letter.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_by_how_often_they_are_mentioned() {
        let text = "The readConfig of src/config_file.rs calls parse_line, and parse_line calls \
                    itself. See ORDER-000042, 12345678 and plain words.";
        let all = "parse_line, readConfig, src/config_file.rs, ORDER-000042";
        assert_eq!(prominent_names(text, &[], 200), all);
        assert_eq!(
            prominent_names(text, &[], 40),
            "parse_line, readConfig, ORDER-000042"
        );
        assert_eq!(
            prominent_names(text, &["parse_line", "the readConfig"], 200),
            "src/config_file.rs, ORDER-000042"
        );
        assert_eq!(prominent_names("nothing but prose", &[], 200), "");
    }

    #[test]
    fn escapes_and_colours_are_no_names() {
        let text = r#"{"out":"\nLetBody \uD83D"}"#;
        assert_eq!(prominent_names(text, &[], 200), "");
        assert_eq!(prominent_names("\u{1b}[31mTestBody passed", &[], 200), "");
        assert_eq!(prominent_names("a[0]: oneName", &[], 200), "oneName");
    }
}
