//! An agent answers a question: it calls a tool as often as it likes, within limits.
//!
//! `cargo run -p plimsoll-examples --bin loop`

use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, ToolError, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    /// Where to look.
    at: String,
}

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    // Any provider goes here, such as `ModelClient::builder("openai/gpt-4o").build()?`. This one
    // follows a script, so that the example runs without a key.
    let model = ScriptedProvider::new([
        Turn::call("look", serde_json::json!({ "at": "the horizon" })),
        Turn::say("Land!"),
    ]);
    let look = tool("look", "Looks somewhere.", |input: Look| async move {
        Ok::<_, ToolError>(format!("{}: a green line", input.at))
    });
    let agent = Agent::builder(model)
        .system("You stand in the crow's nest.")
        .tool(look)
        .max_turns(10)
        .build()?;
    let output = agent.run("What do you see?").await?;
    println!("{} ({} turns)", output.text, output.turns);
    Ok(())
}
