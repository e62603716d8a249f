//! What a wrong name or text was probably meant to be. It suggests; it never corrects.

use std::path::{Path, PathBuf};

/// A folder with more entries than this is not searched for a similar name.
const SIBLINGS: usize = 1_000;
/// How alike two names are at least, of 1.
const ALIKE: f64 = 0.6;
/// Longer texts than this are not compared: the comparison is quadratic.
const COMPARED: usize = 300;

/// The entry of the same folder whose name is most like the last name of `path`.
pub(crate) fn sibling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let entries = path.parent()?.read_dir().ok()?.take(SIBLINGS);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    // The order of a folder is chance.
    names.sort_unstable();
    let near = nearest(name, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}

/// The candidate most like `wanted`, the first of equals; `None` where none is alike.
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

/// How alike two texts are, of 1; `None` where it is not worth finding out.
fn likeness(a: &str, b: &str) -> Option<f64> {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    // More than this apart in length, they cannot be alike.
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
