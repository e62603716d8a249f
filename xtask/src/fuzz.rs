//! `cargo xtask fuzz`: runs the targets in `fuzz/`, a workspace of its own, and prints the number
//! of executions. Findings are written to `fuzz/target`; the corpus in git changes only on request.

use std::path::Path;

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::tools;

/// Maximum length of a generated input, in bytes: several times the length of the seeds.
const MAX_LEN: usize = 8 * 1024;
/// Maximum length of an input in git, in bytes.
const KEPT_LEN: u64 = 4 * 1024;
/// Maximum number of inputs of one target in git, and their maximum size in bytes.
const KEPT_FILES: usize = 60;
const KEPT_BYTES: u64 = 96 * 1024;
/// Prefix of inputs that people added. They are never removed.
const SEED: &str = "seed-";

/// The treatment of inputs that reach new code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewInputs {
    /// They stay in `fuzz/target/corpus`.
    Aside,
    /// The smallest set with the same coverage is added to `fuzz/corpus`.
    Kept,
}

/// Runs one target or all targets.
pub(crate) fn run(
    root: &Path,
    chosen: Option<&str>,
    seconds: u64,
    found: NewInputs,
) -> Result<(), Error> {
    let fuzz = root.join("fuzz");
    let all = targets(&fuzz)?;
    let targets: Vec<&String> = match chosen {
        None => all.iter().collect(),
        Some(name) => all.iter().filter(|target| *target == name).collect(),
    };
    if targets.is_empty() {
        let names = all.join(", ");
        return Err(Error::Missing(format!(
            "there is no such target; there are: {names}"
        )));
    }
    let tool = tools::FUZZ.find(root)?;
    let mut rows = String::new();
    let mut broken = None;
    for target in targets {
        let grown = format!("target/corpus/{target}");
        let kept = format!("corpus/{target}");
        for folder in [&grown, &kept] {
            let folder = fuzz.join(folder);
            std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        }
        let mut tried = 0;
        let ran = job(&tool, &fuzz, target, [&grown, &kept])
            .args(search(seconds))
            .watch(Stream::Err, |line| {
                tried = executions(line).unwrap_or(tried)
            });
        let word = if ran.is_ok() { "ok" } else { "BROKEN" };
        rows.push_str(&format!("  {target:<18} {tried:>12} executions  {word}\n"));
        match ran {
            Ok(()) if found == NewInputs::Kept => keep(&tool, &fuzz, target)?,
            Ok(()) => {}
            Err(error) => broken = Some(error),
        }
    }
    print!("\n{seconds} s each\n{rows}");
    broken.map_or(Ok(()), Err)
}

/// Returns the options for searching inputs.
fn search(seconds: u64) -> Vec<String> {
    vec![
        format!("-max_total_time={seconds}"),
        format!("-max_len={MAX_LEN}"),
        "-timeout=10".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-print_final_stats=1".to_owned(),
    ]
}

/// Returns the options for minimizing the corpus. `-merge_control_file` is not given: libFuzzer
/// deletes that file before it writes it, even a device; by default it chooses a new name in the
/// temporary folder.
fn merge() -> Vec<String> {
    vec![
        "-set_cover_merge=1".to_owned(),
        format!("-max_len={KEPT_LEN}"),
    ]
}

/// Returns the command that runs a target, without a sanitizer. The targets parse foreign input in
/// safe Rust, so a sanitizer would only cost executions, and needs a nightly compiler.
fn job(tool: &Path, fuzz: &Path, target: &str, folders: [&String; 2]) -> Job {
    Job::new(tool, fuzz)
        .args(["fuzz", "run", "--fuzz-dir", ".", "--sanitizer", "none"])
        .args([target])
        .args(folders)
        .args(["--"])
}

fn targets(fuzz: &Path) -> Result<Vec<String>, Error> {
    let manifest = fuzz.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(Error::file(&manifest))?;
    let unreadable = |why: String| Error::Unreadable {
        what: manifest.display().to_string(),
        why,
    };
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| unreadable(error.to_string()))?;
    let bins = table.get("bin").and_then(toml::Value::as_array);
    let names = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Parses the number of executions from the fuzzer's final statistics.
