//! What happens in a run, while it happens: text as it comes, and tool calls.
//!
//! `cargo run -p plimsoll-examples --bin streaming`

use plimsoll::session::new_session_id;
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Delta, Event};

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    let model = ScriptedProvider::new([Turn::say("Land, and a harbour.")]);
    let agent = Agent::builder(model).build()?;
    let mut session = agent.session(new_session_id()).await?;
    // Dropping `run` would interrupt it. `run.remote()` steers it from another task.
    let mut run = session.start("What do you see?");
    while let Some(event) = run.next().await {
        match event {
            Event::TurnStart { turn, tokens, .. } => println!("turn {turn}: {tokens} tokens"),
            Event::Delta(Delta::Text { text }) => print!("{text}"),
            Event::TurnEnd { .. } => println!(),
            _ => {}
        }
    }
    let output = run.output().await?;
    assert!(output.reason.is_answer());
    Ok(())
}
