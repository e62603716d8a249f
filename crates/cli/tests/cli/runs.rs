//! `plimsoll run` when it succeeds or ends by a limit: the requests to the model, and the output
//! for users and scripts.

use plimsoll::{Delta, Event, SessionEvent};
use serde_json::Value;

use super::command::{Home, feed, with};
use super::fake::{Fake, FakeAnswer};

/// Three turns: one file is read, two tools run at once, and the answer.
fn script() -> Vec<FakeAnswer> {
    vec![
        FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]),
        FakeAnswer::call(&[("list", "{}"), ("grep", "{\"pattern\":\"forty\"}")]),
        FakeAnswer::say("It is forty-two, says notes.txt. ✓"),
    ]
}

/// The text of each message of a request, with its role.
pub(crate) fn messages(request: &Value) -> Vec<(String, String)> {
    let messages = request["messages"].as_array().unwrap();
    let pair = |message: &Value| {
        let content = &message["content"];
        let text = content
            .as_str()
            .map_or_else(|| content.to_string(), str::to_owned);
        (message["role"].as_str().unwrap().to_owned(), text)
    };
    messages.iter().map(pair).collect()
}

#[test]
fn a_task_is_done_with_tools() {
    let (home, fake) = (Home::with_notes(), Fake::new(script()));
    let said = home.agent(&fake, &["Which number?"]).done();
    assert_eq!(said.out, "It is forty-two, says notes.txt. ✓\n");
    let asked = fake.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(
        messages(&asked[0])[1],
        ("user".into(), "Which number?".into())
    );
    let tools = asked[0]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "bash",
            "edit",
            "glob",
            "grep",
            "list",
            "read",
            "recall",
            "recall_search",
            "write"
        ]
    );
    let (role, text) = messages(&asked[1]).pop().unwrap();
    assert!(
        role == "tool" && text.contains("the number is forty-two"),
        "{text}"
    );
    let results: Vec<_> = messages(&asked[2]).split_off(4);
    assert_eq!(results.len(), 3, "{results:?}");
    assert!(results[1].1.contains("notes.txt") && results[2].1.contains("forty-two"));
    for part in [
        "answered",
        "3 turns, 3 tool calls",
        "read 300 (40 % cached), wrote 30",
        "session ",
    ] {
        assert!(said.err.contains(part), "no {part}: {}", said.err);
    }
    assert!(
        said.err.contains("· read notes.txt · 1 line") && said.err.contains("· list"),
        "{}",
        said.err
    );
    assert!(!said.err.contains('\u{1b}'), "a pipe gets no colours");
}

#[test]
fn scripts_get_events_as_json_lines() {
    let (home, fake) = (Home::with_notes(), Fake::new(script()));
    let said = home.agent(&fake, &["--json", "Which number?"]).done();
    assert_eq!(said.err, "");
    let lines: Vec<SessionEvent> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let listed = home.run(["sessions", "list", "--json"]).done().out;
    for line in &lines {
        assert!(
            listed.contains(&format!("\"{}\"", line.session)),
            "{listed}"
        );
        assert_eq!(line.run, 1);
    }
    let events: Vec<Event> = lines.into_iter().map(|line| line.event).collect();
    assert!(matches!(events.first(), Some(Event::AgentStart { .. })));
    let Some(Event::AgentEnd { outcome, .. }) = events.last() else {
        panic!("no end: {}", said.out);
    };
    assert!(outcome.reason.is_answer());
    assert_eq!((outcome.turns, outcome.tool_calls), (3, 3));
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            Event::Delta(Delta::Text { text }) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, outcome.text);
    let turns = events
        .iter()
        .filter(|event| matches!(event, Event::TurnEnd { .. }))
        .count();
    let calls = events
        .iter()
        .filter(|event| matches!(event, Event::ToolCall { .. }))
        .count();
    assert_eq!((turns, calls), (3, 6));
}

