//! `plimsoll sessions export | import`: several sessions in one file with their listed properties,
//! and incomplete files.

use std::process::Stdio;

use serde_json::Value;

use super::command::{CommandOutput, Home};
use super::fake::{Fake, FakeAnswer};

/// A home with the session `tour`, its fork `other`, which was run, `third`, a fork of that, which was not,
/// and `alone`.
fn home(fake: &Fake) -> Home {
    let home = Home::new();
    let run = |session: &str, task: &str| home.agent(fake, &["--session", session, task]).done();
    run("tour", "Where to?");
    home.run(["sessions", "fork", "tour", "--to", "other"])
        .done();
    home.run(["sessions", "fork", "other", "--to", "third"])
        .done();
    run("alone", "Who?");
    run("other", "And then?");
    run("tour", "And back?");
    home.run(["sessions", "rename", "alone", "Who is there"])
        .done();
    home
}

fn says() -> Fake {
    Fake::new(["North.", "Me.", "East.", "South.", "West."].map(FakeAnswer::say))
}

fn export(home: &Home, args: &[&str]) -> String {
    home.run([&["sessions", "export"], args].concat())
        .done()
        .out
}

fn import(home: &Home, text: &str, args: &[&str]) -> CommandOutput {
    home.pipe([&["sessions", "import", "-"], args].concat(), text)
}

fn list(home: &Home) -> Vec<Value> {
    let list = home.run(["sessions", "list", "--json"]).done().out;
    list.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The model and the folder of the last run are not in an export, nor what a session is a fork of.
fn exported(mut rows: Vec<Value>) -> Vec<Value> {
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        for field in ["model", "folder", "fork", "bytes"] {
            row.remove(field);
        }
    }
    rows
}

#[test]
fn a_reader_that_goes_away_ends_the_export_quietly() {
    let home = home(&says());
    let mut command = home.command(["sessions", "export", "--all"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*err), (Some(141), ""));
}

#[test]
fn all_sessions_are_the_same_in_another_home() {
    let fake = says();
    let home = home(&fake);
    let text = export(&home, &["--all"]);
    let other = Home::new();
    let said = import(&other, &text, &[]).done();
    let mut names: Vec<&str> = said.out.lines().collect();
    names.sort_unstable();
    assert_eq!(names, ["alone", "other", "third", "tour"]);
    assert!(said.err.ends_with(" entries; 4 sessions\n"), "{}", said.err);

    assert_eq!(exported(list(&other)), exported(list(&home)));
    let rows = list(&other);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    assert_eq!(row("alone")["title"], "Who is there");
    assert_eq!(row("third")["model"], Value::Null);
    for name in names {
        for verb in ["show", "runs"] {
            let shown = |home: &Home| {
                let shown = home.run(["sessions", verb, name]).done().out;
                let lines = shown.lines().filter(|line| !line.starts_with("fork of "));
                lines.collect::<Vec<_>>().join("\n")
            };
            assert_eq!(shown(&other), shown(&home), "{verb} {name}");
        }
    }
    assert_eq!(export(&other, &["--all"]), text);

    // It is continued with the model of its log. Nothing that could be misused came with it.
    other
        .run(["run", "--session", "other", "And now?"])
        .refused(
            2,
            &["session other runs on openai-compatible/m", "--base-url"],
        );
    let url = fake.url();
    other
        .run([
            "run",
            "--session",
            "other",
            "--base-url",
            &url,
            "--model",
            "openai-compatible/m",
            "Now?",
        ])
        .done();
}

#[test]
fn a_fork_is_imported_as_a_session_of_its_own_and_may_get_another_name() {
    let fake = says();
    let home = home(&fake);
    let text = export(&home, &["third"]);
    let said = import(&home, &text, &[]);
    said.refused(1, &["there is a session third already", "another name"]);
    let said = import(&home, &text, &["--to", "fourth"]).done();
    assert_eq!(said.out, "fourth\n");
    let rows = list(&home);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    let (third, fourth) = (row("third"), row("fourth"));
    assert!(fourth.get("fork").is_none());
    for field in ["title", "created", "updated", "entries"] {
        assert_eq!(third[field], fourth[field], "{field}");
    }
    let entries = |id: &str| {
        let text = export(&home, &[id]);
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(entries("third"), entries("fourth"));
    // It does not need what it was a fork of.
    home.run(["sessions", "delete", "--yes", "third", "other", "tour"])
        .done();
    let shown = home.run(["sessions", "show", "fourth"]).done().out;
    assert!(
        shown.contains("Where to?") && !shown.contains("fork of"),
        "{shown}"
    );
}

#[test]
fn what_is_no_whole_export_is_refused_and_nothing_is_imported() {
    let fake = says();
    let home = home(&fake);
    let all = export(&home, &["tour", "other", "alone"]);
    let one = export(&home, &["alone"]);
    let lines: Vec<&str> = one.lines().collect();
    let other = Home::new();
    let refused = |text: &str, args: &[&str], code: i32, words: &[&str]| {
        import(&other, text, args).refused(code, words);
        assert_eq!(list(&other), Vec::<Value>::new());
    };
    let mut hole = lines.clone();
    hole.remove(3);
    refused(
        &hole.join("\n"),
        &[],
        1,
        &[
            "line 4 of the export",
            "entry 3 is due",
            "export the session again",
        ],
    );
    let cut = &one[..one.len() - 30];
    let place = format!("line {} of the export: it cannot be read", lines.len());
    refused(cut, &[], 1, &[&place]);
    refused(
        &all,
        &["--to", "new"],
        2,
        &["--to names one session, but the file contains 3"],
    );
    refused(
        &one,
        &["--drop-thinking"],
        2,
        &["leave out --protocol and --drop-thinking"],
    );

    let missing = "the first line of its session is missing";
    refused(&lines[1..].join("\n"), &[], 1, &[missing]);

    import(&other, &one, &[]).done();
    let before = list(&other);
    let said = import(&other, &all, &[]);
    said.refused(1, &["there is a session alone already"]);
    assert_eq!(list(&other), before);
}
