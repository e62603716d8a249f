//! Limits the sizes of files: a source file can be read in one sitting, and a clone stays fast.

use super::fault::Fault;
use super::tree::{MAX_FILE, Tree, code_lines};

/// Maximum lines of code in a file, without tests, comments and empty lines. A longer file contains
/// two things, and has to be split.
const MAX_LINES: usize = 500;

/// Returns files that are too long or too large.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, text) in tree.rust().filter(|(file, _)| !file.is_test()) {
        let lines = code_lines(text);
        if lines > MAX_LINES {
            let text = format!("{lines} lines of code; split it before {MAX_LINES}");
            faults.push(Fault::of(&file.path, text));
        }
    }
    for file in tree.files().iter().filter(|file| file.bytes > MAX_FILE) {
        let text = format!("{} bytes; a file may have {MAX_FILE}", file.bytes);
        faults.push(Fault::of(&file.path, text));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn long_and_heavy_files_are_found() {
        let fits = format!("//! Head.\n\n{}", "fn a() {}\n".repeat(MAX_LINES));
        let long = format!("{fits}fn one_more() {{}}\n");
        let heavy = "x".repeat(1 + MAX_FILE as usize);
        let tests = format!(
            "{fits}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "fn t() {}\n".repeat(9)
        );
        let tree = Tree::of(&[
            ("fits.rs", &fits),
            ("long.rs", &long),
            ("tested.rs", &tests),
            ("tests/long.rs", &long),
            ("data.json", &heavy),
        ]);
        assert_eq!(places(&check(&tree)), ["long.rs:0", "data.json:0"]);
    }
}
