//! Limits: a run that would never end stops at its fifth turn, and says what is not done.
//!
//! `cargo run -p plimsoll-examples --bin limits`

use std::time::Duration;

use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Tokens, ToolError, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    let model = ScriptedProvider::new([]).then_always(Turn::call("row", serde_json::json!({})));
    let row = tool("row", "Rows a little.", |_: Nothing| async {
        Ok::<_, ToolError>("a little farther".to_owned())
    });
    let agent = Agent::builder(model)
        .tool(row)
        .max_turns(5)
        .max_total_tokens(Tokens(100_000))
        .max_duration(Duration::from_secs(60))
        .build()?;
    let output = agent.run("Row to the other side.").await?;
    println!("{} turns, {} tool calls", output.turns, output.tool_calls);
    println!("ended by: {}", output.reason.word());
    println!("is an answer: {}", output.reason.is_answer());
    Ok(())
}
