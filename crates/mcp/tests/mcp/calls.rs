//! Calls that end normally: results of every kind, refusals, requests from the server, and calls
//! whose result is no longer needed.

use plimsoll_mcp::McpState;
use serde_json::json;

use crate::stage::{Stage, call, connect, context, tool};

#[tokio::test]
async fn results_of_every_kind_come_back() {
    let stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    for (name, told) in [
        (
            "fake_picture",
            Ok("here|<image>|{\"type\":\"hologram\",\"depth\":3}|{\"pictures\":1}"),
        ),
        ("fake_fails", Err("no such row")),
        // What the protocol refuses, without what is secret in it.
        (
            "fake_unknown_tool",
            Err("`fake` refuses: unknown tool unknown.tool \"[secret]\""),
        ),
        ("fake_asks", Ok("asked")),
    ] {
        let got = call(&tools, name, json!({})).await;
        assert_eq!(got.as_deref().map_err(String::as_str), told, "{name}");
    }
    let got = call(&tools, "fake_echo", json!({"text": "日本 🦀"})).await;
    assert_eq!(got.as_deref(), Ok("日本 🦀"));
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let echo = |at: usize| {
        let tool = tool(&tools, "fake_echo");
        tokio::spawn(async move { tool.call(json!({"text": at.to_string()}), context()).await })
    };
    let calls: Vec<_> = (0..50).map(echo).collect();
    for (at, call) in calls.into_iter().enumerate() {
        let output = call.await.unwrap().unwrap();
        assert_eq!(output.parts[0].as_text(), Some(at.to_string().as_str()));
    }
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let hangs = tool(&tools, "fake_hangs");

    // Cancelled by its run.
    let cx = context();
    let cancel = cx.cancel.clone();
    let waiting = {
        let hangs = hangs.clone();
        tokio::spawn(async move { hangs.call(json!({}), cx).await })
    };
    stage.until("call hangs").await;
    cancel.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().0, "cancelled");
    stage
        .until("cancelled \"the result is no longer wanted\"")
        .await;

    // Dropped, as it is where it takes too long.
    let waiting = tokio::spawn(async move { hangs.call(json!({}), context()).await });
    stage.until("call hangs").await;
    waiting.abort();
    stage.until("cancelled").await;

    // The server is still there, and it is the same one.
    let got = call(&tools, "fake_echo", json!({"text": "still here"})).await;
    assert_eq!(got.as_deref(), Ok("still here"));
    drop(tools);
    assert!(
        !stage
            .all_until("call echo")
            .await
            .contains(&"start".to_owned())
    );
    stage.are_gone().await;
}

#[tokio::test]
async fn within_a_run_tools_stay_and_between_runs_they_are_read_anew() {
    let mut stage = Stage::new();
    let servers = connect(stage.server("")).await;
    let tools = servers.tools(&[]);
    assert!(!servers.refresh().await);
    assert_eq!(
        call(&tools, "fake_changes", json!({})).await.as_deref(),
        Ok("changed")
    );
    // One that is gone says so, and names what is near; the others work.
    let gone = call(&tools, "fake_echo", json!({"text": "x"}))
        .await
        .unwrap_err();
    assert_eq!(
        gone,
        "the MCP server `fake` has no tool `echo` any more; the nearest is `ecco`"
    );
    assert_eq!(
        call(&tools, "fake_asks", json!({})).await.as_deref(),
        Ok("asked")
    );
    assert!(servers.refresh().await);
    let anew = servers.tools(&[]);
    assert_eq!(servers.status()[0].state, McpState::Ready(13));
    assert!(anew.iter().any(|tool| tool.spec().name == "fake_ecco"));
    assert!(!anew.iter().any(|tool| tool.spec().name == "fake_echo"));
    assert!(!servers.refresh().await);
    drop((tools, anew));
    servers.close().await;
    // Asked politely, it reads to the end of its input.
    let events = stage.all_until("end").await;
    let lists = events.iter().filter(|event| *event == "list").count();
    assert_eq!(lists, 2, "{events:?}");
    stage.are_gone().await;
}
