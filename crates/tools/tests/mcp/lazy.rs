//! Lazy servers: three tools replace all of their tools.

use plimsoll_context::{Bpe, TokenCounter, Tokens};
use plimsoll_tools::mcp::McpState;
use serde_json::{Value, json};

use crate::stage::{Stage, call, connect, names, tool};

#[tokio::test]
async fn three_tools_stand_for_a_server() {
    let stage = Stage::new();
    let servers = connect(stage.server("").lazy()).await;
    let tools = servers.tools(&[]);
    assert_eq!(servers.status()[0].state, McpState::Lazy(15));
    assert_eq!(names(&tools), ["fake_call", "fake_describe", "fake_tools"]);
    let list = tool(&tools, "fake_tools");
    assert_eq!(
        list.spec().description,
        "Lists the tools of `fake`, one a line. About it: Everything a test needs. And more."
    );
    // Looking harms nobody; calling does what the server's tools do.
    assert!(!list.asks() && list.idempotent() && !tool(&tools, "fake_describe").asks());
    assert!(tool(&tools, "fake_call").asks() && !tool(&tools, "fake_call").idempotent());

    let all = call(&tools, "fake_tools", json!({})).await.unwrap();
    assert_eq!(all.lines().count(), 15);
    assert!(all.contains("echo: Says a text again.\n"), "{all}");
    let found = call(&tools, "fake_tools", json!({"search": "TEXT again"})).await;
    assert_eq!(found.as_deref(), Ok("echo: Says a text again.\n"));
    let none = call(&tools, "fake_tools", json!({"search": "zebra"})).await;
    assert_eq!(
        none.as_deref(),
        Ok("no tool matches; there are 15 without `search`")
    );

    let about = call(&tools, "fake_describe", json!({"name": "echo"}))
        .await
        .unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    assert_eq!(about["input_schema"]["required"], json!(["text"]));
    let got = call(
        &tools,
        "fake_call",
        json!({"name": "echo", "arguments": {"text": "hi"}}),
    )
    .await;
    assert_eq!(got.as_deref(), Ok("hi"));
    drop((tools, list, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn a_call_that_goes_wrong_is_told_the_schema() {
    let mut stage = Stage::new();
    let servers = connect(stage.server("").lazy()).await;
    let tools = servers.tools(&[]);
    // What is missing is seen before the server is asked.
    let error = call(&tools, "fake_call", json!({"name": "echo"}))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        "`echo` needs `text` in its arguments\nThe input schema of `echo`: \
         {\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\",\"description\":\"The text\"}},\"required\":[\"text\"]}"
    );
    let error = call(&tools, "fake_call", json!({"name": "fails"}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("no such row\nThe input schema of `fails`: {"),
        "{error}"
    );
    let error = call(&tools, "fake_call", json!({"name": "ecko"}))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        "`fake` has no tool `ecko`; did you mean `echo`? `fake_tools` lists them"
    );
    // What changes is seen at once: nothing of it was sent with a request.
    let changed = call(&tools, "fake_call", json!({"name": "changes"})).await;
    assert_eq!(changed.as_deref(), Ok("changed"));
    let found = call(&tools, "fake_tools", json!({"search": "new"})).await;
    assert_eq!(found.as_deref(), Ok("ecco: New here.\n"));
    assert!(!servers.refresh().await);
    stage.until("call changes").await;
    drop((tools, servers));
    stage.are_gone().await;
}

#[tokio::test]
async fn what_lazy_tools_save_of_every_request() {
    let stage = Stage::new();
    let counter = Bpe::o200k();
    let mut weights = Vec::new();
    for server in [
        stage.server("lists_dozens"),
        stage.server("lists_dozens").lazy(),
    ] {
        let tools = connect(server).await.tools(&[]);
        let weight: Tokens = tools
            .iter()
            .map(|tool| counter.tool(tool.spec()))
            .fold(Tokens::ZERO, |sum, tokens| Tokens(sum.0 + tokens.0));
        println!(
            "{} tools take {} tokens of every request",
            tools.len(),
            weight.0
        );
        weights.push(weight.0);
    }
    println!("saved: {} tokens", weights[0] - weights[1]);
    assert!(weights[1] * 3 < weights[0], "{weights:?}");
    assert!(weights[1] < 300, "{weights:?}");
    stage.are_gone().await;
}
