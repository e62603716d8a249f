//! Continued sessions use their own model, address and settings, unless a flag overrides them, and
//! never an earlier consent.

use serde_json::Value;

use super::chatting::Chat;
use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};
use super::runs::messages;

fn says(words: &[&str]) -> Fake {
    Fake::new(words.iter().map(|word| FakeAnswer::say(word)))
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array();
    let names = tools.into_iter().flatten();
    names
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

/// Runs the command that a line of stderr names.
fn as_printed(home: &Home, said: &CommandOutput, before: &str) -> CommandOutput {
    let line = said.err.lines().find_map(|line| line.strip_prefix(before));
    let command = line.unwrap_or_else(|| panic!("no `{before}`: {}", said.err));
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("plimsoll"));
    home.run(words)
}

#[test]
fn a_session_keeps_its_model_address_and_settings() {
    let (home, fake) = (Home::new(), says(&["one", "two", "three", "four", "five"]));
    let read = [
        "--tools",
        "read",
        "--max-tokens",
        "77",
        "--set",
        "temperature=0.5",
        "--session",
        "s",
    ];
    home.agent(&fake, &[&read[..], &["First."]].concat()).done();
    home.run(["run", "--session", "s", "Second."]).done();
    home.run(["run", "--session", "s", "--max-tokens", "99", "Third."])
        .done();
    home.run(["run", "--session", "s", "Fourth."]).done();
    let chat = feed(home.command(["chat", "--session", "s"]), b"Fifth.\n").done();
    assert_eq!(chat.out, "five\n");
    let asked = fake.asked();
    for (request, max_tokens) in asked.iter().zip([77, 77, 99, 99, 99]) {
        assert_eq!(request["model"], "m");
        let tools = tools(request);
        assert!(
            tools.contains(&"read") && !tools.contains(&"bash"),
            "{tools:?}"
        );
        assert_eq!(request["max_tokens"], max_tokens);
        assert_eq!(request["temperature"], 0.5);
    }
    assert_eq!(messages(&asked[4])[7].1, "Fourth.");

    // A model that is named is not asked for at the address of another one.
    let other = says(&["six"]);
    let url = other.url();
    let flags = ["--model", "openai-compatible/other", "--base-url", &url];
    let args = [&["run", "--session", "s"][..], &flags, &["Sixth."]].concat();
    home.run(args).done();
    assert_eq!(other.asked()[0]["model"], "other");
    let said = home.run([
        "run",
        "--session",
        "s",
        "--model",
        "openai-compatible/m",
        "Hi",
    ]);
    said.refused(2, &["--base-url"]);
}

#[test]
fn a_fork_is_continued_like_its_parent_and_an_export_has_no_addresses() {
    let (home, fake) = (Home::new(), says(&["one", "two"]));
    home.agent(&fake, &["--session", "s", "First."]).done();
    home.run(["sessions", "fork", "s", "--to", "f"]).done();
    assert_eq!(
        home.run(["run", "-q", "--session", "f", "Hi"]).done().out,
        "two\n"
    );
    let export = home.run(["sessions", "export", "s"]).done();
    assert!(!export.out.contains(&fake.url()), "{}", export.out);
}

