//! The total usage of all sessions, and the output for shells and `man`.

use serde_json::Value;

use super::command::{Home, feed};
use super::fake::{Fake, FakeAnswer};

const PRICES: &str =
    "[models.openai-compatible.m]\ninput = 1000.0\noutput = 2000.0\ncache_read = 500.0\n";

/// A home with two sessions of one call each, and a fork that has said nothing of its own. Each call: 60
/// tokens fresh, 40 from the cache, 10 written, for $0.10.
fn home() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("plimsoll.toml"), PRICES).unwrap();
    let fake = Fake::new(["First.", "Second."].map(FakeAnswer::say));
    for name in ["one", "two"] {
        home.agent(&fake, &["--session", name, "Begin."]).done();
    }
    home.run(["sessions", "fork", "two", "--to", "fork"]).done();
    home
}

fn rows(home: &Home, by: &str) -> Vec<Value> {
    let said = home.run(["usage", "--by", by, "--json"]).done().out;
    let rows = said.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

#[test]
fn everything_is_added_up_and_nothing_twice() {
    let home = home();
    for by in ["day", "month", "model", "folder"] {
        let rows = rows(&home, by);
        assert_eq!(rows.len(), 1, "{by}: {rows:?}");
        assert_eq!(rows[0]["calls"], 2, "{by}");
        assert_eq!(rows[0]["usage"]["input"], 120, "{by}");
        assert_eq!(rows[0]["usage"]["cache_read"], 80, "{by}");
        assert_eq!(rows[0]["cost"]["known"], 200_000_000, "{by}");
    }
    assert_eq!(rows(&home, "model")[0]["model"], "openai-compatible/m");
    let sessions = rows(&home, "session");
    let names = sessions.iter().map(|row| row["session"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["one", "two"]);
    let day = rows(&home, "day")[0]["day"].as_str().unwrap().to_owned();
    assert_eq!(day.len(), "2026-11-25".len(), "{day}");
    assert!(
        day.starts_with("20") && day.matches('-').count() == 2,
        "{day}"
    );
}

#[test]
fn the_table_ends_with_the_sum() {
    let said = home().run(["usage", "--by", "session"]).done().out;
    let lines: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines,
        [
            vec!["calls", "read", "cached", "wrote", "cost", "session"],
            vec!["1", "100", "40", "10", "$0.1000", "one", "Begin."],
            vec!["1", "100", "40", "10", "$0.1000", "two", "Begin."],
            vec!["2", "200", "80", "20", "$0.2000", "in", "all"],
        ],
        "{said}"
    );
}

#[test]
fn a_price_that_is_not_known_is_not_made_up() {
    let home = Home::new();
    let said = home.run(["usage"]).done();
    assert!(said.err.contains("nothing was used yet"), "{}", said.err);
    let fake = Fake::new([FakeAnswer::say("First.")]);
    home.agent(&fake, &["Begin."]).done();
    std::fs::create_dir(home.work().join("other")).unwrap();
    let mut elsewhere = home.command(["usage", "--here"]);
    elsewhere.current_dir(home.work().join("other"));
    let said = feed(elsewhere, b"").done();
    assert!(said.err.contains("in this folder yet"), "{}", said.err);
    let row = &rows(&home, "day")[0];
    assert_eq!(
        (&row["cost"]["known"], &row["cost"]["unpriced"]),
        (&0.into(), &1.into())
    );
    let said = home.run(["usage"]).done().out;
    let last = said.lines().last().unwrap();
    assert!(last.split_whitespace().any(|cell| cell == "-"), "{said}");
    let recent = home.run(["usage", "--since", "1d"]).done().out;
    assert_eq!(recent, said);
}

#[test]
fn shells_know_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = home.run(["completions", shell]).done().out;
        for word in ["rescue", "sessions", "permission-mode"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn the_usage_of_sub_agents_is_counted_once() {
    let home = Home::new();
    home.file(
        "plimsoll.toml",
        "[[agents]]\nname = \"chief\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\n",
    );
    let call = FakeAnswer::call(&[("mate", r#"{"task":"Look."}"#)]);
    let fake = Fake::new([call, FakeAnswer::say("A sail."), FakeAnswer::say("Aye.")]);
    home.agent(&fake, &["--agent", "chief", "Is there a ship?"])
        .done();
    assert_eq!(fake.asked().len(), 3);
    for by in ["day", "model", "folder", "session"] {
        let calls = rows(&home, by).into_iter();
        let calls = calls.map(|row| row["calls"].as_u64().unwrap());
        assert_eq!(calls.sum::<u64>(), 3, "{by}");
    }
    // A person gives sessions such names, too.
    for session in ["notes", "notes.meeting.2026-11"] {
        let args = ["--agent", "mate", "--session", session, "Hello."];
        home.agent(&fake, &args).done();
    }
    let mut sessions = rows(&home, "session").into_iter();
    let meeting = sessions.find(|row| row["session"] == "notes.meeting.2026-11");
    assert_eq!(meeting.unwrap()["calls"], 1);
}

/// The caller has no result of the sub-agent, whose first call was paid nevertheless.
#[test]
fn the_usage_of_a_sub_agent_counts_even_if_its_caller_is_killed() {
    let home = Home::new();
    home.file(
        "plimsoll.toml",
        "[[agents]]\nname = \"chief\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\n",
    );
    let fake = Fake::new([
        FakeAnswer::call(&[("mate", r#"{"task":"Look."}"#)]),
        FakeAnswer::call(&[("list", r#"{"path":"."}"#)]),
        FakeAnswer::say("A s").hang(),
    ]);
    let args = ["--session", "chief", "--agent", "chief", "Is there a ship?"];
    let under = home.start(&fake, &args);
    for _ in 0..3 {
        fake.wait();
    }
    under.kill();
    under.end();
    let row = &rows(&home, "session")[0];
    assert_eq!(
        (&row["session"], &row["calls"]),
        (&"chief".into(), &2.into()),
        "{row}"
    );
    let list = home.run(["sessions", "list"]).done().out;
    assert!(!list.contains('$'), "its cost is told by usage: {list}");
}

#[test]
fn what_a_provider_does_not_report_is_counted() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("First.").unreported()]);
    home.agent(&fake, &["Begin."]).done();
    let usage = &rows(&home, "day")[0]["usage"];
    assert!(usage["input"].as_u64().unwrap() > 50, "{usage}");
    let written = usage["output"].as_u64().unwrap();
    assert!((1..20).contains(&written), "{usage}");
    let list = home.run(["sessions", "list", "--json"]).done().out;
    let session: Value = serde_json::from_str(&list).unwrap();
    let id = session["id"].as_str().unwrap();
    let runs = home.run(["sessions", "runs", id, "--json"]).done().out;
    let run: Value = serde_json::from_str(&runs).unwrap();
    assert_eq!(run["usage"], *usage);
}

#[cfg(not(feature = "restate"))]
#[test]
fn a_database_is_not_in_this_build() {
    let home = Home::new();
    for args in [
        &["usage"][..],
        &["sessions", "list"],
        &["sessions", "check"],
        &[
            "run",
            "--model",
            "openai/gpt-5",
            "--base-url",
            "http://127.0.0.1:9/v1",
            "Hello?",
        ],
    ] {
        let mut command = home.command(args);
        command.env("PLIMSOLL_STORE", "postgres://u:hush@h/d");
        let said = feed(command, b"");
        said.refused(2, &["PLIMSOLL_STORE names a database", "`restate`"]);
        assert!(!said.err.contains("hush"), "{}", said.err);
    }
}