/// G1 and G3 on the command line: the steps of a run, cut to their size, and what it holds in memory.
#[test]
fn scripts_get_steps_and_memory() {
    let (home, fake) = (Home::with_notes(), Fake::new(script()));
    let long = format!("{}forty-two\n", "0123456789\n".repeat(1_000));
    home.file("notes.txt", long);
    home.file("own.toml", "max_step_result_size = 300\n");
    let args = ["--json", "--config", "own.toml", "Which number?"];
    let said = home.agent(&fake, &args).done();
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| -> Vec<&Value> {
        let named = events.iter().filter(|event| event["event"] == name);
        named.collect()
    };
    let steps = of("step");
    let names: Vec<&str> = steps
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["read", "list", "grep"]);
    let first = steps[0]["result"].as_str().unwrap();
    assert_eq!(first.len(), 300);
    assert!(first.ends_with("[truncated]"), "{first}");
    assert_eq!(steps[0]["arguments"], "{\"path\":\"notes.txt\"}");
    assert_eq!(steps[0]["is_error"], false);
    let held = |event: &Value| event["memory"].as_u64().unwrap();
    let turns = of("turn_end");
    assert!(held(turns[0]) > 10_000, "{:?}", turns[0]);
    assert!(held(turns[1]) > held(turns[0]));
    let peak = of("agent_end")[0]["peak_memory"].as_u64();
    assert!(peak.unwrap() >= held(turns[1]), "{peak:?}");
}

#[test]
fn quiet_prints_the_answer_alone() {
    let (home, fake) = (Home::with_notes(), Fake::new(script()));
    let said = home.agent(&fake, &["--quiet", "Which number?"]).done();
    assert_eq!(said.out, "It is forty-two, says notes.txt. ✓\n");
    assert_eq!(said.err, "");
}

#[test]
fn the_prompt_comes_from_files_and_the_task_from_a_pipe() {
    let home = Home::with_notes();
    home.file("AGENTS.md", "Use tabs.\n");
    let system = home.file("system.md", "You count things.\n");
    let fake = Fake::new([FakeAnswer::say("one")]);
    let args = [
        "--system",
        system.to_str().unwrap(),
        "--tools",
        "read,grep",
        "--quiet",
        "--temperature",
        "0.5",
        "--seed",
        "7",
        "--max-tokens",
        "99",
        "-",
    ];
    let said = feed(home.command(with(&fake, &args)), b"Count\nthem.\n").done();
    assert_eq!(said.out, "one\n");
    let request = fake.asked().remove(0);
    let sent = messages(&request);
    assert_eq!(sent[0].0, "system");
    assert!(
        sent[0].1.starts_with("You count things.\n"),
        "{}",
        sent[0].1
    );
    assert!(
        sent[0].1.contains("AGENTS.md") && sent[0].1.ends_with("Use tabs."),
        "{}",
        sent[0].1
    );
    assert_eq!(sent[1].1.trim_end(), "Count\nthem.");
    let tools = request["tools"].as_array().unwrap().len();
    assert_eq!(tools, 4, "read, grep and those that recall");
    assert_eq!(
        (&request["temperature"], &request["seed"]),
        (&0.5.into(), &7.into())
    );
    assert_eq!(request["max_tokens"], 99);
}

#[test]
fn piped_text_is_appended_to_the_task() {
    let home = Home::new();
    let fake = Fake::new(["Fine.", "Whole.", "Bare."].map(FakeAnswer::say));
    let task = |input: &str, task: &str| {
        home.pipe(with(&fake, &[task]), input).done();
        messages(fake.asked().last().unwrap()).pop().unwrap().1
    };
    assert_eq!(
        task("-old\n+new\n", "Review this."),
        "Review this.\n\n-old\n+new\n"
    );
    assert_eq!(task("The whole task.", "-"), "The whole task.");
    assert_eq!(task(" \n", "Hello."), "Hello.");
    let large = "x".repeat(17 << 20);
    home.pipe(with(&fake, &["Review this."]), &large)
        .refused(2, &["standard input is larger than 16 MiB"]);
    home.pipe(with(&fake, &["Review this."]), b"\xff\xfe")
        .refused(1, &["the input is not UTF-8: byte 0"]);
    assert_eq!(fake.asked().len(), 3);
}

#[test]
#[cfg(not(feature = "restate"))]
fn a_build_without_workers_names_the_feature() {
    let home = Home::new();
    for args in [
        &["worker", "--register", "http://127.0.0.1:9070"][..],
        &["send", "--on", "restate://127.0.0.1:8080", "s"],
        &["run", "--on", "restate://127.0.0.1:8080", "Hi"],
    ] {
        home.run(args)
            .refused(2, &["feature `restate`", "cargo install --path"]);
    }
}

#[test]
fn without_agents_md_and_tools_there_are_none() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("one")]));
    home.agent(&fake, &["--tools", "none", "Hi"]).done();
    let request = fake.asked().remove(0);
    assert!(request.get("tools").is_none());
    assert!(!messages(&request)[0].1.contains("AGENTS.md"));
}

