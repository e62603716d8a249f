//! Sentences of the user that sound like updates of earlier ones stand beside them in every summary
//! that has room.

use std::path::Path;

use plimsoll_context::{Bpe, CallId, Message, Tokens, extract};
use plimsoll_testkit::messages::tool_call;

/// Sizes of the summary, in tokens.
const BUDGETS: [u64; 4] = [1_200, 3_000, 8_000, 20_000];
/// Turns between the two sentences.
const TURNS: usize = 30;

fn own_pairs() -> Vec<(String, String)> {
    let lines = include_str!("siblings.txt").lines();
    let pairs = lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(" | ").unwrap());
    pairs
        .map(|(first, second)| (first.to_owned(), second.to_owned()))
        .collect()
}

/// Pairs that were found by others. Empty, with a note, if they are not on this machine.
fn found_pairs() -> Vec<(String, String)> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/repros/siblings.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: the recorded pairs are not here");
        return Vec::new();
    };
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pairs = value["pairs"].as_array().unwrap().iter();
    pairs
        .map(|pair| {
            let text = |key: &str| pair[key].as_str().unwrap().to_owned();
            (text("first"), text("second"))
        })
        .collect()
}

fn chat(first: &str, second: &str, with_tools: bool) -> Vec<Message> {
    let mut messages = vec![
        Message::user("Help me to run the shop."),
        Message::user(first),
    ];
    for n in 0..TURNS {
        if n == TURNS - 4 {
            messages.push(Message::user(second));
        }
        messages.push(Message::user(format!("What about item {n} of the list?")));
        if with_tools {
            let id = format!("c{n}");
            let arguments = format!(r#"{{"command": "make item_{n}"}}"#);
            let parts = vec![tool_call(&id, "bash", &arguments)];
            messages.push(Message::Assistant { parts });
            let text = format!("built item_{n}\n").repeat(60);
            messages.push(Message::result(CallId(id), text));
        }
        let answer = format!("Item {n} is finished, because part_{n} was missing.");
        messages.push(Message::assistant(answer));
    }
    messages
}

#[test]
fn both_sentences_of_a_pair_stay_at_every_size() {
    let pairs: Vec<_> = own_pairs().into_iter().chain(found_pairs()).collect();
    assert!(pairs.len() >= 120, "{}", pairs.len());
    let counter = Bpe::o200k();
    let mut lost = Vec::new();
    for (first, second) in &pairs {
        for with_tools in [false, true] {
            let messages = chat(first, second, with_tools);
            let views: Vec<&Message> = messages.iter().collect();
            for budget in BUDGETS {
                let text = extract(&views, Tokens(budget), &counter).unwrap();
                let users: String = text.lines().filter(|line| line.starts_with('»')).collect();
                let missing = [first, second]
                    .into_iter()
                    .filter(|one| !users.contains(*one));
                lost.extend(missing.map(|one| (budget, with_tools, one)));
            }
        }
    }
    assert_eq!(lost, []);
}
