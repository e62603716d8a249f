//! Sessions from outside: continued, shown, exported, interrupted, and never written by two
//! processes.

use serde_json::Value;

use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

#[test]
fn a_session_is_carried_on_with_a_new_message() {
    let home = Home::new();
    home.file("a.txt", "alpha");
    let read = FakeAnswer::call(&[("read", "{\"path\":\"a.txt\"}")]);
    let fake = Fake::new([
        read,
        FakeAnswer::say("alpha"),
        FakeAnswer::say("five letters"),
    ]);
    let first = home.agent(&fake, &["What is in a.txt?"]).done();
    let id = first.session();
    let second = home
        .agent(&fake, &["--session", &id, "How long is it?"])
        .done();
    assert_eq!(second.session(), id);
    let asked = fake.asked();
    let (before, after) = (messages(&asked[1]), messages(&asked[2]));
    assert_eq!(
        after[..before.len()],
        before,
        "the same view, byte for byte"
    );
    let new = &after[before.len()..];
    assert_eq!(new.len(), 2, "{new:?}");
    assert_eq!(new[0], ("assistant".into(), "alpha".into()));
    assert_eq!(new[1], ("user".into(), "How long is it?".into()));

    let list = home.run(["sessions", "list"]).done();
    assert_eq!(list.out.lines().count(), 2, "a heading and one session");
    assert!(
        list.out.contains(&id) && list.out.contains("What is in a.txt?"),
        "{}",
        list.out
    );
    let list = home.run(["sessions", "list", "--json"]).done();
    let line: Value = serde_json::from_str(list.out.trim()).unwrap();
    assert_eq!(line["id"], id.as_str());

    let show = home.run(["sessions", "show", &id]).done();
    assert!(
        show.out.contains("2 runs, model openai-compatible/m"),
        "{}",
        show.out
    );
    for part in ["What is in a.txt?", "read(", "alpha", "five letters"] {
        assert!(show.out.contains(part), "no {part}: {}", show.out);
    }
    let show = home.run(["sessions", "show", "--json", &id]).done();
    let view: Value = serde_json::from_str(&show.out).unwrap();
    let view = messages(&view);
    assert_eq!(view[..after.len()], after, "what the model saw");

    let export = home.run(["sessions", "export", &id]).done();
    let entries: Vec<Value> = export
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries[0]["session"], id.as_str());
    assert_eq!(entries.len() as u64 - 1, line["entries"].as_u64().unwrap());
    assert!(export.out.contains("five letters"));
}

#[test]
fn a_session_goes_on_after_a_failure_without_a_new_message() {
    let home = Home::new();
    home.file("a.txt", "alpha");
    let read = FakeAnswer::call(&[("read", "{\"path\":\"a.txt\"}")]);
    let broken = Fake::new([read, FakeAnswer::error(400, "the model is being replaced")]);
    let said = home.agent(&broken, &["What is in a.txt?"]);
    said.refused(5, &["the model is being replaced"]);
    let id = said.session();
    let hint = format!("try again with: plimsoll run --session {id}\n");
    assert!(said.err.contains(&hint), "{}", said.err);
    assert!(!said.err.contains("continue with"), "{}", said.err);
    let sound = Fake::new([FakeAnswer::say("alpha")]);
    let said = home.agent(&sound, &["--session", &id]).done();
    assert_eq!(said.out, "alpha\n");
    assert_eq!(
        messages(&sound.asked()[0]),
        messages(&broken.asked()[1]),
        "the very same request"
    );
}

#[test]
fn an_interrupted_run_can_be_carried_on() {
    let home = Home::new();
    let hanging = Fake::new([FakeAnswer::say("half of it").hang()]);
    let under = home.start(&hanging, &["--session", "s-1", "Say it all."]);
    hanging.wait();
    under.interrupt();
    let said = under.end();
    said.refused(130, &["interrupted"]);
    assert_eq!(said.session(), "s-1");
    home.run(["sessions", "show", "s-1"]).done();
    let sound = Fake::new([FakeAnswer::say("all of it")]);
    let said = home.agent(&sound, &["--session", "s-1"]).done();
    assert_eq!(said.out, "all of it\n");
    let sent = messages(&sound.asked()[0]);
    assert_eq!(sent[1], ("user".into(), "Say it all.".into()));
}

