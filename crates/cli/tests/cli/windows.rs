//! The limit under a real window: reported, given, or learned from refusals; and requests that
//! cannot fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::chats::weight;
use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

const WINDOW: u64 = 4_096;

/// llama.cpp's server with a small window, and a model that reads eight files and answers. It
/// counts what is sent as llama.cpp does, and how often that was too much.
fn small() -> (Fake, Arc<AtomicUsize>) {
    let overflows = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&overflows);
    let mut next = 0;
    let props = json!({"default_generation_settings": {"n_ctx": WINDOW}, "total_slots": 1});
    let models = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]});
    let pages = vec![("/props", props), ("/v1/models", models)];
    let fake = Fake::scripted("compatible", pages, move |request, _| {
        let used = weight(&request.to_string()).0;
        if used > WINDOW {
            counted.fetch_add(1, Ordering::SeqCst);
            return FakeAnswer::exceeds(used, WINDOW);
        }
        next += 1;
        match next {
            1..=8 => FakeAnswer::call(&[("read", &format!("{{\"path\":\"part{next}.txt\"}}"))]),
            _ => FakeAnswer::say("All parts are read."),
        }
    });
    (fake, overflows)
}

fn home() -> Home {
    let home = Home::new();
    for part in 1..=8 {
        let lines: Vec<String> = (0..150)
            .map(|line| format!("part {part}, line {line}: nothing to see here"))
            .collect();
        home.file(&format!("part{part}.txt"), lines.join("\n"));
    }
    home
}

#[test]
fn a_window_that_is_asked_for_is_never_exceeded() {
    let home = home();
    let (fake, overflows) = small();
    let said = home.agent(&fake, &["Read all parts."]).done();
    assert_eq!(overflows.load(Ordering::SeqCst), 0, "{}", said.err);
    assert_eq!(said.out, "All parts are read.\n");
    assert!(
        said.err.contains("window 4096 tokens, from the server"),
        "{}",
        said.err
    );
    assert!(
        said.err.contains("compacted ("),
        "eviction had to happen: {}",
        said.err
    );
    assert_eq!(fake.asked().len(), 9);
    for request in fake.asked() {
        let task = &messages(&request)[1].1;
        assert!(
            task.starts_with("Read all parts."),
            "the task stays: {task}"
        );
    }
}

#[test]
fn an_unknown_window_is_learned_from_refusals() {
    let home = home();
    let (fake, overflows) = small();
    let said = home
        .agent(&fake, &["--max-context", "unknown", "Read all parts."])
        .done();
    assert_eq!(said.out, "All parts are read.\n");
    assert!(
        said.err.contains("window learned from refusals"),
        "{}",
        said.err
    );
    let met = overflows.swap(0, Ordering::SeqCst);
    assert!((1..=2).contains(&met), "{met} overflows: {}", said.err);
    assert!(
        said.err.contains("the request is too long; compacting it"),
        "{}",
        said.err
    );
    // The session remembers it.
    let id = said.session();
    home.agent(
        &fake,
        &["--max-context", "unknown", "--session", &id, "And again."],
    )
    .done();
    assert_eq!(overflows.load(Ordering::SeqCst), 0);
}

#[test]
fn what_cannot_fit_is_never_sent() {
    let home = Home::new();
    let idle = Fake::new([]);
    let task = "word ".repeat(20_000);
    let wanted = |said: &CommandOutput| {
        let window = said.err.split("as in --max-context ").nth(1).unwrap();
        window.split_whitespace().next().unwrap().to_owned()
    };
    let args = ["--max-context", "4096", "--session", "big", "-"];
    let said = feed(home.command(with(&idle, &args)), task.as_bytes());
    said.refused(4, &["cannot be made smaller than", "shorten the task"]);
    let window = wanted(&said);
    let said = home.agent(&idle, &["--max-context", "300", "--session", "tight", "Hi"]);
    said.refused(
        4,
        &[
            "instructions, tools and dynamic context",
            "a window of at least",
        ],
    );
    assert_eq!(idle.asked().len(), 0);
    // The sessions open, and go on in the window that was asked for.
    let sound = Fake::new([FakeAnswer::say("read")]);
    home.run(["sessions", "show", "tight"]).done();
    let args = ["--quiet", "--session", "big", "--max-context", &window];
    assert_eq!(home.agent(&sound, &args).done().out, "read\n");
    assert_eq!(messages(&sound.asked()[0])[1].1.trim_end(), task.trim_end());
}

#[test]
fn a_server_that_refuses_whatever_it_is_sent_ends_the_run() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::exceeds(90_000, 4_096)]);
    let said = home.agent(&fake, &["--max-context", "unknown", "Hi"]);
    said.refused(4, &["exceeds the available context size"]);
    assert!(fake.asked().len() <= 5, "{}", fake.asked().len());
    let sound = Fake::new([FakeAnswer::say("hello")]);
    let said = home
        .agent(&sound, &["--quiet", "--session", &said.session()])
        .done();
    assert_eq!(said.out, "hello\n");
}