fn executions(line: &str) -> Option<u64> {
    let count = line.strip_prefix("stat::number_of_executed_units:")?;
    count.trim().parse().ok()
}

/// Adds the findings to the corpus, as few as needed for the same coverage.
fn keep(tool: &Path, fuzz: &Path, target: &str) -> Result<(), Error> {
    let (merged, kept) = (
        format!("target/merged/{target}"),
        format!("corpus/{target}"),
    );
    let fresh = fuzz.join(&merged);
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh).map_err(Error::file(&fresh))?;
    }
    std::fs::create_dir_all(&fresh).map_err(Error::file(&fresh))?;
    job(tool, fuzz, target, [&merged, &kept])
        .args([format!("target/corpus/{target}")])
        .args(merge())
        .run()?;
    let kept = fuzz.join(kept);
    for (name, _) in files(&kept)? {
        if !name.starts_with(SEED) {
            let old = kept.join(name);
            std::fs::remove_file(&old).map_err(Error::file(&old))?;
        }
    }
    let seeds = files(&kept)?;
    for name in chosen(&seeds, files(&fresh)?) {
        let (from, to) = (fresh.join(&name), kept.join(&name));
        std::fs::copy(&from, &to).map_err(Error::file(&to))?;
    }
    Ok(())
}

/// Selects findings from the smallest to the largest, as many as fit beside the seeds.
fn chosen(seeds: &[(String, u64)], mut found: Vec<(String, u64)>) -> Vec<String> {
    let mut bytes: u64 = seeds.iter().map(|(_, bytes)| bytes).sum();
    found.sort_by_key(|(name, bytes)| (*bytes, name.clone()));
    let room = KEPT_FILES.saturating_sub(seeds.len());
    let step = found.len().div_ceil(room.max(1)).max(1);
    let fitting = found.into_iter().step_by(step).take_while(|(_, more)| {
        bytes += more;
        bytes <= KEPT_BYTES
    });
    fitting.take(room).map(|(name, _)| name).collect()
}

fn files(folder: &Path) -> Result<Vec<(String, u64)>, Error> {
    let entries = std::fs::read_dir(folder).map_err(Error::file(folder))?;
    let mut files = Vec::new();
    for entry in entries.flatten() {
        let meta = entry.metadata().map_err(Error::file(entry.path()))?;
        files.push((entry.file_name().to_string_lossy().into_owned(), meta.len()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_fuzzer_says_last_is_read() {
        assert_eq!(
            executions("stat::number_of_executed_units: 3129519\n"),
            Some(3_129_519)
        );
        assert_eq!(executions("#2 INITED cov: 3"), None);
    }

    #[test]
    fn every_target_has_its_file() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let targets = targets(&fuzz).unwrap();
        assert!(targets.len() > 8);
        for target in targets {
            assert!(
                fuzz.join(format!("targets/{target}.rs")).is_file(),
                "{target}"
            );
        }
    }

    #[test]
    fn the_fuzzer_is_told_numbers_and_no_file_that_it_could_delete() {
        for flag in [search(60), merge()].concat() {
            let (name, value) = flag.split_once('=').unwrap();
            assert!(name.starts_with('-'), "{flag}");
            assert!(value.parse::<u64>().is_ok(), "{flag}");
        }
    }

    #[test]
    fn the_corpus_stays_small() {
        let file = |name: &str, bytes| (name.to_owned(), bytes);
        let seeds = [file("seed-a", KEPT_BYTES - 10)];
        let found = vec![file("c", 8), file("b", 4), file("a", 4)];
        assert_eq!(chosen(&seeds, found), ["a", "b"]);
        let many = (0..200).map(|n| file(&format!("{n}"), 1)).collect();
        let kept = chosen(&seeds[..0], many).len();
        assert!(kept > KEPT_FILES / 2 && kept <= KEPT_FILES, "{kept}");
    }
}
