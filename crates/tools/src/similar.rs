//! Finds the most similar name or text, for suggestions in errors.

use std::path::{Path, PathBuf};

/// Maximum number of entries of a directory that are compared.
const SIBLINGS: usize = 1_000;
/// Minimum similarity of two names, from 0 to 1.
const ALIKE: f64 = 0.6;
/// Maximum length of compared texts: the comparison is quadratic.
const COMPARED: usize = 300;

/// Returns the entry of the same directory whose name is most similar to the last name of `path`.
pub(crate) fn sibling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let entries = path.parent()?.read_dir().ok()?.take(SIBLINGS);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    // Directory entries have no defined order.
    names.sort_unstable();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}

/// Returns the candidate that is most similar to `wanted`, the first one of equals; `None` if none is
/// similar.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut best = None;
    let mut best_score = ALIKE;
    for candidate in candidates {
        if let Some(score) = likeness(wanted, candidate)
            && score > best_score
        {
            best = Some(candidate);
            best_score = score;
        }
    }
    best
}

/// Returns the similarity of two texts, from 0 to 1; `None` if it is certainly too low, or if they are
/// too long.
fn likeness(a: &str, b: &str) -> Option<f64> {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    // With such different lengths they cannot be similar.
    let hopeless = long > COMPARED || (short as f64) < long as f64 * ALIKE;
    (!hopeless).then(|| strsim::normalized_damerau_levenshtein(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_is_named_or_none() {
        let names = ["bash", "read", "write", "edit", "list", "glob", "grep"];
        for (wanted, near) in [
            ("reed", Some("read")),
            ("wirte", Some("write")),
            ("globs", Some("glob")),
            ("rm", None),
            ("", None),
            ("something", None),
        ] {
            assert_eq!(nearest(wanted, names.into_iter()), near, "{wanted}");
        }
    }
}