#[test]
fn an_interrupt_ends_the_tools_processes_too() {
    let home = Home::new();
    let fifo = home.work().join("pid");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    let command = "{\"command\":\"sleep 1000 & echo $! > pid; wait\"}";
    let fake = Fake::new([
        FakeAnswer::call(&[("bash", command)]),
        FakeAnswer::say("done"),
    ]);
    let under = home.start(&fake, &["--yes", "--session", "s-2", "Wait."]);
    let pid: i32 = std::fs::read_to_string(&fifo)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    under.interrupt();
    under.end().refused(130, &["interrupted"]);
    // It was sent its signal; a busy system takes a moment to deliver it.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z")
    };
    while is_there() {
        assert!(std::time::Instant::now() < patience, "it is still there");
        std::thread::yield_now();
    }
    let said = home.agent(&fake, &["--session", "s-2"]).done();
    assert_eq!(said.out, "done\n");
    let (role, text) = messages(&fake.asked()[1]).remove(3);
    assert_eq!(role, "tool");
    assert!(!text.is_empty(), "the call has a result");
}

#[test]
fn two_processes_never_write_one_session() {
    let home = Home::new();
    let hanging = Fake::new([FakeAnswer::say("...").hang()]);
    let under = home.start(&hanging, &["--session", "s-3", "First."]);
    hanging.wait();
    let idle = Fake::new([]);
    let second = home.agent(&idle, &["--session", "s-3", "Second."]);
    second.refused(
        1,
        &["s-3", "is being written by another process", "wait for it"],
    );
    assert_eq!(idle.asked().len(), 0);
    // Reading is allowed meanwhile, and so is any other session.
    let show: CommandOutput = home.run(["sessions", "show", "s-3"]).done();
    assert!(show.out.contains("First.") && !show.out.contains("Second."));
    let other = Fake::new([FakeAnswer::say("hello")]);
    home.agent(&other, &["--session", "s-4", "Hi"]).done();
    under.interrupt();
    assert_eq!(under.end().code, Some(130));
    home.agent(&other, &["--session", "s-3", "Third."]).done();
}

#[test]
fn sessions_that_are_not_there_are_told() {
    let home = Home::new();
    let none = home.run(["sessions", "list"]).done();
    assert_eq!(none.out, "");
    assert!(
        none.err.contains("there are no sessions yet"),
        "{}",
        none.err
    );
    assert_eq!(home.run(["sessions", "list", "--json"]).done().out, "");
    for verb in ["show", "export"] {
        home.run(["sessions", verb, "nobody"])
            .refused(2, &["no session nobody", "sessions list"]);
        home.run(["sessions", verb, "../x"])
            .refused(2, &["`../x` cannot name a session"]);
    }
    let idle = Fake::new([]);
    home.agent(&idle, &["--session", "nobody"])
        .refused(2, &["no session nobody", "sessions list"]);
    home.agent(&idle, &["--session", "a b", "Hi"])
        .refused(2, &["`a b` cannot name a session"]);
}

#[test]
fn the_newest_session_of_a_folder_is_continued() {
    let home = Home::new();
    let fake = Fake::new(["one", "two", "three"].map(FakeAnswer::say));
    let here = home.agent(&fake, &["First here."]).done().session();
    let other = home.work().join("other");
    std::fs::create_dir(&other).unwrap();
    let run = |args: &[&str]| {
        let mut command = home.command(with(&fake, args));
        command.current_dir(&other);
        feed(command, b"")
    };
    run(&["-c", "Nothing yet."]).refused(2, &["no session was run in", "other"]);
    let there = run(&["First there."]).done().session();
    assert_ne!(here, there);
    assert_eq!(
        home.agent(&fake, &["-c", "Again."]).done().session(),
        here,
        "the newest of all is that of the other folder"
    );
    let listed = home.run(["sessions", "list", "--here"]).done().out;
    let is_line = |line: &&str| line.contains(&here) && line.contains("  m ");
    assert_eq!(listed.lines().filter(is_line).count(), 1, "{listed}");
    assert!(!listed.contains(&there), "{listed}");
    let all = home.run(["sessions", "list", "--json"]).done().out;
    let all: Vec<Value> = all
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(all.len(), 2);
    let of_there = all.iter().find(|one| one["id"] == *there).unwrap();
    assert_eq!(of_there["model"], "openai-compatible/m");
    assert!(of_there["folder"].as_str().unwrap().ends_with("other"));
    let both = home.agent(&fake, &["-c", "--session", &here, "Both."]);
    assert_eq!(both.code, Some(2), "{}", both.err);

    std::fs::remove_dir(&other).unwrap();
    let more = Fake::new([FakeAnswer::say("four")]);
    let moved = home
        .agent(&more, &["--session", &there, "Here now."])
        .done();
    assert!(moved.err.contains("no longer exists"), "{}", moved.err);
}

