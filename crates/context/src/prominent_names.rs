//! Finds the names that a text mentions most: identifiers, paths and file names.
//!
//! The marker of a shortened tool result lists them, so that the model can decide which
//! results to recall without reading the whole result again.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::handover::each_name;

/// The minimum and maximum length of a name, in bytes.
const MIN_NAME: usize = 6;
const MAX_NAME: usize = 40;
/// The maximum number of different names that are counted in a text.
const MAX_NAMES: usize = 1_000;

/// Returns the names that `text` mentions most often, separated by `, `, in at most `max` bytes.
/// Omits names in `shown`, and parts of them. Among names that are mentioned equally often, the first
/// ones are preferred.
pub(crate) fn prominent_names(text: &str, shown: &[&str], max: usize) -> String {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    each_name(text, &mut |name| {
        if let Some(count) = counts.get_mut(name) {
            *count += 1;
        } else if names.len() < MAX_NAMES && (MIN_NAME..=MAX_NAME).contains(&name.len()) {
            counts.insert(name, 1);
            names.push(name);
        }
        true
    });
    names.retain(|name| !shown.iter().any(|shown| shown.contains(name)));
    // The sort is stable: names with equal counts stay in order.
    names.sort_by_key(|name| Reverse(counts.get(name).copied()));
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
    fn escapes_and_colours_belong_to_no_name() {
        let text = r#"{"out":"\nletBody \uD83D"}"#;
        assert_eq!(prominent_names(text, &[], 200), "letBody");
        assert_eq!(prominent_names("\u{1b}[31mTestBody passed", &[], 200), "");
        assert_eq!(prominent_names("a[0]: oneName", &[], 200), "oneName");
    }
}
