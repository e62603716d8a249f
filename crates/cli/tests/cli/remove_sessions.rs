//! Sessions that are renamed, deleted, pruned, and salvaged from a damaged file.

use serde_json::{Value, json};

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

/// A home with the sessions `one`, `two` and `three`, of which the last was written last.
fn home() -> Home {
    let home = Home::new();
    let fake = Fake::new(["First.", "Second.", "Third."].map(FakeAnswer::say));
    for name in ["one", "two", "three"] {
        home.agent(&fake, &["--session", name, "Begin."]).done();
    }
    home
}

fn names(home: &Home) -> Vec<String> {
    let list = home.run(["sessions", "list", "--json"]).done().out;
    let lines = list.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["id"].as_str().unwrap().to_owned()
    });
    lines.collect()
}

#[test]
fn a_session_gets_another_title() {
    let home = home();
    home.run(["sessions", "rename", "two", "Port the parser"])
        .done();
    let list = home.run(["sessions", "list"]).done().out;
    assert!(list.contains("Port the parser"), "{list}");
    assert!(list.contains("two "), "its name stays: {list}");
    for title in ["", "two\nlines", &"x".repeat(121)] {
        home.run(["sessions", "rename", "two", title])
            .refused(2, &["a title is one line of 1 to 120 characters"]);
    }
    home.run(["sessions", "rename", "nobody", "x"])
        .refused(2, &["there is no session nobody"]);
}

#[test]
fn sessions_are_deleted_if_somebody_says_so() {
    let home = home();
    home.run(["sessions", "fork", "two", "--to", "fork"]).done();
    home.run(["sessions", "delete", "one"])
        .refused(2, &["nothing was deleted; --yes deletes without asking"]);
    home.run(["sessions", "delete", "two", "--yes"])
        .refused(1, &["two cannot be deleted: its fork fork shares its log"]);
    assert_eq!(names(&home).len(), 4);
    let gone = home
        .run(["sessions", "delete", "two", "fork", "--yes"])
        .done();
    assert_eq!(gone.out, "fork\ntwo\n", "forks first");
    assert!(gone.err.contains("deleted 2 sessions"), "{}", gone.err);
    assert_eq!(names(&home), ["three", "one"]);
    home.run(["sessions", "show", "two"]).refused(2, &[]);
}