#[test]
fn a_name_is_that_of_one_session() {
    let home = Home::new();
    let fake = Fake::new(["one", "two"].map(FakeAnswer::say));
    home.agent(&fake, &["--session", "prod-notes", "One."])
        .done();
    for command in ["show", "delete"] {
        home.run(["sessions", command, "notes"])
            .refused(2, &["there is no session notes"]);
    }
    let new = home.agent(&fake, &["--session", "notes", "Two."]).done();
    assert_eq!(new.session(), "notes");
}

#[test]
fn all_that_was_ever_said_is_searched() {
    let home = Home::new();
    home.file("a.txt", "the pool has eight connections");
    let read = FakeAnswer::call(&[("read", "{\"path\":\"a.txt\"}")]);
    let fake = Fake::new([
        FakeAnswer::say("Nothing here."),
        read,
        FakeAnswer::say("Eight."),
        FakeAnswer::say("More."),
    ]);
    let other = home.agent(&fake, &["Look."]).done().session();
    let id = home.agent(&fake, &["How large is it?"]).done().session();

    // Of a fork, only what it does not share is found.
    home.run(["sessions", "fork", &id, "--to", "fork"]).done();
    home.agent(&fake, &["--session", "fork", "And the connector?"])
        .done();
    let search = |words: &[&str]| {
        let args = ["sessions", "search"].iter().chain(words);
        home.run(args.copied()).done().out
    };
    let found = search(&["Pool", "connec"]);
    let row = found.lines().nth(1).unwrap();
    assert!(row.starts_with(&id), "{found}");
    assert!(
        row.ends_with("tool result  the pool has eight connections"),
        "{found}"
    );
    assert_eq!(found.lines().count(), 2, "a heading and one place: {found}");
    let found = search(&["connec", "--json"]);
    let places: Vec<Value> = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sessions: Vec<&str> = places
        .iter()
        .map(|place| place["session"].as_str().unwrap())
        .collect();
    assert_eq!(sessions, ["fork", &id], "newest first");
    assert_eq!(places[0]["kind"], "user");
    assert!(!found.contains(&other), "{found}");
    let none = home.run(["sessions", "search", "pool", "zebra"]).done();
    assert_eq!(none.out, "");
    assert!(none.err.contains("nothing was found"), "{}", none.err);
    let one = home
        .run(["sessions", "search", "connec", "--limit", "1"])
        .done();
    assert!(one.out.contains("\nfork "), "{}", one.out);
    assert!(one.err.contains("a larger --limit"), "{}", one.err);
    home.run(["sessions", "search", "--", "-"])
        .refused(2, &["no word to search for"]);
}

#[test]
fn a_run_that_was_cut_off_goes_on_with_c_alone() {
    let home = Home::new();
    let fake = Fake::new([
        FakeAnswer::error(400, "busy"),
        FakeAnswer::say("Here it is."),
    ]);
    let cut = home.agent(&fake, &["Do it."]);
    assert_ne!(cut.code, Some(0));
    let on = home.agent(&fake, &["-c"]).done();
    assert!(on.out.contains("Here it is."), "{}", on.out);
}

#[test]
fn lists_have_no_control_characters_even_in_a_pipe() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("Done.")]);
    let task = "Look \u{1b}]0;title\u{7}\u{202e}here\u{9b}31m";
    home.agent(&fake, &["--session", "one", task]).done();
    home.run(["sessions", "rename", "one", task]).done();
    for args in [
        &["sessions", "list"][..],
        &["sessions", "runs", "one"],
        &["sessions", "show", "one"],
        &["sessions", "search", "look"],
        &["usage", "--by", "session"],
    ] {
        let out = home.run(args).done().out;
        assert!(out.contains("here"), "{args:?}: {out}");
        let bad = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!out.contains(bad), "{args:?}: {out:?}");
    }
}
