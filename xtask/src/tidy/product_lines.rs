//! Limits the code of the product: the lines of all crates together may not exceed the figure in
//! `xtask/sizes.txt`. Whoever raises it does so in the commit that needs it, with the reason.

use std::collections::BTreeMap;
use std::fmt;

use super::fault::Fault;
use super::tree::{self, File, Tree};

/// The file with the budget of each crate and the allowed sum.
pub(crate) const BUDGETS: &str = "xtask/sizes.txt";
/// The line of [`BUDGETS`] that limits the sum.
pub(crate) const SUM: &str = "sum";
/// The crates that only developers use. They have a budget, but do not count for the sum.
const DEVELOPERS: [&str; 2] = ["mock", "testkit"];
/// Folders in a crate that are not part of its product.
const APART: [&str; 4] = ["benches", "examples", "fuzz", "testing"];

/// The lines of code of each crate beside its budget.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    lines: BTreeMap<String, usize>,
    budgets: BTreeMap<String, usize>,
}

impl Sizes {
    /// Counts the crates of a tree.
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut sizes = Self::default();
        for (file, text) in tree.rust().filter(|(file, _)| is_product(file)) {
            if let Some(name) = file.crate_folder() {
                *sizes.lines.entry(name.to_owned()).or_default() += tree::code_lines(text);
            }
        }
        let budgets = tree.file(BUDGETS).and_then(|file| file.text.as_deref());
        for line in budgets.unwrap_or_default().lines() {
            let (name, number) = line.split_once(' ').unwrap_or_default();
            if let Ok(number) = number.trim().replace('_', "").parse() {
                sizes.budgets.insert(name.to_owned(), number);
            }
        }
        sizes
    }

    /// Returns the lines of all crates except those for developers.
    pub(crate) fn sum(&self) -> usize {
        let product = self.lines.iter().filter(|(name, _)| !is_dev(name));
        product.map(|(_, lines)| lines).sum()
    }

    /// Returns the largest sum that is allowed.
    pub(crate) fn allowed(&self) -> Option<usize> {
        self.budgets.get(SUM).copied()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let budget = |name: &str| self.budgets.get(name).map(usize::to_string);
        writeln!(f, "{:<12} {:>7} {:>7}", "crate", "lines", "wanted")?;
        let mut crates: Vec<_> = self.lines.iter().collect();
        crates.sort_by_key(|(_, lines)| std::cmp::Reverse(**lines));
        for (name, lines) in crates {
            let note = if is_dev(name) { "  for developers" } else { "" };
            let wanted = budget(name).unwrap_or_else(|| "0".to_owned());
            writeln!(f, "{name:<12} {lines:>7} {wanted:>7}{note}")?;
        }
        let allowed = self.allowed().unwrap_or_default();
        write!(
            f,
            "{:<12} {:>7}, at most {allowed} allowed",
            SUM,
            self.sum()
        )
    }
}

/// Returns a fault if the sum exceeds the allowed one.
pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let sizes = Sizes::of(tree);
    let (sum, allowed) = (sizes.sum(), sizes.allowed().unwrap_or(usize::MAX));
    if sum <= allowed {
        return Vec::new();
    }
    let text = format!(
        "the crates have {sum} lines of code, {} more than allowed: remove some, or raise the figure here and say \
         why in the commit",
        sum - allowed
    );
    vec![Fault::of(BUDGETS, text)]
}

fn is_dev(name: &str) -> bool {
    DEVELOPERS.contains(&name)
}

fn is_product(file: &File) -> bool {
    let is_apart = file.path.split('/').any(|part| APART.contains(&part));
    !file.is_test() && !is_apart && !file.path.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fault::places;

    #[test]
    fn the_sum_of_the_product_is_limited() {
        let code = "//! Head.\n\nfn a() {}\n// Note.\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let files = |sum: &'static str| {
            Tree::of(&[
                ("crates/a/src/lib.rs", code),
                ("crates/b/src/lib.rs", code),
                ("crates/b/src/testing/fake.rs", code),
                ("crates/b/tests/all.rs", code),
                ("crates/mock/src/lib.rs", code),
                ("xtask/src/main.rs", code),
                (BUDGETS, sum),
            ])
        };
        assert_eq!(Sizes::of(&files("a 2\nsum 4\n")).sum(), 4);
        assert!(check(&files("a 2\nsum 4\n")).is_empty());
        assert_eq!(places(&check(&files("sum 3\n"))), ["xtask/sizes.txt:0"]);
        let table = Sizes::of(&files("a 1\nsum 1_000\n")).to_string();
        assert!(table.contains("a                  2       1\n"), "{table}");
        assert!(
            table.ends_with("sum                4, at most 1000 allowed"),
            "{table}"
        );
    }
}
