//! Permissions to run without a question: modes by flag and by file, with and without a terminal,
//! and approvals that are stored for a project.

use std::os::unix::fs::PermissionsExt;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;
use super::terminal::Terminal;

const WINDOW: [&str; 2] = ["--max-context", "20000"];

fn home() -> Home {
    let home = Home::new();
    home.file("main.rs", "fn main() {\n    serve(8430);\n}\n");
    home
}

fn edit() -> FakeAnswer {
    FakeAnswer::call(&[("edit", r#"{"path":"main.rs","old":"8430","new":"8431"}"#)])
}

fn main_rs(home: &Home) -> String {
    std::fs::read_to_string(home.work().join("main.rs")).unwrap()
}

#[test]
fn a_change_is_shown_before_a_person_is_asked_about_it() {
    for (key, changed) in [("n\r", false), ("y\r", true)] {
        let (home, fake) = (home(), Fake::new([edit(), FakeAnswer::say("Done.")]));
        let args = [WINDOW[0], WINDOW[1], "Change it."];
        let mut run = Terminal::run(&home, &fake, &args, 80);
        let question = "edit main.rs +1 −1\n  @@ -1,3 +1,3 @@\n   fn main() {\n  -    serve(8430);\n  \
            +    serve(8431);\n   }\nAllow? [y]es, [a]lways edits in this session, [N]o:";
        run.until(question);
        assert!(
            main_rs(&home).contains("8430"),
            "nothing is changed before the answer"
        );
        run.keys(key);
        assert_eq!(run.end(), Some(0), "{}", run.screen());
        assert_eq!(main_rs(&home).contains("8431"), changed);
        let screen = run.screen();
        assert_eq!(
            screen.matches("serve(8431)").count(),
            1,
            "shown once: {screen}"
        );
        assert_eq!(
            screen.contains("· edit main.rs +1 −1\n"),
            changed,
            "{screen}"
        );
    }
}

#[test]
fn a_long_change_is_shown_in_full() {
    let rows: String = (0..90).map(|n| format!("row {n}\\n")).collect();
    let write = format!(r#"{{"path":"long.txt","content":"{rows}"}}"#);
    let write = FakeAnswer::call(&[("write", &write)]);
    let (home, fake) = (home(), Fake::new([write, FakeAnswer::say("Done.")]));
    let args = [WINDOW[0], WINDOW[1], "Write it."];
    let mut run = Terminal::run(&home, &fake, &args, 100);
    run.until("  +row 89\nAllow?");
    run.keys("y\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    assert!(home.work().join("long.txt").exists());
}

#[test]
fn a_message_instead_of_an_answer_is_the_reason_for_a_no() {
    let call = FakeAnswer::call(&[("bash", r#"{"command":"cargo test"}"#)]);
    let (home, fake) = (home(), Fake::new([call, FakeAnswer::say("Done.")]));
    let mut run = Terminal::run(&home, &fake, &[WINDOW[0], WINDOW[1], "Test it."], 100);
    run.until("[N]o:");
    run.keys("Use make.\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    let (role, text) = messages(&fake.asked()[1]).pop().unwrap();
    assert_eq!(role, "tool");
    assert!(
        text.contains("did not allow this call, and says: Use make."),
        "{text}"
    );
}

#[test]
fn modes_say_what_runs_where_nobody_can_be_asked() {
    let auto_edit = "permission_mode = \"auto-edit\"";
    for (args, file, edited, ran, told) in [
        (
            vec![],
            "",
            false,
            false,
            "--permission-mode auto-edit allows changes of files",
        ),
        (
            vec!["--permission-mode", "ask"],
            "",
            false,
            false,
            "--allow edit allows it",
        ),
        (
            vec!["--allow", "edit"],
            "",
            true,
            false,
            "`bash` did not run",
        ),
        (
            vec!["--mode", "auto-edit"],
            "",
            true,
            false,
            "`bash` did not run",
        ),
        (vec![], auto_edit, true, false, "`bash` did not run"),
        (
            vec!["--mode", "ask"],
            auto_edit,
            false,
            false,
            "`edit` did not run",
        ),
        (
            vec!["--mode", "read-only"],
            auto_edit,
            false,
            false,
            "this run is read-only",
        ),
        (vec!["--mode", "yes"], "", true, true, "exit 0"),
        (vec!["--yes"], "", true, true, "exit 0"),
    ] {
        let home = home();
        home.file("settings.toml", file);
        let bash = FakeAnswer::call(&[("bash", r#"{"command":"touch ran"}"#)]);
        let fake = Fake::new([edit(), bash, FakeAnswer::say("Done.")]);
        let named = ["--config", "settings.toml"];
        let all: Vec<&str> = named
            .into_iter()
            .chain(args)
            .chain(["Change it."])
            .collect();
        let said = home.agent(&fake, &all).done();
        assert_eq!(
            main_rs(&home).contains("8431"),
            edited,
            "{all:?}: {}",
            said.err
        );
        assert_eq!(
            home.work().join("ran").exists(),
            ran,
            "{all:?}: {}",
            said.err
        );
        assert!(said.err.contains(told), "{all:?}: {}", said.err);
        let advises = said.err.contains("auto-edit allows changes");
        assert!(!(edited && advises), "{all:?}: {}", said.err);
    }
    let said = home().run(["run", "--yes", "--mode", "ask", "x"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
}

#[test]
fn what_is_always_allowed_is_remembered_for_the_project() {
    let home = home();
    let git = |more: &str| {
        FakeAnswer::call(&[("bash", &format!(r#"{{"command":"git version{more}"}}"#))])
    };
    let args = [WINDOW[0], WINDOW[1], "Look."];
    let built = " --build-options";
    let fake = Fake::new([git(built), git(" -h -h"), FakeAnswer::say("Done.")]);
    let mut run = Terminal::run(&home, &fake, &args, 200);
    run.until(
        "[a]lways `git version --build-options` in this project, [p]attern `git version *` in this \
         project, [N]o:",
    );
    run.keys("p\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    assert_eq!(
        run.screen().matches("Allow?").count(),
        1,
        "{}",
        run.screen()
    );
    let file = home.data().join("approvals.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Another run, another command.
    let fake = Fake::new([git(built), git("; ls"), FakeAnswer::say("Done.")]);
    let mut run = Terminal::run(&home, &fake, &args, 80);
    run.until("bash git version; ls\nAllow? [y]es, [N]o:");
    run.keys("n\r");
    assert_eq!(run.end(), Some(0), "{}", run.screen());
    assert_eq!(
        run.screen().matches("Allow?").count(),
        1,
        "{}",
        run.screen()
    );
}

#[test]
fn no_tool_writes_what_is_remembered_without_a_question() {
    let home = home();
    let root = home.data();
    std::fs::create_dir(&root).unwrap();
    let write = FakeAnswer::call(&[("write", r#"{"path":"approvals.json","content":"{}"}"#)]);
    let fake = Fake::new([write, FakeAnswer::say("Done.")]);
    let root_flag = root.to_str().unwrap();
    let args = ["--root", root_flag, "--mode", "auto-edit", "Write."];
    let said = home.agent(&fake, &args).done();
    assert!(!root.join("approvals.json").exists(), "{}", said.err);
    assert!(
        said.err.contains("a protected file was not changed"),
        "{}",
        said.err
    );
}
