//! Tools from functions, and a gate that is asked before a tool changes something.
//!
//! `cargo run -p plimsoll-examples --bin tools`

use plimsoll::permissions::DenyAll;
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Event, SessionEvent, ToolError, tool};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Course {
    /// In degrees, from 0 to 359.
    degrees: u16,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    let model = ScriptedProvider::new([
        Turn::calls([
            ("compass", json!({})),
            ("steer", json!({ "degrees": 400 })),
            ("drop_anchor", json!({})),
        ]),
        Turn::say("The course stays."),
    ]);
    let compass = tool("compass", "Tells the course.", |_: Nothing| async {
        Ok::<_, ToolError>("270 degrees".to_owned())
    });
    // An error is a result that the model reads, not the end of the run.
    let steer = tool("steer", "Sets the course.", |course: Course| async move {
        match course.degrees {
            0..360 => Ok(format!("{} degrees", course.degrees)),
            _ => Err(ToolError::new("there are 360 degrees")),
        }
    });
    let anchor = tool("drop_anchor", "Stops the ship.", |_: Nothing| async {
        Ok::<_, ToolError>("stopped".to_owned())
    });
    let agent = Agent::builder(model)
        .tool(compass)
        .tool(steer)
        .tool(anchor.asks())
        .gate(DenyAll)
        .observer(|seen: &SessionEvent| {
            if let Event::Step(step) = &seen.event {
                println!("{}: {}", step.name, step.result);
            }
        })
        .build()?;
    println!("{}", agent.run("Go on.").await?.text);
    Ok(())
}
