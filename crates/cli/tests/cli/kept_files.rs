//! The files that a session changed: listed, restored by command and by undo, and restored again.

use serde_json::Value;

use super::chatting::Chat;
use super::command::{CommandOutput, Home};
use super::fake::{Fake, FakeAnswer};
use super::terminal::{END, Terminal};

const WINDOW: [&str; 2] = ["--max-context", "20000"];
const MAIN: &str = "fn main() {\n    serve(8430);\n}\n";

/// Edits a file twice and makes another, in two runs.
fn answers() -> Vec<FakeAnswer> {
    vec![
        FakeAnswer::call(&[("edit", r#"{"path":"main.rs","old":"8430","new":"8431"}"#)]),
        FakeAnswer::say("Done."),
        FakeAnswer::call(&[
            ("edit", r#"{"path":"main.rs","old":"8431","new":"8432"}"#),
            (
                "write",
                r#"{"path":"docs/notes.md","content":"one\ntwo\n"}"#,
            ),
        ]),
        FakeAnswer::say("Done again."),
        FakeAnswer::say("I read it."),
    ]
}

fn home() -> Home {
    let home = Home::new();
    home.file("main.rs", MAIN);
    home
}

/// A home in which session `tour` has done all that.
fn tour() -> (Home, Fake) {
    let (home, fake) = (home(), Fake::new(answers()));
    for task in ["Change it.", "Once more."] {
        let args = [WINDOW[0], WINDOW[1], "--yes", "--session", "tour", task];
        home.agent(&fake, &args).done();
    }
    assert!(file(&home, "main.rs").unwrap().contains("8432"));
    (home, fake)
}

fn file(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.work().join(name)).ok()
}

fn restore(home: &Home, args: &[&str]) -> CommandOutput {
    home.run(
        ["sessions", "files", "tour", "--restore"]
            .iter()
            .chain(args),
    )
}

/// The file's name, added and removed lines, and its state.
fn listed(home: &Home) -> Vec<(String, u64, u64, String)> {
    let said = home.run(["sessions", "files", "tour", "--json"]).done();
    let lines = said.out.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        let count = |key: &str| line[key].as_u64().unwrap();
        (
            text("path"),
            count("added"),
            count("removed"),
            text("state"),
        )
    });
    lines.collect()
}

/// What undoes the last restore, as it was told.
fn undoing(said: &CommandOutput) -> Vec<String> {
    let told = said
        .err
        .split("plimsoll sessions files tour --restore ")
        .nth(1);
    told.unwrap()
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn changed_files_are_listed_with_how_they_are_now() {
    let (home, _fake) = tour();
    let text = home.run(["sessions", "files", "tour"]).done().out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[1].starts_with("docs/notes.md  new file +2  "),
        "{text}"
    );
    assert!(lines[2].starts_with("main.rs        +1 −1"), "{text}");
    assert!(
        lines[1..].iter().all(|line| line.ends_with("  unchanged")),
        "{text}"
    );
    std::fs::remove_file(home.work().join("docs/notes.md")).unwrap();
    home.file("main.rs", "mine\n");
    let state = |name: &str, added, removed, state: &str| {
        (name.to_owned(), added, removed, state.to_owned())
    };
    assert_eq!(
        listed(&home),
        [
            state("docs/notes.md", 2, 0, "gone"),
            state("main.rs", 1, 1, "changed")
        ]
    );
    let none = home.run(["sessions", "files", "nobody"]);
    none.refused(2, &["no session nobody"]);
}

#[test]
fn files_are_restored_and_restored_again() {
    let (home, fake) = tour();
    // Without anybody to ask, nothing happens.
    restore(&home, &[]).refused(2, &["there is no terminal to ask at", "--yes"]);
    assert!(file(&home, "docs/notes.md").is_some());
    let said = restore(&home, &["--yes"]).done();
    for shown in [
        "remove docs/notes.md +0 −2",
        "restore main.rs +1 −1",
        "-    serve(8432);",
        "+    serve(8430);",
        "restored 2 files; undo it with: plimsoll sessions files tour --restore --to ",
    ] {
        assert!(said.err.contains(shown), "no {shown} in {}", said.err);
    }
    assert_eq!(file(&home, "main.rs").as_deref(), Some(MAIN));
    assert!(!home.work().join("docs").exists(), "its folder was new");
    let table = home.run(["sessions", "files", "tour"]).done().out;
    for line in table.lines().skip(1) {
        assert!(line.contains("  restored  "), "{table}");
    }
    let again = restore(&home, &["--yes"]).done();
    assert_eq!(
        again.err,
        "nothing to restore: the files are as they were then\n"
    );
    assert!(listed(&home).iter().all(|it| it.3 == "unchanged"));

    // The model is told.
    let args = [WINDOW[0], WINDOW[1], "--yes", "--session", "tour", "Look."];
    home.agent(&fake, &args).done();
    let asked = fake.asked().last().unwrap()["messages"].to_string();
    assert!(
        asked.contains(
            "restored earlier versions of files that you changed: docs/notes.md, main.rs"
        ),
        "{asked}"
    );

    // And back, one file of them.
    let mut args = undoing(&said);
    args.extend(["--yes".to_owned(), "./main.rs".to_owned()]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    restore(&home, &args).done();
    assert!(file(&home, "main.rs").unwrap().contains("8432"));
    assert_eq!(file(&home, "docs/notes.md"), None);
}

#[test]
fn an_entry_says_to_when_files_are_restored() {
    let (home, _fake) = tour();
    let json = home.run(["sessions", "files", "tour", "--json"]).done().out;
    let line: Value = serde_json::from_str(json.lines().nth(1).unwrap()).unwrap();
    let entries = line["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{json}");
    let first = entries[0].to_string();
    restore(&home, &["main.rs", "--to", &first, "--yes"]).done();
    assert!(file(&home, "main.rs").unwrap().contains("8431"));
    assert!(file(&home, "docs/notes.md").is_some(), "it was not named");
    let later = restore(&home, &["--to", "9999"]).done();
    assert!(later.err.contains("nothing to restore"), "{}", later.err);
    restore(&home, &["other.rs"]).refused(2, &["changed no file other.rs"]);
}

#[test]
fn what_somebody_else_has_changed_since_is_restored_only_by_force() {
    let (home, _fake) = tour();
    home.file("main.rs", "mine\n");
    restore(&home, &["--yes"]).refused(1, &["main.rs was changed since", "--force"]);
    assert_eq!(file(&home, "main.rs").as_deref(), Some("mine\n"));
    assert_eq!(file(&home, "docs/notes.md"), None, "the other is restored");
    let said = restore(&home, &["--yes", "--force", "main.rs"]).done();
    assert_eq!(file(&home, "main.rs").as_deref(), Some(MAIN));
    // What was there is kept all the same.
    let mut args = undoing(&said);
    args.push("--yes".to_owned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    restore(&home, &args).done();
    assert_eq!(file(&home, "main.rs").as_deref(), Some("mine\n"));
}

#[test]
fn an_undo_names_the_command_that_restores_a_file_that_something_else_has_changed() {
    let (home, _fake) = tour();
    home.file("main.rs", "mine\n");
    let said = home.run(["sessions", "undo", "tour", "--files"]).done();
    let (_, advice) = said.err.split_once("by something else; ").unwrap();
    let (command, _) = advice.split_once(" restores it anyway").unwrap();
    assert!(command.starts_with("plimsoll sessions files tour --restore --to "));
    assert_eq!(file(&home, "main.rs").as_deref(), Some("mine\n"));
    let words = command.split_whitespace().skip(1);
    home.run(words.chain(["--yes"])).done();
    assert!(file(&home, "main.rs").unwrap().contains("8431"));
}

#[test]
fn a_person_sees_the_change_and_is_asked() {
    for (key, restored) in [("n\r", false), ("y\r", true)] {
        let (home, _fake) = tour();
        let command = home.command(["sessions", "files", "tour", "--restore", "main.rs"]);
        let mut terminal = Terminal::start(command, &[], 80);
        terminal.until("restore main.rs +1 −1\n  @@ -1,3 +1,3 @@\n   fn main() {\n  -    serve(8432);\n  +    serve(8430);");
        terminal.until("Restore 1 file? [y]es, [N]o:");
        terminal.keys(key);
        assert_eq!(terminal.end(), Some(0), "{}", terminal.screen());
        assert_eq!(file(&home, "main.rs").as_deref() == Some(MAIN), restored);
    }
}

#[test]
fn undoing_a_run_offers_its_files() {
    let (home, _fake) = tour();
    let said = home.run(["sessions", "undo", "tour"]).done();
    assert!(
        said.err.contains("not restored: docs/notes.md, main.rs; to restore: plimsoll sessions files tour --restore --to "),
        "{}",
        said.err
    );
    assert!(file(&home, "main.rs").unwrap().contains("8432"));
    // What the run before it left is not known to be wanted; both are undone now.
    let said = home.run(["sessions", "undo", "tour", "--files"]).done();
    assert!(
        said.err.contains("restored docs/notes.md, main.rs"),
        "{}",
        said.err
    );
    assert_eq!(file(&home, "main.rs").as_deref(), Some(MAIN));
    assert_eq!(file(&home, "docs/notes.md"), None);
}

#[test]
fn a_chat_offers_the_files_of_the_run_that_it_undoes() {
    for (lines, restored) in [
        ("Change it.\n/undo\ny\n", true),
        ("Change it.\n/undo\nn\n", false),
        ("Change it.\n/undo\n", false),
        ("Change it.\n/undo\nSay something.\n", false),
    ] {
        let (home, fake) = (
            home(),
            Fake::new(
                answers()
                    .into_iter()
                    .take(2)
                    .chain([FakeAnswer::say("Something.")]),
            ),
        );
        let said = Chat::start(&home, &fake, &["--yes"]).lines(lines);
        assert_eq!(
            file(&home, "main.rs").as_deref() == Some(MAIN),
            restored,
            "{lines}"
        );
        assert!(
            said.err.contains("restore main.rs +1 −1") && said.err.contains("Restore 1 file?"),
            "{}",
            said.err
        );
        assert_eq!(
            said.out.contains("restored main.rs"),
            restored,
            "{}",
            said.out
        );
        assert_eq!(
            said.err.contains("to restore: plimsoll sessions files "),
            !restored,
            "{}",
            said.err
        );
        assert_eq!(
            said.out.contains("Something."),
            lines.contains("Say something"),
            "{}",
            said.out
        );
    }
}

#[test]
fn the_prompt_of_a_chat_asks_while_files_are_offered() {
    let home = home();
    let fake = Fake::new(answers().into_iter().take(2));
    let mut chat = Terminal::chat(&home, &fake, &["--yes", "--max-context", "20000"], &[], 80);
    chat.until_prompt(">");
    chat.keys("Change it.\r");
    chat.until("cached)");
    chat.until_prompt(">");
    chat.keys("/undo\r");
    chat.until("Restore 1 file? [y]es, [n]o");
    chat.until_prompt("?");
    // Any other line is no answer, and no task either.
    chat.keys("Say something.\r");
    chat.until_times("Restore 1 file? [y]es, [n]o", 2);
    chat.until_prompt("?");
    chat.keys("y\r");
    chat.until("restored main.rs");
    chat.until_prompt(">");
    chat.keys(END);
    assert_eq!(chat.end(), Some(0));
}

#[test]
fn the_changed_lines_are_shown_by_command_and_in_a_chat() {
    let (home, fake) = tour();
    home.file("main.rs", "something else\n");
    let diff = "docs/notes.md new file +2\n  @@ -0,0 +1,2 @@\n  +one\n  +two\nmain.rs +1 −1 (changed since)\n  \
                @@ -1,3 +1,3 @@\n   fn main() {\n  -    serve(8430);\n  +    serve(8432);\n   }\n";
    let said = home.run(["sessions", "files", "tour", "--diff"]).done();
    assert_eq!(said.out, diff);
    let command = home.command(["sessions", "files", "tour", "--diff"]);
    let mut terminal = Terminal::start(command, &[], 80);
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(terminal.screen() + "\n", diff);
    assert!(
        terminal.raw().contains("\u{1b}[32m  +one\u{1b}[0m")
            || terminal.raw().contains("\u{1b}[32m+one\u{1b}[0m"),
        "{}",
        terminal.raw()
    );
    let chat = Chat::start(&home, &fake, &["--quiet", "--session", "tour"]);
    assert_eq!(chat.lines("/diff\n").out, diff);
    let chat = Chat::start(&home, &fake, &["--quiet"]);
    assert!(
        chat.lines("/diff\n")
            .out
            .contains("changed no file with `write` or `edit`")
    );
}