#[test]
fn what_is_printed_to_carry_on_with_works_as_it_is_printed() {
    let home = Home::new();
    home.file("notes.txt", "forty-two\n");
    let read = || FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]);
    let fake = Fake::new([
        read(),
        FakeAnswer::say("So far: forty-two."),
        FakeAnswer::say("All of it."),
        FakeAnswer::error(400, "the model is being replaced"),
        FakeAnswer::say("At last."),
    ]);
    let said = home.agent(&fake, &["--max-turns", "2", "Go on."]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    let said = as_printed(&home, &said, "continue with: ").done();
    assert_eq!(said.out, "All of it.\n");
    let said = home.run(["run", "--session", &said.session(), "More."]);
    said.refused(5, &["being replaced"]);
    let said = as_printed(&home, &said, "try again with: ").done();
    assert_eq!(said.out, "At last.\n");

    // Where the same thing would only fail again, nothing is advised.
    let idle = says(&[]);
    let said = home.agent(&idle, &["--max-context", "40", "Hi"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(!said.err.contains("with: plimsoll"), "{}", said.err);
}

#[test]
fn a_chat_prints_how_to_carry_on_and_takes_a_new_name() {
    let (home, fake) = (Home::new(), says(&["one", "two", "three"]));
    let said = Chat::start(&home, &fake, &["--session", "new"]).lines("First.\n");
    assert_eq!(said.out, "one\n", "{}", said.err);
    assert!(said.err.contains("this session is new"), "{}", said.err);
    let line = said.err.lines().last().unwrap();
    let command = line.strip_prefix("continue with: plimsoll ").unwrap();
    let said = feed(home.command(command.split(' ')), b"Second.\n").done();
    assert_eq!(said.out, "two\n", "{}", said.err);
    assert!(!said.err.contains("this session is new"), "{}", said.err);
    assert_eq!(messages(&fake.asked()[1])[3].1, "Second.");
}

#[test]
fn consent_is_not_remembered_and_a_denial_is() {
    let home = Home::new();
    let call = || FakeAnswer::call(&[("bash", "{\"command\":\"touch made\"}")]);
    let list = || FakeAnswer::call(&[("list", "{}")]);
    let say = || FakeAnswer::say("done");
    let fake = Fake::new([call(), say(), call(), say(), list(), say()]);
    let allow = [
        "--session",
        "s",
        "--allow",
        "bash",
        "--deny",
        "list",
        "Do it.",
    ];
    home.agent(&fake, &allow).done();
    let made = home.work().join("made");
    assert!(made.exists());
    std::fs::remove_file(&made).unwrap();
    home.run(["run", "--session", "s", "Again."]).done();
    assert!(!made.exists());
    home.run(["run", "--session", "s", "List."]).done();
    let (role, text) = messages(&fake.asked()[5]).pop().unwrap();
    assert_eq!(role, "tool");
    assert!(text.contains("do not allow this call of `list`"), "{text}");
}

#[test]
fn a_named_configuration_is_used_again_as_long_as_it_is_the_same() {
    let (home, fake) = (Home::new(), says(&["one", "two"]));
    let config = home.file("mine.toml", "system = \"Speak like a sailor.\"\n");
    home.agent(&fake, &["--session", "s", "--config", "mine.toml", "Hi."])
        .done();
    home.run(["run", "--session", "s", "Again."]).done();
    let asked = fake.asked();
    assert!(messages(&asked[1])[0].1.contains("sailor"), "{asked:?}");
    std::fs::write(&config, "system = \"Do harm.\"\n").unwrap();
    home.run(["run", "--session", "s", "Again."])
        .refused(2, &["session s was run with --config", "has changed since"]);
    assert_eq!(fake.asked().len(), 2);
}

#[test]
fn a_model_that_is_no_longer_there_is_named_in_one_sentence() {
    let (home, fake) = (Home::new(), says(&["one"]));
    let url = fake.url();
    let config = format!(
        "model = \"mine/m\"\n[providers.mine]\nbase_url = \"{url}\"\n\
         api_key_env = \"MINE_KEY\"\n"
    );
    home.file("mine.toml", config);
    let args = ["run", "--session", "s", "--config", "mine.toml", "Hi."];
    let mut command = home.command(args);
    command.env("MINE_KEY", "sk-none");
    feed(command, b"").done();
    home.run(["run", "--session", "s", "Again."])
        .refused(2, &["session s runs on mine/m: ", "MINE_KEY"]);
}

#[test]
fn an_answered_run_is_not_continued_without_a_task() {
    let (home, fake) = (Home::new(), says(&["one", "two"]));
    home.agent(&fake, &["--session", "s", "Begin."]).done();
    for again in [&["--session", "s"][..], &["-c"]] {
        home.agent(&fake, again)
            .refused(2, &["session s was answered", "give a task"]);
    }
    home.agent(&fake, &["-c", "And?"]).done();
    assert_eq!(fake.asked().len(), 2);
}

#[cfg(unix)]
#[test]
fn a_folder_whose_name_is_no_text_is_run_in() {
    use std::os::unix::ffi::OsStrExt;
    let (home, fake) = (Home::new(), says(&["one", "two"]));
    let folder = home.work().join(std::ffi::OsStr::from_bytes(b"a\xff"));
    std::fs::create_dir(&folder).unwrap();
    for task in ["Begin.", "Go on."] {
        let mut command = home.command(with(&fake, &["--session", "s", task]));
        command.current_dir(&folder);
        feed(command, b"").done();
    }
    assert_eq!(fake.asked().len(), 2);
}
