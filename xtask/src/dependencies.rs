//! `cargo xtask dependencies`: the number of crates that the library adds to a program, and the
//! time to compile them, compared with three other libraries for agents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::command::Job;
use crate::error::Error;

/// Each program: its name, its dependency line, and the features that it gets.
const PROGRAMS: [(&str, &str, &str); 6] = [
    (
        "plimsoll, `providers`",
        "plimsoll = { path = \"PLIMSOLL\", default-features = false, features = [\"providers\"] }",
        "loop, context, limits, models of 20 providers",
    ),
    (
        "plimsoll, `providers`, `tools`",
        "plimsoll = { path = \"PLIMSOLL\", default-features = false, features = [\"providers\", \"tools\"] }",
        "the same, and tools for files and commands",
    ),
    (
        "plimsoll, default",
        "plimsoll = { path = \"PLIMSOLL\" }",
        "the same, and sessions in SQLite, which is compiled along",
    ),
    (
        "rig-core 0.44.0, `reqwest`",
        "rig-core = { version = \"=0.44.0\", features = [\"reqwest\"] }",
        "loop, models of providers",
    ),
    (
        "yoagent 0.26.6",
        "yoagent = \"=0.26.6\"",
        "loop, context, models of providers, tools for files and commands",
    ),
    (
        "phi-core 0.15.2",
        "phi-core = \"=0.15.2\"",
        "loop, context, models of providers, tools for files and commands",
    ),
];

/// Prints the table. Each program is built from nothing, in a folder below `target`.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let folder = root.join("target/dependencies");
    println!("| program with | crates | CPU seconds to build | it has |\n|---|--:|--:|---|");
    for (name, dependency, has) in PROGRAMS {
        let plimsoll = root.join("crates/plimsoll");
        let dependency = dependency.replace("PLIMSOLL", &plimsoll.display().to_string());
        let (crates, seconds) = measure(&folder, &dependency)?;
        println!("| {name} | {crates} | {seconds:.0} | {has} |");
    }
    Ok(())
}

/// Returns the number of crates of a program with one dependency, and the CPU seconds of its build.
fn measure(folder: &Path, dependency: &str) -> Result<(usize, f64), Error> {
    let failed = || Error::file(folder);
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed())?;
    }
    fs::create_dir_all(folder.join("src")).map_err(failed())?;
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n\n[dependencies]\n{dependency}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).map_err(failed())?;
    fs::write(folder.join("src/main.rs"), "fn main() {}\n").map_err(failed())?;
    let tree = [
        "tree", "-e", "normal", "--prefix", "none", "--format", "{p}",
    ];
    let tree = Job::cargo(folder).args(tree).read()?;
    let crates: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    // A dependency from a registry is never compiled incrementally, so neither is ours. The last line of
    // the shell's `times` has the time of its children.
    let build = "CARGO_INCREMENTAL=0 cargo build --quiet --target-dir build && times";
    let times = Job::new("sh", folder).args(["-c", build]).read()?;
    let seconds = seconds(times.lines().last().unwrap_or_default());
    fs::remove_dir_all(folder).map_err(failed())?;
    // Without the program itself.
    Ok((crates.len().saturating_sub(1), seconds))
}

/// Returns the sum of a line such as `1m2.5s 0m3.5s`, in seconds.
fn seconds(times: &str) -> f64 {
    let parts = times.split_whitespace().filter_map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    });
    parts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_added() {
        assert!((seconds("1m2.5s 0m3.500s") - 66.0).abs() < 1e-9);
        assert!(seconds("") < 1e-9);
    }
}
