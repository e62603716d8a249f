//! `cargo xtask tidy`: the rules of this repository that a program can check.
//!
//! Each rule is a pure function from a tree of files to faults. Only `tree` reads the disk, only
//! `prose` asks git for changes, and only this file runs cargo.

mod fault;
mod heads;
mod layers;
mod leftovers;
mod links;
mod manifests;
mod markdown;
mod paths;
mod product_lines;
mod prose;
mod purity;
mod sizes;
mod tree;

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use fault::Fault;
use product_lines::{BUDGETS, SUM, Sizes};
use tree::Tree;

/// A rule that needs only the files.
type Rule = fn(&Tree) -> Vec<Fault>;

/// All such rules, with the names shown beside their faults.
const RULES: [(&str, Rule); 9] = [
    ("heads", heads::check),
    ("sizes", sizes::check),
    ("product lines", product_lines::check),
    ("purity", purity::check),
    ("layers", layers::check),
    ("manifests", manifests::check),
    ("leftovers", leftovers::check),
    ("links", links::check),
    ("paths", paths::check),
];

/// Prints the lines of code of each crate beside its budget. `lower` writes the sum into the file as the
/// allowed one if it is smaller than that.
pub(crate) fn print_sizes(root: &Path, lower: bool) -> Result<(), Error> {
    let sizes = Sizes::of(&Tree::read(root)?);
    println!("{sizes}");
    let Some(allowed) = sizes
        .allowed()
        .filter(|allowed| lower && sizes.sum() < *allowed)
    else {
        return Ok(());
    };
    let path = root.join(BUDGETS);
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    let text = text.replace(
        &format!("{SUM} {allowed}\n"),
        &format!("{SUM} {}\n", sizes.sum()),
    );
    std::fs::write(&path, text).map_err(Error::file(&path))
}

/// Checks every rule and lists all faults.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let tree = Tree::read(root)?;
    let mut count = 0;
    let mut tell = |rule: &str, faults: Vec<Fault>| {
        count += faults.len();
        for fault in faults {
            println!("{fault}  [{rule}]");
        }
    };
    for (name, rule) in RULES {
        tell(name, rule(&tree));
    }
    for name in purity::crates_in(&tree) {
        let dependencies = Job::cargo(root)
            .args(["tree", "--package", name, "--edges", "normal"])
            .args(["--target", "all", "--prefix", "none"])
            .read()?;
        tell("purity", purity::check_dependencies(name, &dependencies));
    }
    for warning in prose::warnings(root) {
        println!("warning: {warning}  [prose]");
    }
    println!("{} files, {count} fault(s)", tree.files().len());
    if count == 0 {
        Ok(())
    } else {
        Err(Error::Untidy(count))
    }
}
