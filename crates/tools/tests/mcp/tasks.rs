//! Tools that run as tasks because their server requires it: they are started, polled, fetched, and
//! cancelled if the result is no longer needed.

use serde_json::json;

use crate::stage::{Stage, begin, call, connect, context, tool};

#[tokio::test]
async fn one_that_demands_a_task_is_run_as_one() {
    let mut stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    for name in ["task_told", "task_long"] {
        let got = call(&tools, &format!("fake_{name}"), json!({})).await;
        assert_eq!(got, Ok(format!("{name} is done")));
        let events = stage.all_until("tasks/result").await;
        let told: Vec<&str> = events.iter().map(String::as_str).collect();
        let told = told.iter().skip_while(|event| !event.starts_with("call"));
        let told: Vec<String> = told.map(|event| event.replace(name, "x")).collect();
        let get = "tasks/get x";
        assert_eq!(
            told,
            ["call x", "task x", get, get, get, get, "tasks/result x"]
        );
    }
    // The next time it is known.
    let got = call(&tools, "fake_task_told", json!({})).await;
    assert_eq!(got.as_deref(), Ok("task_told is done"));
    let events = stage.all_until("tasks/result").await;
    assert_eq!(events[0], "task task_told");
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn whatever_becomes_of_a_task_is_told() {
    let stage = Stage::new();
    let tools = connect(stage.server("more")).await.tools(&[]);
    for (name, told) in [
        ("task_failing", Err("no space")),
        (
            "task_broken",
            Err("`fake` refuses: its task is failed: it blew up"),
        ),
        (
            "task_stopped",
            Err("`fake` refuses: its task is cancelled: by its owner"),
        ),
        ("task_gone", Err("`fake` refuses: no such task")),
        // It asks something, is told no, and goes on.
        ("task_asking", Ok("task_asking is done")),
        ("task_odd", Err("`fake`: its task cannot be read")),
        // A server that keeps no tasks takes the wish for a call.
        ("task_ignored", Ok("at once")),
        (
            "task_wanted_in_vain",
            Err(
                "`fake` refuses: task_wanted_in_vain is no method (called as a task, it answers: no such thing)",
            ),
        ),
        ("task_of_the_extension", Ok("extended")),
    ] {
        let got = call(&tools, &format!("fake_{name}"), json!({})).await;
        assert_eq!(got.as_deref().map_err(String::as_str), told, "{name}");
    }
    let died = call(&tools, "fake_task_dies", json!({})).await.unwrap_err();
    assert!(
        died.starts_with("the MCP server `fake` gave no answer: it ended (exit 3)"),
        "{died}"
    );
    let got = call(&tools, "fake_task_long", json!({})).await;
    assert_eq!(got.as_deref(), Ok("task_long is done"));
    drop(tools);
    stage.are_gone().await;
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_is_cancelled_at_the_server() {
    let mut stage = Stage::new();
    let servers = connect(stage.server("more")).await;
    let tools = servers.tools(&[]);
    let endless = tool(&tools, "fake_task_endless");

    // Cancelled by its run.
    let cx = context();
    let cancel = cx.cancel.clone();
    let waiting = {
        let endless = endless.clone();
        tokio::spawn(async move { endless.call(json!({}), cx).await })
    };
    stage.until("tasks/get task_endless").await;
    cancel.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().0, "cancelled");
    stage.until("tasks/cancel task_endless").await;

    // Dropped, as it is where it takes too long.
    let waiting = tokio::spawn(async move { endless.call(json!({}), context()).await });
    stage.until("tasks/get task_endless").await;
    waiting.abort();
    stage.until("tasks/cancel task_endless").await;

    // Given up before the server has said which task it is.
    let late = tool(&tools, "fake_task_late");
    let waiting = tokio::spawn(async move { late.call(json!({}), context()).await });
    stage.until("task task_late").await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    let got = call(&tools, "fake_echo", json!({})).await;
    assert_eq!(got.as_deref(), Ok("late"));
    stage.until("tasks/cancel task_late").await;

    // And where the server never says it.
    let never = tool(&tools, "fake_task_never_begun");
    let waiting = tokio::spawn(async move { never.call(json!({}), context()).await });
    stage.until("task task_never_begun").await;
    waiting.abort();
    stage.until("cancelled").await;
    drop(tools);
    servers.close().await;
    stage.are_gone().await;
}

#[tokio::test]
async fn a_run_that_ends_cancels_its_tasks_before_its_servers_are_ended() {
    let mut stage = Stage::new();
    let servers = connect(stage.server("more")).await;
    let tools = servers.tools(&[]);
    let endless = tool(&tools, "fake_task_endless");
    let waiting = tokio::spawn(async move { endless.call(json!({}), context()).await });
    stage.until("tasks/get task_endless").await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(tools);
    servers.close().await;
    let events = stage.all_until("end").await;
    assert!(
        events.contains(&"tasks/cancel task_endless".to_owned()),
        "{events:?}"
    );
    stage.are_gone().await;
}

#[tokio::test]
async fn lazy_servers_run_tasks_too() {
    let stage = Stage::new();
    let tools = connect(stage.server("more").lazy()).await.tools(&[]);
    let got = call(&tools, "fake_call", json!({ "name": "task_long" })).await;
    assert_eq!(got.as_deref(), Ok("task_long is done"));
    begin(&tools, "fake_call", json!({ "name": "task_endless" })).await;
    drop(tools);
    stage.are_gone().await;
}
