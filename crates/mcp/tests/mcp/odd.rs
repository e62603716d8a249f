//! Servers with odd behaviour: they write noise, log errors, stop responding, flood, send requests, remove
//! a tool during a call, or list a tool twice.

use std::time::{Duration, Instant};

use plimsoll_mcp::{MCP_PING, McpState};
use serde_json::{Value, json};

use crate::fake::LATE;
use crate::stage::{Stage, begin, begin_all, call, connect, context, names, tool};

#[tokio::test]
async fn lines_that_are_no_messages_do_not_matter() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    for (name, text) in [("fake_chats", "chatted"), ("fake_complains", "complained")] {
        let got = call(&tools, name, json!({})).await;
        assert_eq!(got.as_deref(), Ok(text));
    }
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn a_server_that_answers_no_ping_after_a_call_was_given_up_is_started_again() {
    // One reads nothing any more, the other sends notifications without end.
    for name in ["fake_deaf", "fake_floods"] {
        let mut stage = Stage::new();
        let tools = connect(stage.server("more")).await.tools(&[]);
        stage.until("list").await;
        let hung = tool(&tools, name);
        let hung = tokio::spawn(async move { hung.call(json!({}), context()).await });
        stage.until("call").await;
        hung.abort();
        assert!(hung.await.unwrap_err().is_cancelled());
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"), "{name}");
        let events = stage.all_until("call echo").await;
        assert!(events.contains(&"start".to_owned()), "{name}: {events:?}");
        drop(tools);
        stage.are_gone().await;
    }
}

#[tokio::test]
async fn a_ping_takes_no_longer_than_the_timeout_of_the_server() {
    let timeout = Duration::from_secs(2);
    assert!(timeout < MCP_PING / 2);
    let mut stage = Stage::new();
    let tools = connect(stage.server("more").timeout(timeout))
        .await
        .tools(&[]);
    stage.until("list").await;
    begin(&tools, "fake_deaf", json!({})).await;
    stage.until("call deaf").await;
    let asked = Instant::now();
    let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
    assert_eq!(got.as_deref(), Ok("back"));
    assert!(asked.elapsed() < MCP_PING, "{:?}", asked.elapsed());
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn calls_that_are_given_up_do_not_end_a_server_that_is_well() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    stage.until("list").await;
    for _ in 0..3 {
        for calls in [1, 3] {
            begin_all(&tools, &vec!["fake_hangs"; calls])
                .await
                .shutdown()
                .await;
        }
        // It is asked for a sign of life before the next call.
        let got = call(&tools, "fake_echo", json!({"text": "back"})).await;
        assert_eq!(got.as_deref(), Ok("back"));
        let events = stage.all_until("call echo").await;
        assert!(events.contains(&"ping".to_owned()), "{events:?}");
        assert!(!events.contains(&"start".to_owned()), "{events:?}");
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
async fn a_secret_that_a_tool_repeats_in_an_error_is_removed() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    let got = call(&tools, "fake_leaks", json!({})).await;
    assert_eq!(got.unwrap_err(), "bad key [secret]");
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn one_that_begins_badly_is_left_out_with_what_it_did() {
    let stage = Stage::new();
    for (mode, told) in [
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
async fn its_start_and_its_list_share_the_time() {
    let stage = Stage::new();
    let patience = LATE + LATE / 2;
    let server = stage.server("starts_late lists_never").timeout(patience);
    let began = Instant::now();
    let servers = connect(server).await;
    let took = began.elapsed();
    let McpState::Absent(error) = servers.status()[0].state.clone() else {
        panic!("it is there")
    };
    let told =
        "no list of tools within 4.5 s; set `timeout`, or a longer `max_duration`, to wait longer";
    assert!(error.to_string().ends_with(told), "{error}");
    assert!(took < LATE + patience, "{took:?}");
    drop(servers);
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
        ["tools left out because they cannot be read: 1"]
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
        [
            "it lists `twice` more than once; the first is taken",
            "the schema of `arguments` names an argument `StartTime<`, which providers reject, and is sent without it",
        ]
    );
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn a_schema_is_sent_without_what_a_provider_would_reject() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    let spec = tool(&tools, "fake_arguments").spec().clone();
    assert_eq!(
        spec.schema,
        json!({
            "type": "object",
            "properties": {
                "tags": { "type": "array", "items": {} },
            },
            "required": [],
        })
    );
    assert_eq!(spec.description, "Shows them.");
    let got = call(&tools, "fake_arguments", json!({ "tags": [1] })).await;
    assert_eq!(got.as_deref(), Ok("{\"tags\":[1]}"));
    drop(tools);
    stage.are_gone().await;
}
