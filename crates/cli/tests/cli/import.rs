//! `plimsoll sessions import`: sessions of other clients are continued, on every protocol.

use plimsoll_mock::rules::anthropic::sign;
use serde_json::{Value, json};

use super::command::{Home, with};
use super::fake::{Fake, FakeAnswer};

/// A run of Claude's that was killed between two calls, with a message typed in between.
fn dead() -> String {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    json!({"model": "claude-opus-4-6", "system": "Be brief.", "messages": [
        {"role": "user", "content": "Which port?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Two files may say.", "signature": "EqQB"},
            {"type": "tool_use", "id": "toolu_01", "name": "read", "input": {"path": "server.toml"}},
            {"type": "tool_use", "id": "toolu_02", "name": "read", "input": {"path": "README.md"}}]},
        {"role": "user", "content": [
            {"type": "text", "text": "Are you there?"},
            {"type": "tool_result", "tool_use_id": "toolu_01", "content": "port = 8431"}]},
        {"role": "assistant", "content": text("It is 8431.")}]})
    .to_string()
}

fn imported(home: &Home) {
    let args = ["sessions", "import", "-", "--to", "rescued"];
    let said = home.pipe(args, dead()).done();
    assert_eq!(said.out, "rescued\n");
    let told: Vec<&str> = said.err.lines().collect();
    assert_eq!(
        told,
        [
            "plimsoll: repaired: messages[2]: moved this result to its call `toolu_01` (order)",
            "plimsoll: repaired: messages[1]: call `toolu_02` has no result; closed it as aborted (unanswered)",
            "7 messages; continue with: plimsoll run --session rescued --model PROVIDER/NAME \"...\"",
        ]
    );
}

#[test]
fn a_dead_session_goes_on_with_a_chat() {
    let home = Home::new();
    imported(&home);
    let list = home.run(["sessions", "list"]).done();
    assert!(list.out.contains("rescued") && list.out.contains("Which port?"));
    let shown = home.run(["sessions", "show", "rescued"]).done();
    assert!(shown.out.starts_with("session rescued: no run yet\n"));
    let fake = Fake::new([FakeAnswer::say("On 8431.")]);
    let args = ["--session", "rescued", "And where is that said?"];
    let said = home.run(with(&fake, &args)).done();
    assert_eq!(said.out, "On 8431.\n");
    let asked = fake.asked();
    let messages = asked[0]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|one| one["role"].as_str().unwrap())
        .collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ];
    assert_eq!(roles, expected);
    assert_eq!(messages[3]["content"], "port = 8431");
    // It can be undone: what was imported stays.
    home.run(["sessions", "undo", "rescued"]).done();
    let shown = home.run(["sessions", "show", "rescued", "--json"]).done();
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    assert!(shown.to_string().contains("Are you there?"));
    assert!(!shown.to_string().contains("where is that said"));
}

#[test]
fn a_dead_session_goes_on_with_the_newest_claude() {
    let home = Home::new();
    imported(&home);
    let fake = Fake::messages(|request, _| {
        let thought =
            json!({"type": "thinking", "thinking": "So", "signature": sign(request, "So")});
        FakeAnswer::blocks(
            &[thought, json!({"type": "text", "text": "On 8431."})],
            "end_turn",
        )
    });
    let url = fake.url();
    let model = [
        "run",
        "--model",
        "anthropic/claude-opus-5-5",
        "--base-url",
        &url,
    ];
    let run = |task: &str| {
        let task = ["--session", "rescued", task];
        home.run([&model[..], &task].concat()).done().out
    };
    assert_eq!(run("And where is that said?"), "On 8431.\n");
    assert_eq!(run("Thanks."), "On 8431.\n");
    let sent = fake.asked()[0].to_string();
    assert!(sent.contains("port = 8431") && sent.contains("toolu_02"));
    // Nobody knows what the imported thinking was bound to.
    assert!(!sent.contains("Two files may say."));
}

#[test]
fn a_signature_that_is_refused_is_given_up_and_the_session_is_not() {
    // Another account's, say: the server reads no signature but its own.
    let answer = |_: &Value, _: usize| {
        FakeAnswer::blocks(&[json!({"type": "text", "text": "On 8431."})], "end_turn")
    };
    let home = Home::new();
    imported(&home);
    let go_on = |id: &str, fake: &Fake| {
        let url = fake.url();
        let model = ["run", "--model", "anthropic/claude-opus-4-6", "--base-url"];
        let rest = [url.as_str(), "--session", id, "And where is that said?"];
        home.run([&model[..], &rest].concat()).done()
    };
    let fake = Fake::messages(answer).lenient();
    let said = go_on("rescued", &fake);
    assert_eq!((said.out.as_str(), fake.asked().len()), ("On 8431.\n", 2));
    assert!(said.err.contains("note: "), "{}", said.err);
    assert!(said.err.contains("--drop-thinking"), "{}", said.err);
    let args = "sessions import - --to bare --drop-thinking".split(' ');
    home.pipe(args, dead()).done();
    let fake = Fake::messages(answer);
    let said = go_on("bare", &fake);
    assert_eq!((said.out.as_str(), fake.asked().len()), ("On 8431.\n", 1));
    assert!(!said.err.contains("note: "), "{}", said.err);
}

#[test]
fn what_cannot_be_imported_is_said_and_nothing_is_begun() {
    let home = Home::new();
    imported(&home);
    for (args, input, code, words) in [
        (
            &["-", "--to", "rescued"][..],
            dead().as_str(),
            2,
            "there is a session rescued already",
        ),
        (&["-"], "[]", 1, "there is no message in it"),
        (&["-"], "{", 1, "not valid JSON"),
        (&["no-such-file"], "", 2, "no-such-file"),
    ] {
        let args = [&["sessions", "import"][..], args].concat();
        home.pipe(args, input).refused(code, &[words]);
    }
    let args = ["sessions", "import", "-", "--protocol", "gopher"];
    home.pipe(args, "[]")
        .misspelled(&["'gopher' for '--protocol"]);
    let list = home.run(["sessions", "list", "--json"]).done();
    assert_eq!(list.out.lines().count(), 1, "{}", list.out);
}

#[test]
fn without_a_session_the_command_that_takes_a_file_is_named() {
    let home = Home::new();
    let mut command = home.command(["sessions", "import", "--from", "codex"]);
    command.env("HOME", home.work());
    let said = super::command::feed(command, b"");
    said.refused(1, &["no session of Codex", "plimsoll sessions import FILE"]);
}

#[test]
fn the_title_is_what_a_person_typed_first() {
    let home = Home::new();
    let user = |text: &str| json!({"role": "user", "content": text});
    let answer = json!({"role": "assistant", "content": "Yes."});
    let host = "<local-command-caveat>Caveat: The messages below were generated by the user \
                while running local commands.</local-command-caveat>";
    let chat = json!({"messages": [
        user(host), answer, user("<command-name>/model</command-name>"), answer,
        user("Light the lamp.\nThen rest."), answer]});
    let args = ["sessions", "import", "-", "--to", "lamp"];
    home.pipe(args, chat.to_string()).done();
    let list = home.run(["sessions", "list"]).done();
    assert!(list.out.contains("Light the lamp."), "{}", list.out);
    // A session in which no person typed anything has the title that it had.
    let chat = json!({"messages": [user(host), answer]});
    let args = ["sessions", "import", "-", "--to", "hosts"];
    home.pipe(args, chat.to_string()).done();
    let list = home.run(["sessions", "list"]).done();
    assert!(list.out.contains("<local-command-caveat>"), "{}", list.out);
}
