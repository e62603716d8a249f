//! Servers with odd behaviour: they write noise, log errors, stop responding, send requests, remove
//! a tool during a call, or list a tool twice.

use std::time::Duration;

use plimsoll_tools::mcp::{MCP_SILENCES, McpState};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage, begin, begin_all, call, connect, give_up, names, tool};

#[tokio::test]
async fn one_that_babbles_is_ended_and_one_that_chats_is_not() {
    let flood = "the MCP server `fake` gave no answer: it sent more than 5000 unrequested messages in 10 s and was stopped; \
                 whether the call had an effect is not known, look before you call it again";
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    for name in ["fake_babbles", "fake_answers_nobody"] {
        let got = call(&tools, name, json!({})).await;
        assert_eq!(got.unwrap_err(), flood, "{name}");
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"), "{name}");
    }
    for (name, said) in [("fake_chats", "chatted"), ("fake_complains", "complained")] {
        let got = call(&tools, name, json!({})).await;
        assert_eq!(got.as_deref(), Ok(said));
    }
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn many_answers_that_were_asked_for_are_no_flood() {
    let stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let echo = tool(&tools, "fake_echo");
    for _ in 0..60 {
        let calls = (0..100).map(|_| {
            let echo = echo.clone();
            tokio::spawn(async move {
                echo.call(json!({"text": "x"}), crate::stage::context())
                    .await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert!(call.await.unwrap().is_ok());
        }
    }
    drop((tools, echo));
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_has_fallen_silent_is_started_again() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    // Calls that are given up together are one silence.
    let calls = begin_all(&tools, &["fake_deaf", "fake_echo", "fake_hangs"]).await;
    stage.until("call deaf").await;
    give_up(calls, PATIENCE).await;
    for _ in 1..MCP_SILENCES {
        let calls = begin_all(&tools, &["fake_echo"; 2]).await;
        give_up(calls, PATIENCE).await;
    }
    let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
    assert_eq!(got.as_deref(), Ok("back"));
    let events = stage.all_until("call echo").await;
    assert!(events.contains(&"start".to_owned()), "{events:?}");
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn calls_that_are_given_up_do_not_end_a_server_that_is_well() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    for _ in 0..5 {
        begin(&tools, "fake_hangs", json!({})).await;
        stage.until("cancelled").await;
        // Whatever it says is a sign of life.
        let got = call(&tools, "fake_asks", json!({})).await;
        assert_eq!(got.as_deref(), Ok("asked"));
    }
    let events = stage.all_until("call asks").await;
    assert!(!events.contains(&"start".to_owned()), "{events:?}");
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn calls_that_end_too_late_together_do_not_end_a_server_that_is_well() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    stage.until("list").await;
    for (name, begun) in [
        ("fake_hangs", "call hangs"),
        ("fake_task_never_begun", "task task_never_begun"),
    ] {
        let calls = begin_all(&tools, &[name; 3]).await;
        for _ in 0..3 {
            stage.until(begun).await;
        }
        give_up(calls, PATIENCE).await;
        // It is asked for a sign of life before it is given up.
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"));
        let events = stage.all_until("call echo").await;
        assert!(!events.contains(&"start".to_owned()), "{events:?}");
        // It is sent beside the call.
        if !events.contains(&"ping".to_owned()) {
            stage.until("ping").await;
        }
    }
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn calls_that_are_interrupted_say_nothing_of_their_server() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    stage.until("list").await;
    for _ in 0..5 {
        // Not a word is heard of it between them.
        let calls = begin_all(&tools, &["fake_hangs"; 2]).await;
        give_up(calls, Duration::from_secs(1)).await;
    }
    let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
    assert_eq!(got.as_deref(), Ok("back"));
    let events = stage.all_until("call echo").await;
    for unwanted in ["start", "ping"] {
        assert!(!events.contains(&unwanted.to_owned()), "{events:?}");
    }
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_reads_nothing_any_more_is_ended_all_the_same() {
    let mut stage = Stage::new();
    let servers = connect(stage.server("more")).await;
    let tools = servers.tools(&[]);
    begin(&tools, "fake_deaf", json!({})).await;
    stage.until("call deaf").await;
    // More than a pipe holds: it can never be written.
    let text = "x".repeat(1_000_000);
    begin(&tools, "fake_echo", json!({ "text": text })).await;
    drop(tools);
    let closed = tokio::time::timeout(std::time::Duration::from_secs(30), servers.close());
    closed.await.expect("it was waited for in vain");
    stage.are_gone().await;
}

#[tokio::test]
async fn whatever_it_asks_is_answered_and_nothing_is_granted() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    let got = call(&tools, "fake_asks_all", json!({})).await.unwrap();
    let got: Value = serde_json::from_str(&got).unwrap();
    assert_eq!(
        got,
        json!([
            ["q0", {}],
            ["q1", { "roots": [] }],
            ["q2", -32601],
            ["q3", { "action": "decline" }],
        ])
    );
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn a_tool_that_goes_while_it_is_called_says_so() {
    let stage = Stage::new();
    let servers = connect(stage.server("more")).await;
    let tools = servers.tools(&[]);
    let got = call(&tools, "fake_leaves", json!({})).await;
    assert_eq!(got.unwrap_err(), "`fake` refuses: unknown tool leaves");
    let got = call(&tools, "fake_leaves", json!({})).await;
    let gone = "the MCP server `fake` has no tool `leaves` any more";
    assert!(got.as_ref().unwrap_err().starts_with(gone), "{got:?}");
    let got = call(&tools, "fake_echo", json!({"text": "here"})).await;
    assert_eq!(got.as_deref(), Ok("here"));
    assert!(servers.refresh().await);
    assert!(!names(&servers.tools(&[])).contains(&"fake_leaves".to_owned()));
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn an_error_that_names_no_request_is_for_the_one_that_waits() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    let got = call(&tools, "fake_nameless", json!({})).await;
    assert_eq!(got.unwrap_err(), "`fake` refuses: it broke");
    let got = call(&tools, "fake_leaks", json!({})).await;
    assert_eq!(got.unwrap_err(), "bad key [secret]");
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_begins_badly_is_left_out_with_what_it_did() {
    let stage = Stage::new();
    for (mode, told) in [
        (
            "babbles_at_start",
            "it sent more than 5000 unrequested messages in 10 s and was stopped",
        ),
        ("refuses_to_start", "it refuses: no licence"),
        ("starts_oddly", "expect initialized result"),
        ("lists_never", "no list of tools within 2 s"),
    ] {
        let patience = std::time::Duration::from_secs(if mode == "lists_never" { 2 } else { 60 });
        let servers = connect(stage.server(mode).timeout(patience)).await;
        let McpState::Absent(error) = servers.status()[0].state.clone() else {
            panic!("{mode}: it is there")
        };
        assert!(error.to_string().contains(told), "{mode}: {error}");
        assert!(servers.tools(&[]).is_empty());
    }
    stage.are_gone().await;
}

#[tokio::test]
async fn one_crooked_tool_does_not_take_the_others_away() {
    let stage = Stage::new();
    let servers = connect(stage.server("lists_crookedly")).await;
    let tools = servers.tools(&[]);
    assert_eq!(names(&tools), ["fake_arguments", "fake_echo"]);
    assert_eq!(
        servers.status()[0].notes,
        ["one of its tools cannot be read and is left out"]
    );
    let got = call(&tools, "fake_echo", json!({"text": "here"})).await;
    assert_eq!(got.as_deref(), Ok("here"));
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn a_tool_that_is_listed_twice_is_offered_once() {
    let stage = Stage::new();
    let servers = connect(stage.server("more")).await;
    let tools = servers.tools(&[]);
    assert_eq!(tool(&tools, "fake_twice").spec().description, "The first.");
    let twice = names(&tools);
    assert_eq!(
        twice.iter().filter(|name| name.contains("twice")).count(),
        1
    );
    assert_eq!(
        servers.status()[0].notes,
        ["it lists `twice` more than once; the first is taken"]
    );
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn a_schema_is_sent_as_every_provider_takes_it_and_its_tool_is_called_as_it_is() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    let spec = tool(&tools, "fake_arguments").spec().clone();
    assert_eq!(
        spec.schema,
        json!({
            "type": "object",
            "properties": {
                "StartTime_": { "type": "string", "format": "date-time" },
                "tags": { "type": "array", "items": {} },
            },
            "required": ["StartTime_"],
        })
    );
    assert_eq!(
        spec.description,
        "Shows them.\n(Its arguments take one of these forms: `tags`; or `StartTime_`.)"
    );
    let got = call(
        &tools,
        "fake_arguments",
        json!({ "StartTime_": "now", "tags": [1] }),
    )
    .await;
    assert_eq!(got.as_deref(), Ok("{\"StartTime<\":\"now\",\"tags\":[1]}"));
    drop(tools);
    let tools = connect(stage.server("more").lazy()).await.tools(&[]);
    let arguments = json!({ "name": "arguments", "arguments": { "StartTime_": "now" } });
    let got = call(&tools, "fake_call", arguments).await;
    assert_eq!(got.as_deref(), Ok("{\"StartTime<\":\"now\"}"));
    drop(tools);
    stage.are_gone().await;
}
