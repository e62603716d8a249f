//! Sessions that are moved to another store and back, read from a damaged file, and read from a
//! full disk.

use std::process::Command;

use serde_json::{Value, json};

use super::command::{CommandOutput, Home, feed};
use super::fake::{Fake, FakeAnswer};
use super::ledger;
use super::runs::messages;

/// A session with a pin, a shortened result and two runs.
fn told(home: &Home) -> String {
    let id = ledger::run(home);
    let fake = Fake::new([FakeAnswer::say("yes")]);
    let args = ["--session", &id, "--pin", "Be brief.", "Are you sure?"];
    home.agent(&fake, &args).done();
    id
}

fn exported(home: &Home, id: &str) -> String {
    home.run(["sessions", "export", id]).done().out
}

/// An export without its first line, which a damaged file may have lost in part.
fn entries(export: &str) -> &str {
    export.split_once('\n').unwrap().1
}

/// All that the commands print about a session.
fn shown(home: &Home, id: &str) -> Vec<String> {
    let commands = ["show", "ledger", "runs"];
    let printed = commands.iter().map(|verb| {
        let args: &[&str] = match *verb {
            "show" => &["sessions", "show", id],
            verb => &["sessions", verb, "--json", id],
        };
        home.run(args).done().out
    });
    printed.collect()
}

#[test]
fn an_export_is_imported_with_everything_about_it() {
    let home = Home::new();
    let id = told(&home);
    home.run(["sessions", "fork", &id, "--to", "fork"]).done();
    let other = Home::new();
    for name in [id.as_str(), "fork"] {
        let export = exported(&home, name);
        let args = ["sessions", "import", "-", "--to", name];
        let said = other.pipe(args, &export).done();
        assert_eq!(said.out, format!("{name}\n"));
        let entries = export.lines().count() - 1;
        assert!(
            said.err
                .starts_with(&format!("{entries} entries; continue with")),
            "{}",
            said.err
        );
        assert_eq!(exported(&other, name), export);
    }
    assert_eq!(shown(&other, &id), shown(&home, &id));
    let item = ledger::ledger(&other, &id)[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let recalled = other.run(["sessions", "recall", &id, &item]).done();
    let original = home.run(["sessions", "recall", &id, &item]).done();
    assert_eq!(recalled.out, original.out);

    // The next request is the same, but for the folder that the system prompt names.
    let next = |home: &Home, name: &str| {
        let fake = Fake::new([FakeAnswer::say("yes")]);
        home.agent(&fake, &["--session", name, "Really?"]).done();
        messages(&fake.asked()[0]).split_off(1)
    };
    assert_eq!(next(&other, &id), next(&home, &id));
    assert_eq!(next(&other, "fork"), next(&home, "fork"));
}

#[test]
fn a_damaged_file_is_checked_saved_and_begun_anew() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("hello")]);
    let other = home.agent(&fake, &["Hello?"]).done().session();
    let id = told(&home);
    let whole = [exported(&home, &id), exported(&home, &other)];
    let said = home.run(["sessions", "check"]).done();
    assert_eq!(said.out.matches("whole\n").count(), 2, "{}", said.out);

    let path = home.data().join("sessions.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // A page with a part of the longer session.
    let text = b"Are you sure?";
    let at = bytes.windows(text.len()).position(|found| found == text);
    let page = at.unwrap() / 4096 * 4096;
    bytes[page..][..4096].fill(b'x');
    std::fs::write(&path, &bytes).unwrap();

    let list = home.run(["sessions", "list"]).done();
    assert!(
        list.out.contains(&id) && list.out.contains(&other),
        "{}",
        list.out
    );
    let check = home.run(["sessions", "check"]);
    assert_eq!(check.code, Some(1), "{check:?}");
    assert!(check.err.contains("sessions salvage"), "{}", check.err);
    let check = home.run(["sessions", "check", "--json"]);
    let rows: Vec<Value> = check
        .out
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows.len(), 2);
    let mut damaged = 0;
    for (id, whole) in [&id, &other].iter().zip(&whole) {
        let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap();
        let said = home.run(["sessions", "export", id]);
        if row["faults"] == json!([]) {
            assert_eq!(entries(&said.done().out), entries(whole));
        } else {
            damaged += 1;
            let lines = row["readable"].as_u64().unwrap();
            assert_eq!(said.out.lines().count() as u64, 1 + lines);
            assert!(entries(whole).starts_with(entries(&said.out)));
            said.refused(1, &[&format!("entry {} of session {id}", lines + 1)]);
        }
    }
    assert_eq!(damaged, 1, "{rows:?}");
    // The cure works.
    let new = home.work().join("new");
    let salvage = home.run(["sessions", "salvage", "--to", new.to_str().unwrap()]);
    assert_eq!(salvage.code, Some(1), "{salvage:?}");
    assert!(salvage.out.contains("not readable"), "{}", salvage.out);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    std::fs::rename(new.join("sessions.db"), &path).unwrap();
    assert_eq!(exported(&home, &other), whole[1]);
    home.run(["sessions", "check"]).done();
    home.pipe(["sessions", "import", "-", "--to", "again"], &whole[0])
        .done();
}

/// Runs a command that can make no file longer, as on a full disk.
fn on_a_full_disk(home: &Home, args: &[&str]) -> CommandOutput {
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_plimsoll"))
        .args(args)
        .env_clear()
        .env("PLIMSOLL_HOME", home.data())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(home.work());
    feed(command, b"")
}

#[test]
fn reading_needs_no_room_on_the_disk() {
    let home = Home::new();
    let id = told(&home);
    let export = exported(&home, &id);
    let mut commands: Vec<Vec<&str>> = vec![
        vec!["sessions", "list"],
        vec!["sessions", "check"],
        vec!["sessions", "export", &id],
    ];
    for verb in ["show", "runs"] {
        commands.push(vec!["sessions", verb, &id]);
    }
    for args in commands {
        let said = on_a_full_disk(&home, &args).done();
        assert_eq!(said.out, home.run(&args).done().out, "{args:?}");
    }
    assert_eq!(
        on_a_full_disk(&home, &["sessions", "export", &id]).out,
        export
    );
    let said = on_a_full_disk(&home, &["sessions", "undo", &id]);
    said.refused(1, &["sessions.db"]);
}
