//! What happens, while it happens: text as it comes, and tool calls.
//!
//! `cargo run -p plimsoll-examples --bin streaming`

use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Delta, Event, SessionEvent};

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    let model = ScriptedProvider::new([Turn::say("Land, and a harbour.")]);
    let agent = Agent::builder(model)
        .observer(|seen: &SessionEvent| match &seen.event {
            Event::TurnStart { turn, tokens, .. } => println!("turn {turn}: {tokens} tokens"),
            Event::Delta(Delta::Text { text }) => print!("{text}"),
            Event::TurnEnd { .. } => println!(),
            _ => {}
        })
        .build()?;
    let output = agent.run("What do you see?").await?;
    assert!(output.reason.is_answer());
    Ok(())
}
