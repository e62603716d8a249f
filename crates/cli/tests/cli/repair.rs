//! `plimsoll repair`: its repairs, its messages, and its exit codes. The rules themselves are
//! tested in `judge`.

use serde_json::{Value, json};

use super::command::{Home, feed};

const REPAIR: &str = include_str!("../../../../docs/repair.md");

fn block<'a>(kind: &str, nth: usize) -> &'a str {
    let fence = format!("```{kind}\n");
    let (at, _) = REPAIR.match_indices(&fence).nth(nth).unwrap();
    let rest = &REPAIR[at + fence.len()..];
    rest.split("```").next().unwrap()
}

#[test]
fn the_repair_of_the_documentation_is_had_as_it_shows() {
    let home = Home::new();
    home.file("session.json", block("json", 0));
    let mut shown = block("console", 0).lines().peekable();
    while let Some(command) = shown.next() {
        let command = home.shell(command.strip_prefix("$ ").unwrap());
        let said = feed(command, b"").done();
        let mut lines = said.err.lines();
        while let Some(line) = shown.next_if(|line| !line.starts_with('$')) {
            assert_eq!(lines.next(), Some(line), "{}", said.err);
        }
        assert_eq!(lines.next(), None, "{}", said.err);
        assert_eq!(said.out, "");
    }
    let read = |name: &str| std::fs::read_to_string(home.work().join(name)).unwrap();
    assert_eq!(read("repaired.json"), read("again.json"));
    let repaired: Value = serde_json::from_str(&read("repaired.json")).unwrap();
    let before: Value = serde_json::from_str(block("json", 0)).unwrap();
    assert_eq!(repaired["messages"][1], before["messages"][1]);
    let kinds = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks
            .map(|one| one["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let last = &repaired["messages"][2];
    assert_eq!(kinds(last), ["tool_result", "tool_result", "text"]);
    assert_eq!(repaired["messages"].as_array().unwrap().len(), 3);
    // What --json is said to say, it says.
    let shown: Value = serde_json::from_str(block("json", 1)).unwrap();
    let said = home.run(["repair", "--json", "session.json"]).done();
    let report: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(report["repairs"][0], shown["repairs"][0]);
    assert_eq!(report["protocol"], shown["protocol"]);
    assert_eq!(said.out, read("repaired.json"));
}

fn chat(messages: &Value) -> String {
    json!({ "messages": messages }).to_string()
}

#[test]
fn a_model_or_a_protocol_says_whose_rules_hold() {
    let home = Home::new();
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let whole = chat(&json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
    ]));
    for args in [&["repair"][..], &["repair", "--protocol", "openai", "-"]] {
        let said = home.pipe(args, &whole).done();
        assert_eq!((said.out, said.err), (whole.clone(), String::new()));
    }
    let said = home
        .pipe(["repair", "--model", "mistral/devstral"], &whole)
        .done();
    assert!(!said.out.contains("call_1"), "{}", said.out);
    assert!(said.err.contains("(ids)"), "{}", said.err);
    let quiet = home
        .pipe(["repair", "--quiet", "--model", "mistral/devstral"], &whole)
        .done();
    assert_eq!((quiet.err, quiet.out), (String::new(), said.out));

    let open = json!({"input": [
        {"role": "user", "content": "q"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]});
    let said = home.pipe(["repair"], open.to_string()).done();
    assert!(said.out.contains("function_call_output") && said.err.contains("(unanswered)"));
}

#[test]
fn a_result_without_a_call_is_dropped_and_settings_stay() {
    let home = Home::new();
    let request = json!({"model": "claude-sonnet-4-5", "max_tokens": 0, "messages": [
        {"role": "user", "content": "q"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
    ]});
    let said = home.pipe(["repair"], request.to_string()).done();
    assert!(said.err.contains("(orphans)"), "{}", said.err);
    assert!(!said.out.contains("tool_result") && said.out.contains("\"max_tokens\":0"));
}

#[test]
fn thinking_goes_where_it_is_asked_to() {
    let home = Home::new();
    let signed = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
            {"type": "text", "text": "a"},
        ]},
        {"role": "user", "content": "b"},
    ]);
    let said = home.pipe(["repair"], chat(&signed)).done();
    assert_eq!((said.out, said.err), (chat(&signed), String::new()));
    let said = home
        .pipe(["repair", "--drop-thinking"], chat(&signed))
        .done();
    assert!(!said.out.contains("thinking"), "{}", said.out);
    assert_eq!(
        said.err,
        "plimsoll: repaired: messages[1]: left out its thinking (thinking)\n"
    );
}

