//! The program of README: a model, a tool and a limit. It needs OPENAI_API_KEY.

use plimsoll::providers::ModelClient;
use plimsoll::{Agent, ToolError, tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    /// The name of a city.
    city: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = ModelClient::builder("openai/gpt-4o").build()?;
    let weather = tool(
        "weather",
        "Reports the weather.",
        |place: Place| async move { Ok::<_, ToolError>(format!("{}: 12 °C, light rain", place.city)) },
    );
    let agent = Agent::builder(model)
        .system("You answer in one sentence.")
        .tool(weather)
        .max_turns(10)
        .build()?;
    // An error if the model cannot be called.
    let output = agent.run("Do I need an umbrella in Hamburg?").await?;
    if !output.reason.is_answer() {
        eprintln!("the run ended early: {}", output.reason);
    }
    println!(
        "{} ({} tokens)",
        output.text,
        output.tokens_used.total_tokens()
    );
    Ok(())
}
