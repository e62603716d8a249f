//! Sessions that are forked, undone and listed run by run.

use serde_json::Value;

use super::command::{CommandOutput, Home};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

fn lines(said: &CommandOutput) -> Vec<Value> {
    let lines = said.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A home with the session `tour` of two runs, the first of which has read a file.
fn tour() -> (Home, Fake) {
    let home = Home::new();
    home.file("a.txt", "alpha");
    let read = FakeAnswer::call(&[("read", "{\"path\":\"a.txt\"}")]);
    let say = ["alpha", "five letters", "in the fork", "in the tour"].map(FakeAnswer::say);
    let fake = Fake::new([read].into_iter().chain(say));
    home.agent(&fake, &["--session", "tour", "What is in a.txt?"])
        .done();
    home.agent(&fake, &["--session", "tour", "How long is it?"])
        .done();
    (home, fake)
}

#[test]
fn a_fork_goes_its_own_way_and_says_what_it_is_of() {
    let (home, fake) = tour();
    let runs = lines(&home.run(["sessions", "runs", "tour", "--json"]).done());
    let ends = runs[0]["last"].as_u64().unwrap().to_string();
    let said = home
        .run(["sessions", "fork", "tour", "--at", &ends, "--to", "other"])
        .done();
    assert_eq!(said.out, "other\n");
    let hint =
        format!("a fork of tour at entry {ends}; continue with: plimsoll run --session other");
    assert!(said.err.contains(&hint), "{}", said.err);

    home.agent(&fake, &["--session", "other", "And in the fork?"])
        .done();
    home.agent(&fake, &["--session", "tour", "And in the tour?"])
        .done();
    let asked = fake.asked();
    let (first, fork, parent) = (
        messages(&asked[1]),
        messages(&asked[3]),
        messages(&asked[4]),
    );
    assert_eq!(fork[..first.len()], first, "the same view, byte for byte");
    let new: Vec<_> = fork[first.len()..].iter().map(|it| it.1.as_str()).collect();
    assert_eq!(new, ["alpha", "And in the fork?"]);
    let text = format!("{parent:?}");
    assert!(text.contains("five letters") && !text.contains("fork"));

    let list = lines(&home.run(["sessions", "list", "--json"]).done());
    assert_eq!(list[0]["id"], "tour");
    assert!(list[0].get("fork").is_none());
    assert_eq!(list[1]["fork"]["from"], "tour");
    assert_eq!(list[1]["fork"]["entries"].to_string(), ends);
    assert_eq!(list[1]["title"], "What is in a.txt?");
    let text = format!("(fork of tour at entry {ends})");
    let list = home.run(["sessions", "list"]).done();
    assert_eq!(list.out.matches(&text).count(), 1, "{}", list.out);
    let show = home.run(["sessions", "show", "other"]).done();
    let text = format!("fork of tour at entry {ends}, which shares its first entries");
    assert!(show.out.contains(&text), "{}", show.out);
    assert!(show.out.contains("2 runs"), "{}", show.out);

    let export = lines(&home.run(["sessions", "export", "other"]).done()).split_off(1);
    let numbers: Vec<u64> = export.iter().map(|it| it["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers, Vec::from_iter(1..=export.len() as u64));
    let runs = lines(&home.run(["sessions", "runs", "other", "--json"]).done());
    let names: Vec<&str> = runs.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["tour.default.1", "other.default.2"]);
}

#[test]
fn a_fork_without_a_name_is_given_one() {
    let (home, _fake) = tour();
    let said = home.run(["sessions", "fork", "tour"]).done();
    let name = said.out.trim();
    let show = |id: &str| home.run(["sessions", "show", "--json", id]).done().out;
    assert_eq!(show(name), show("tour"));
    let other = home.run(["sessions", "fork", "tour"]).done();
    assert_ne!(other.out.trim(), name);
}

#[test]
fn forks_that_cannot_be_are_told() {
    let (home, _fake) = tour();
    let fork = |args: &[&str]| home.run(["sessions", "fork"].iter().chain(args));
    fork(&["nobody"]).refused(2, &["no session nobody", "sessions list"]);
    fork(&["tour", "--to", "tour"]).refused(2, &["tour exists already", "another name"]);
    fork(&["tour", "--to", "a b"]).refused(2, &["`a b` cannot name a session"]);
    fork(&["tour", "--at", "999", "--to", "other"]).refused(2, &["there is no entry 999"]);
    fork(&["tour", "--at", "-1"]);
    let list = home.run(["sessions", "list", "--json"]).done().out;
    assert_eq!(list.lines().count(), 1, "{list}");
}

#[test]
fn what_was_undone_is_out_of_the_view_and_in_the_log() {
    let (home, fake) = tour();
    let show = || home.run(["sessions", "show", "--json", "tour"]).done().out;
    let runs = || lines(&home.run(["sessions", "runs", "tour", "--json"]).done());
    let marked = || -> Vec<bool> {
        let runs = runs();
        let undone = runs.iter().map(|it| it.get("rolled_back").is_some());
        undone.collect()
    };
    let said = home.run(["sessions", "undo", "tour"]).done();
    assert!(
        said.err.contains("run 2 of session tour is undone"),
        "{}",
        said.err
    );
    assert_eq!(said.out, "");
    assert_eq!(marked(), [false, true]);
    assert!(!show().contains("How long"));
    let export = home.run(["sessions", "export", "tour"]).done().out;
    assert!(export.contains("How long is it?") && export.contains("five letters"));

    // The next request is what it would have been without it.
    home.agent(&fake, &["--session", "tour", "Say it again."])
        .done();
    let asked = fake.asked();
    let (second, third) = (messages(&asked[2]), messages(&asked[3]));
    let (last, before) = second.split_last().unwrap();
    assert_eq!(last.1, "How long is it?");
    assert_eq!(third[..before.len()], *before);
    assert_eq!(third[before.len()..].len(), 1);
    assert_eq!(marked(), [false, true, false]);

    for run in [3, 1] {
        let said = home.run(["sessions", "undo", "tour"]).done();
        let words = format!("run {run} of session tour is undone");
        assert!(said.err.contains(&words), "{}", said.err);
    }
    assert_eq!(marked(), [true, true, true]);
    let text = home.run(["sessions", "runs", "tour"]).done().out;
    assert_eq!(text.matches("answered, undone").count(), 3, "{text}");
    home.run(["sessions", "undo", "tour"])
        .refused(2, &["there is no run to undo", "fork the session"]);
    home.run(["sessions", "undo", "nobody"])
        .refused(2, &["no session nobody"]);
}

#[test]
fn runs_say_what_each_was_and_used() {
    let (home, _fake) = tour();
    let runs = lines(&home.run(["sessions", "runs", "tour", "--json"]).done());
    let entries = lines(&home.run(["sessions", "export", "tour"]).done()).split_off(1);
    assert_eq!(runs.len(), 2);
    for (run, (text, tools)) in runs
        .iter()
        .zip([("What is in a.txt?", 1), ("How long is it?", 0)])
    {
        let at = |key: &str| &entries[run[key].as_u64().unwrap() as usize - 1]["entry"];
        assert_eq!(at("first")["entry"], "run_started");
        assert_eq!(at("last")["entry"], "run_ended");
        assert_eq!(at("last")["outcome"]["usage"], run["usage"]);
        assert_eq!(run["prompt"]["parts"][0]["text"], text);
        assert_eq!(run["outcome"]["reason"], "answered");
        assert_eq!(run["tool_calls"], tools);
        assert_eq!(run["config"]["model"], "openai-compatible/m");
    }
    let table = home.run(["sessions", "runs", "tour"]).done().out;
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("run ") && rows.len() == 3, "{table}");
    assert!(rows[1].starts_with("tour.default.1") && rows[1].ends_with("What is in a.txt?"));
    assert!(rows[2].contains("answered"), "{table}");
}

#[test]
fn a_fork_recalls_for_a_person_what_it_shares() {
    let (home, _fake) = tour();
    home.run(["sessions", "fork", "tour", "--to", "other"])
        .done();
    for session in ["tour", "other"] {
        let said = home.run(["sessions", "recall", session, "m0"]).done();
        assert_eq!(said.out, "What is in a.txt?");
    }
}