#[test]
fn what_is_nested_too_deep_is_not_taken_for_another_protocol() {
    let home = Home::new();
    let deep = format!("{}1{}", "[".repeat(160), "]".repeat(160));
    let text = format!(
        r#"[{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n","input":{{"a":{deep}}}}}]}}]"#
    );
    for command in [&["repair"][..], &["compact", "--budget", "9"]] {
        let said = home.pipe(command, &text);
        said.refused(1, &["nested deeper than 127 levels at line 1 column"]);
        assert_eq!(said.out, "");
    }
}

/// A model of OpenAI's is asked over both of their wires.
#[test]
fn a_request_to_responses_is_one_whatever_the_model_is_called_by() {
    let home = Home::new();
    let request = json!({"model": "gpt-5.4", "input": [{"role": "user", "content": "Aye?"}]});
    for command in [
        &["repair", "--model", "openai/gpt-5.4"][..],
        &["compact", "--budget", "9000", "--model", "openai/gpt-5.4"],
    ] {
        let said = home.pipe(command, request.to_string()).done();
        let out: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(out, request, "{command:?}");
    }
}

/// Texts alone are the same in several protocols; anything else tells whose it is.
#[test]
fn a_chat_of_another_protocol_than_the_named_one_is_refused() {
    let home = Home::new();
    let question = json!({"role": "user", "content": "q"});
    let image = json!({"type": "image_url", "image_url": {"url": "https://e.org/a.png"}});
    for (message, is_told) in [
        (json!({"role": "assistant", "content": "a"}), false),
        (json!({"role": "developer", "content": "Be brief."}), true),
        (
            json!({"role": "tool", "tool_call_id": "c", "content": "r"}),
            true,
        ),
        (json!({"role": "user", "content": [image]}), true),
    ] {
        let chat = chat(&json!([question, message, question]));
        let said = home.pipe(["repair", "--protocol", "anthropic"], &chat);
        if is_told {
            said.refused(2, &["the chat has the protocol openai", "anthropic"]);
        } else {
            assert_eq!(said.done().out, chat);
        }
    }
}

#[test]
fn what_is_no_chat_is_said() {
    let home = Home::new();
    for (args, input, code, words) in [
        (&["repair"][..], "", 1, "the input is empty"),
        (&["repair"], "{", 1, "not valid JSON"),
        (&["repair"], "{\"a\":1}", 1, "messages"),
        (
            &["repair", "--protocol", "gopher"],
            "[]",
            2,
            "openai-responses",
        ),
        (&["repair", "--model", "gopher/x"], "[]", 2, "gopher"),
        (&["repair", "--model", "gemini/x"], "[]", 2, "none of the"),
        (
            &["repair", "--model", "openai/gpt-5.4-pro"],
            "{\"model\": \"gpt-5.4-pro\", \"messages\": [{\"role\": \"user\", \"content\": \"Aye?\"}]}",
            2,
            "write it with `input`",
        ),
        (&["repair", "no-such-file"], "", 2, "no-such-file"),
    ] {
        let said = home.pipe(args, input);
        assert_eq!(said.code, Some(code), "{args:?} {}", said.err);
        assert!(said.err.contains(words), "{args:?} {}", said.err);
        assert_eq!(said.out, "");
    }
}

#[test]
fn the_reason_for_a_repair_is_explained() {
    let home = Home::new();
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
    ]);
    home.file("chat.json", chat(&messages));
    let said = home.run(["repair", "--explain", "chat.json"]).done();
    assert_eq!(
        said.err,
        "plimsoll: repaired: messages[1]: call `a` has no result; closed it as aborted (unanswered)\n\
         \x20 because each tool call must have one result\n"
    );
}
