//! The program of README: a model, a tool and a limit. It needs OPENAI_API_KEY.

use plimsoll::providers::ModelClient;
use plimsoll::{Agent, ToolError, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    /// Where to look.
    at: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ModelClient::builder("openai/gpt-4o").build()?;
    let agent = Agent::builder(model)
        .system("You stand in the crow's nest.")
        .tool(tool("look", "Looks somewhere.", |input: Look| async move {
            Ok::<_, ToolError>(format!("{}: a green line", input.at))
        }))
        .max_turns(10)
        .build()?;
    // An error if the model cannot be called.
    let output = agent.run("What do you see?").await?;
    if !output.reason.is_answer() {
        eprintln!("the run ended early: {}", output.reason.word());
    }
    println!(
        "{} ({} tokens)",
        output.text,
        output.tokens_used.total_tokens()
    );
    Ok(())
}
