//! `cargo xtask bench`: runs every benchmark of the workspace, optimised, and collects the rows
//! that they print (`| what | figure | required | verdict |`) in one table.

use std::path::Path;

use serde_json::Value;

use crate::command::{Job, Stream};
use crate::error::Error;

const PAGE: &str = "BENCHMARKS.md";
/// The lines before and after the table in the page.
const BEGIN: &str = "<!-- table: cargo xtask bench --save -->";
const END: &str = "<!-- end of table -->";
const HEAD: &str = "| what | figure | required | verdict |\n|---|---|---|---|\n";
/// The verdict of a figure that misses its requirement.
const MISSED: &str = "MISSED";
/// Maximum sampling time of a benchmark that sets none itself, in seconds. All of them end within
/// minutes.
const DIVAN_MAX_TIME: &str = "1";

/// The destination of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Printed,
    /// Its rows with a requirement replace the table in [`PAGE`].
    Saved,
}

/// Runs the benchmarks. `filter` is passed to them unchanged.
pub(crate) fn run(root: &Path, filter: &[String], table: Table) -> Result<(), Error> {
    let metadata = Job::cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .read()?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| Error::Unreadable {
        what: "what `cargo metadata` printed".to_owned(),
        why: error.to_string(),
    })?;
    let names = benches(&metadata);
    if names.is_empty() {
        println!("no crate has a benchmark yet");
        return Ok(());
    }
    println!("benchmarks: {}", names.join(", "));
    // Only targets under `benches/`: a plain `cargo bench` would also build every unit test in
    // release mode and run none of them.
    let mut job = Job::cargo(root)
        .env("DIVAN_MAX_TIME", DIVAN_MAX_TIME)
        .args(["bench", "--workspace", "--bench", "*"]);
    if !filter.is_empty() {
        job = job.args(["--"]).args(filter);
    }
    let mut rows = String::new();
    job.watch(Stream::Out, |line| {
        if line.starts_with("| ") {
            rows.push_str(line);
        }
    })?;
    println!("\n{HEAD}{rows}");
    if table == Table::Saved {
        let path = root.join(PAGE);
        let page = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
        let page = with_table(&page, &required(&rows)).ok_or_else(|| Error::Unreadable {
            what: PAGE.to_owned(),
            why: format!("there is no `{BEGIN}` followed by `{END}`"),
        })?;
        std::fs::write(&path, page).map_err(Error::file(&path))?;
    }
    match rows.lines().filter(|row| row.contains(MISSED)).count() {
        0 => Ok(()),
        missed => Err(Error::Missed(missed)),
    }
}

/// Returns the rows that have a requirement.
fn required(rows: &str) -> String {
    let has_verdict = |row: &&str| !row.trim_end().ends_with("| |");
    rows.split_inclusive('\n').filter(has_verdict).collect()
}

/// Returns the page with its table replaced by these rows. `None` if the page has no place for a
/// table.
fn with_table(page: &str, rows: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{HEAD}{rows}\n{END}{after}"))
}

/// Returns the bench targets, as `package/target`.
fn benches(metadata: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for package in list(metadata, "packages") {
        for target in list(package, "targets") {
            if list(target, "kind").iter().any(|kind| kind == "bench") {
                let name =
                    |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
                names.extend(
                    name(package)
                        .zip(name(target))
                        .map(|(p, t)| format!("{p}/{t}")),
                );
            }
        }
    }
    names
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bench_targets_are_named() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "targets": [
                { "name": "a", "kind": ["lib"] },
                { "name": "speed", "kind": ["bench"] },
            ] },
            { "name": "b", "targets": [{ "name": "b", "kind": ["bin"] }] },
        ] });
        assert_eq!(benches(&metadata), ["a/speed"]);
        assert!(benches(&serde_json::json!({})).is_empty());
    }

    #[test]
    fn rows_without_a_requirement_are_only_printed() {
        let rows = "| a | 1 s | ≤ 2 s | holds |\n| b | 1 s | | |\n| c | 3 s | ≤ 2 s | MISSED |\n";
        assert_eq!(
            required(rows),
            "| a | 1 s | ≤ 2 s | holds |\n| c | 3 s | ≤ 2 s | MISSED |\n"
        );
    }

    #[test]
    fn a_table_takes_the_place_of_the_old_one() {
        let page = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nAfter.\n");
        let once = with_table(&page, "| a | 1 × | | |\n").unwrap();
        assert_eq!(
            once,
            format!("# Title\n\n{BEGIN}\n\n{HEAD}| a | 1 × | | |\n\n{END}\n\nAfter.\n")
        );
        assert_eq!(with_table(&once, "| a | 1 × | | |\n").unwrap(), once);
        assert_eq!(with_table("no table", ""), None);
    }
}
