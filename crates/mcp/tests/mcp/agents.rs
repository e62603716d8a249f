//! Agents with tools of MCP servers: results are capped, recalled, timed and counted like other
//! results, and progress is reported.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{Event, SessionEvent};
use plimsoll_context::Tokens;
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentBuilder, AgentOutput, AllowAll, Tool, Window};
use plimsoll_mcp::McpServer;
use serde_json::{Value, json};

use crate::stage::{Stage, connect};

fn agent(model: &ScriptedProvider, tools: Vec<Arc<dyn Tool>>) -> AgentBuilder {
    Agent::builder(model.clone())
        .tools(tools)
        .gate(AllowAll)
        .window(Window::Known(Tokens(20_000)))
}

/// What the model was given of the last result.
fn result(model: &ScriptedProvider) -> String {
    let requests = model.requests();
    let messages = requests.last().unwrap()["messages"]
        .as_array()
        .unwrap()
        .clone();
    let is_result = |message: &&Value| message["role"] == "tool";
    let last = messages.iter().rfind(is_result).unwrap();
    last["content"].as_str().unwrap_or_default().to_owned()
}

async fn run(agent: AgentBuilder) -> AgentOutput {
    agent.build().unwrap().run("Go.").await.unwrap()
}

#[tokio::test]
async fn progress_is_told_in_order() {
    let stage = Stage::new();
    let tools = connect(stage.server("")).await.tools(&[]);
    let model = ScriptedProvider::new([Turn::call("fake_steps", json!({})), Turn::say("ok")]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let agent = agent(&model, tools).observer(move |SessionEvent { event, .. }: &SessionEvent| {
        if let Event::ToolUpdate { name, text, .. } = event {
            seen.lock().unwrap().push(format!("{name} {text}"));
        }
    });
    assert_eq!(run(agent).await.text, "ok");
    let steps = [1, 2, 3].map(|step| format!("fake_steps {step}/3: step {step}"));
    assert_eq!(*told.lock().unwrap(), steps);
    assert_eq!(result(&model), "done");
    stage.are_gone().await;
}

#[tokio::test]
async fn results_are_capped_and_schemas_count() {
    let stage = Stage::new();
    let text = "every word of it is kept ".repeat(20_000);
    let tools = connect(stage.server("")).await.tools(&[]);
    let call = Turn::call("fake_echo", json!({ "text": text }));
    let model = ScriptedProvider::new([call, Turn::say("ok")]);
    let small = ScriptedProvider::new([]);
    let without = agent(&small, Vec::new()).build().unwrap().overhead();
    let with = agent(&small, tools.clone()).build().unwrap().overhead();
    assert!(with.0 > without.0 + 300, "{with} {without}");
    // The call itself is larger than the window; it is a small view that the result leaves.
    let agent = agent(&model, tools).window(Window::Known(Tokens(400_000)));
    run(agent).await;
    let result = result(&model);
    assert!(
        result.contains("[pruned: ") && result.contains("recall m"),
        "{}",
        result.len()
    );
    assert!(result.len() < 60_000, "{}", result.len());
    stage.are_gone().await;
}

#[tokio::test]
async fn a_call_that_hangs_is_stopped_after_its_servers_time() {
    tokio::join!(
        hang(Stage::new(), McpServer::trusted, 2),
        hang(Stage::new(), |server| server, 1)
    );
}

/// A call that hangs, of a server that is made so; how often it is made.
async fn hang(mut stage: Stage, made: fn(McpServer) -> McpServer, calls: usize) {
    let server = made(stage.server("")).timeout(Duration::from_secs(3));
    let tools = connect(server).await.tools(&[]);
    let script = [
        Turn::call("fake_hangs", json!({})),
        Turn::call("fake_echo", json!({ "text": "back" })),
        Turn::say("ok"),
    ];
    let model = ScriptedProvider::new(script);
    let agent = agent(&model, tools).configure(|it| it.driver.tool_retries = 1);
    assert_eq!(run(agent).await.text, "ok");
    assert_eq!(result(&model), "back");
    let events = stage.all_until("call echo").await;
    let count = |event: &str| {
        let such = events.iter().filter(|other| other.starts_with(event));
        such.count()
    };
    assert_eq!(count("call hangs"), calls, "{events:?}");
    assert_eq!(count("start"), 1, "{events:?}");
    stage.are_gone().await;
}
