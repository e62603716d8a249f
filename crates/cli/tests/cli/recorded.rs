//! Runs every recorded session of the shared data through `compact`: the result is valid, within
//! its budget and deterministic, or a typed error. Skipped with a note if the data does not exist.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::chats::{faults, weight};
use super::command::Home;

fn sources() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/normalized");
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_session_fits() {
    let sources = sources();
    if sources.is_empty() {
        println!("skipped: no ../shared/data/normalized");
        return;
    }
    let home = Home::new();
    let (mut chats, mut refused) = (0, 0);
    for source in sources {
        let mut input = String::new();
        let file = std::fs::File::open(&source).unwrap();
        GzDecoder::new(file).read_to_string(&mut input).unwrap();
        // Each session at --budget, and once more at a budget of its own.
        let lines: Vec<(&str, u64, String)> = input
            .lines()
            .flat_map(|line| {
                let tight = line.replacen('{', "{\"budget_tokens\":1000,", 1);
                [(line, 8_000, line.to_owned()), (line, 1_000, tight)]
            })
            .collect();
        let all: Vec<&str> = lines.iter().map(|(_, _, line)| line.as_str()).collect();
        let all = all.join("\n");
        let compact = || home.pipe(["compact", "--lines", "--budget", "8000"], &all);
        let (said, again) = std::thread::scope(|scope| {
            let again = scope.spawn(compact);
            (compact(), again.join().unwrap())
        });
        assert_eq!(said.out, again.out, "{}", source.display());
        assert_eq!(said.err, again.err, "{}", source.display());
        assert_eq!(said.out.lines().count(), lines.len());
        let mut failing = 0;
        for (at, (out, (original, budget, _))) in said.out.lines().zip(&lines).enumerate() {
            let place = format!("{} session {} at {budget}", source.display(), at / 2);
            chats += 1;
            if !fits(out, original, *budget, &place) {
                failing += 1;
            }
        }
        assert_eq!(said.code, Some(i32::from(failing > 0)), "{}", said.err);
        refused += failing;
    }
    println!("{chats} chats, {refused} of them refused by a typed error");
    assert!(chats > 0);
}

/// Judges one answer; false where it is the error of what cannot fit.
fn fits(out: &str, original: &str, budget: u64, place: &str) -> bool {
    let value: Value = serde_json::from_str(out).unwrap();
    let Some(messages) = value.get("messages") else {
        let error = value["error"].as_str().unwrap();
        let is_typed = error.contains("cannot be made smaller than");
        assert!(is_typed, "{place}: {error}");
        return false;
    };
    assert!(weight(out).0 <= budget, "{place}");
    let original: Value = serde_json::from_str(original).unwrap();
    let mut faults = faults(&json!({ "messages": messages }).to_string());
    // A session that ends with its answer ends so; the rule is one for requests.
    let messages = original["messages"].as_array().unwrap();
    let last = messages.iter().rfind(|one| one["content"] != "").unwrap();
    if last["role"] == "assistant" {
        faults.retain(|fault| !fault.contains("rule: \"OC8\""));
    }
    assert_eq!(faults, [""; 0], "{place}");
    assert_eq!(value["id"], original["id"], "{place}");
    assert_eq!(value["stats"], original["stats"], "{place}");
    true
}