#[test]
fn the_sessions_of_sub_agents_are_deleted_with_their_caller() {
    let home = Home::new();
    home.file(
        "plimsoll.toml",
        "[[agents]]\nname = \"chief\"\nsub_agents = [\"mate\"]\n\
         [[agents]]\nname = \"mate\"\nsub_agents = [\"boy\"]\n[[agents]]\nname = \"boy\"\n",
    );
    let call = |name| FakeAnswer::call(&[(name, r#"{"task":"Look."}"#)]);
    let answers = ["Seen.", "A sail.", "One sail.", "Hello.", "Hello."].map(FakeAnswer::say);
    let fake = Fake::new([call("mate"), call("boy")].into_iter().chain(answers));
    let agent = |session: &str| {
        let args = ["--agent", "chief", "--yes", "--session", session, "Go."];
        home.agent(&fake, &args).done();
    };
    agent("one");
    // It only has such a name.
    agent("one.mate.2026-7");
    agent("two");
    let subs: Vec<String> = names(&home)
        .into_iter()
        .filter(|name| name.starts_with("one.mate.") && name != "one.mate.2026-7")
        .collect();
    assert_eq!(subs.len(), 2, "{subs:?}");
    let asked = home.run(["sessions", "delete", "one"]);
    asked.refused(2, &["nothing was deleted"]);
    let gone = home.run(["sessions", "delete", "one", "--yes"]).done();
    assert!(gone.err.contains("deleted 3 sessions"), "{}", gone.err);
    assert_eq!(names(&home), ["two", "one.mate.2026-7"]);
}

#[test]
fn a_session_that_is_only_named_like_a_call_stays() {
    let home = Home::new();
    home.file(
        "plimsoll.toml",
        "[[agents]]\nname = \"chief\"\nsub_agents = [\"mate\"]\n[[agents]]\nname = \"mate\"\n",
    );
    let calls = FakeAnswer::call(&[
        ("bash", r#"{"command":"true"}"#),
        ("mate", r#"{"task":"Look."}"#),
    ]);
    let answers = ["A sail.", "One.", "Hello.", "Hello."].map(FakeAnswer::say);
    let fake = Fake::new([calls].into_iter().chain(answers));
    let agent = |session: &str| {
        let args = ["--agent", "chief", "--yes", "--session", session, "Go."];
        home.agent(&fake, &args).done();
    };
    agent("one");
    agent("one.bash.1-0");
    agent("one.mate.2026-1");
    assert_eq!(names(&home).len(), 4);
    let gone = home.run(["sessions", "delete", "one", "--yes"]).done();
    assert!(gone.err.contains("deleted 2 sessions"), "{}", gone.err);
    assert_eq!(names(&home), ["one.mate.2026-1", "one.bash.1-0"]);
}

#[test]
fn old_sessions_are_pruned() {
    let home = home();
    let dry = home
        .run(["sessions", "prune", "--max-size", "0MB", "--dry-run"])
        .done();
    assert_eq!(dry.out, "three\ntwo\none\n");
    assert!(
        dry.err.contains("would be deleted: 3 sessions"),
        "{}",
        dry.err
    );
    home.run(["sessions", "prune", "--older-than", "1d"]).done();
    assert_eq!(names(&home).len(), 3, "none is that old");

    // What a session that stays begins with stays, too.
    home.run(["sessions", "fork", "one", "--to", "fork"]).done();
    let fake = Fake::new([FakeAnswer::say("On.")]);
    home.agent(&fake, &["--session", "fork", "Go on."]).done();
    home.run(["sessions", "prune", "--max-size", "2GB", "--yes"])
        .done();
    assert_eq!(names(&home).len(), 4);
    let all = home
        .run(["sessions", "prune", "--max-size", "0MB", "--yes"])
        .done();
    assert_eq!(all.out.lines().count(), 4, "{}", all.out);
    assert!(names(&home).is_empty());
    for args in [&["sessions", "prune"][..], &["sessions", "prune", "--yes"]] {
        let unsaid = home.run(args);
        assert_eq!(unsaid.code, Some(2), "{}", unsaid.err);
        let either = "--older-than <AGE>|--max-size <SIZE>";
        assert!(unsaid.err.contains(either), "{}", unsaid.err);
    }
    for bad in ["3x", "-1d", "d"] {
        let age = format!("--older-than={bad}");
        let refused = home.run(["sessions", "prune", &age]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("30d or 12w"), "{}", refused.err);
    }
}

#[test]
fn what_an_altered_file_still_has_is_salvaged() {
    let home = home();
    let path = home.data().join("sessions.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let said = b"Second.\"}]},\"stop\"";
    // An older copy may stand before it in unused space.
    let at = bytes
        .windows(said.len())
        .rposition(|window| window == said)
        .unwrap();
    bytes[at] = b'R';
    std::fs::write(&path, &bytes).unwrap();

    let check = home.run(["sessions", "check"]);
    assert_eq!(check.code, Some(1));
    assert!(
        check
            .out
            .contains("entry 4 is not readable: it was altered"),
        "{}",
        check.out
    );
    assert!(check.err.contains("sessions salvage --to"), "{}", check.err);
    let check = home.run(["sessions", "check", "--json"]);
    let lines = check
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let two = lines.iter().find(|line| line["id"] == "two").unwrap();
    assert_eq!(two["faults"].as_array().unwrap().len(), 1);
    assert_eq!(two["faults"][0]["first"], 4);
    let new = home.work().join("new");
    let to = new.to_str().unwrap();
    let salvage = home.run(["sessions", "salvage", "--to", to, "--json"]);
    assert_eq!(salvage.code, Some(1), "{}", salvage.err);
    let lines: Vec<Value> = salvage
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let two = lines.iter().find(|line| line["id"] == "two").unwrap();
    assert_eq!(two["readable"], 3);
    assert_eq!(two["faults"][0]["first"], 4);
    assert_eq!(two["lost"], 1);
    let whole = lines.iter().filter(|line| line["faults"] == json!([]));
    assert_eq!(whole.count(), 2);
    assert!(
        salvage
            .err
            .contains("2 whole sessions recovered, and 1 damaged session up to"),
        "{}",
        salvage.err
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "it was only read");
    home.run(["sessions", "salvage", "--to", to])
        .refused(1, &["it is not empty; choose another folder"]);
    let text = home.run(["sessions", "salvage", "--to", &format!("{to}-2")]);
    assert!(
        text.out.starts_with("session ") && text.out.contains("recovered  lost  state"),
        "{}",
        text.out
    );
}

#[test]
fn a_configuration_says_how_long_sessions_are_kept() {
    let home = home();
    let file = home.work().join("keep.toml");
    let run = |text: &str, name: &str| {
        std::fs::write(&file, text).unwrap();
        let fake = Fake::new([FakeAnswer::say("Done.")]);
        let config = file.to_str().unwrap().to_owned();
        home.agent(&fake, &["--config", &config, "--session", name, "Begin."])
            .done()
    };
    run("[sessions]\nkeep_days = 1", "four");
    assert_eq!(names(&home).len(), 4, "none is that old");
    let said = run("[sessions]\nkeep_bytes = 1", "five").err;
    assert!(
        said.contains("deleted 4 sessions that the configuration does not keep"),
        "{said}"
    );
    assert_eq!(
        names(&home),
        ["five"],
        "the one that was just written stays"
    );
}
