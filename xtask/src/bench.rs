//! `cargo xtask bench`: every benchmark of the workspace in release mode, figures as the
//! benchmarks print them. It compares nothing and stores nothing.

use std::path::Path;

use serde_json::Value;

use crate::command::Job;
use crate::error::Error;

/// Runs the benchmarks; `filter` is handed to them as it is.
pub(crate) fn run(root: &Path, filter: &[String]) -> Result<(), Error> {
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
    // Only targets under `benches/`: a plain `cargo bench` also builds every unit test in
    // release mode, to run none of them.
    let job = Job::cargo(root).args(["bench", "--workspace", "--bench", "*"]);
    if filter.is_empty() {
        job.run()
    } else {
        job.args(["--"]).args(filter).run()
    }
}

/// The bench targets, as `package/target`.
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
}