#[test]
fn limits_end_a_run_with_what_there_is() {
    let home = Home::with_notes();
    let read = || FakeAnswer::call(&[("read", "{\"path\":\"notes.txt\"}")]);
    let fake = Fake::new([read(), read(), FakeAnswer::say("So far: forty-two.")]);
    let said = home.agent(&fake, &["--max-turns", "3", "Go on for ever."]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(said.out, "So far: forty-two.\n");
    assert_eq!(fake.asked().len(), 3);
    assert!(
        said.err.contains("max_turns")
            && said.err.contains("continue with: plimsoll run --session")
    );

    let fake = Fake::new([read(), FakeAnswer::say("One look was enough.")]);
    let args = ["--max-tool-calls", "1", "Go on for ever."];
    let said = home.agent(&fake, &args);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert_eq!(said.out, "One look was enough.\n");
    assert!(said.err.contains("tool_limit"), "{}", said.err);

    // After a rollback there is nothing to go on from.
    let fake = Fake::new([read(), read()]);
    let rolls_back = ["--max-turns", "2", "--at-limit", "rollback", "Go on."];
    let said = home.agent(&fake, &rolls_back);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(
        said.out.contains("removed from the session"),
        "{}",
        said.out
    );
    assert!(
        said.err.contains("try again with a higher limit") && !said.err.contains("continue with"),
        "{}",
        said.err
    );

    // A model that never stops calling is stopped, and there is still something to read.
    let fake = Fake::new([read()]);
    let said = home.agent(&fake, &args);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(
        said.out.contains("Max tool calls reached (1/1)"),
        "{}",
        said.out
    );
    assert_eq!(fake.asked().len(), 2);
}

#[test]
fn servers_from_the_environment_and_models_that_are_not_named() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("hello")]));
    let mut command = home.command(["run", "--quiet", "Hi"]);
    command.env("PLIMSOLL_BASE_URL", fake.url());
    assert_eq!(feed(command, b"").done().out, "hello\n");
    let mut command = home.command(["run", "--quiet", "Hi"]);
    command
        .env("PLIMSOLL_BASE_URL", fake.url())
        .env("PLIMSOLL_MODEL", "vllm/x");
    feed(command, b"").done();
    assert_eq!(fake.asked()[1]["model"], "x");
}

#[test]
fn a_rule_is_pinned_listed_and_taken_off() {
    let (home, fake) = (
        Home::with_notes(),
        Fake::new([FakeAnswer::say("one"), FakeAnswer::say("two")]),
    );
    let said = home
        .agent(&fake, &["--pin", "Never touch vendor/.", "Hi"])
        .done();
    let id = said.session();
    let sent = messages(&fake.asked()[0]);
    assert!(
        sent.iter()
            .any(|(_, text)| text.contains("Never touch vendor/."))
    );
    let pinned = || {
        let shown = home.run(["sessions", "show", &id]).done().out;
        let line = shown.lines().find(|line| line.contains(" pinned "));
        line.map(str::to_owned)
    };
    let pin = pinned().unwrap();
    assert!(pin.contains("Never touch vend"), "{pin}");
    let item = pin.split_whitespace().next().unwrap();
    home.run(["sessions", "unpin", &id, "m99"])
        .refused(2, &["m99 is not pinned"]);
    home.run(["sessions", "unpin", &id, "x"])
        .refused(2, &["x is not pinned"]);
    home.run(["sessions", "unpin", &id, item]).done();
    assert_eq!(pinned(), None);
    home.agent(&fake, &["--session", &id, "And now?"]).done();
}

#[test]
fn what_the_model_reads_is_meant_for_it() {
    let (home, fake) = (Home::with_notes(), Fake::new([FakeAnswer::say("one")]));
    home.agent(&fake, &["Hi"]).done();
    let request = fake.asked().remove(0);
    let system = &messages(&request)[0].1;
    assert!(!system.contains("one call"), "{system}");
    for tool in request["tools"].as_array().unwrap() {
        let schema = tool["function"]["parameters"].as_object().unwrap();
        for key in schema.keys() {
            let known = ["type", "properties", "required", "additionalProperties"];
            assert!(known.contains(&key.as_str()), "{key} in {tool}");
        }
        let text = tool.to_string();
        assert!(!text.contains("[`") && !text.contains("::"), "{text}");
    }
}
