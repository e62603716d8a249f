//! A policy of your own: what leaves the view first. The log keeps everything.
//!
//! `cargo run -p plimsoll-examples --bin context_policy`

use std::sync::Arc;

use plimsoll::context::{Budget, ExchangeKind};
use plimsoll::policy::{Draft, Policy, Stage, Trigger};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Event, SessionEvent, Tokens, ToolError, Window, tool};

/// Drops whole exchanges, a call with its results, the oldest first. The newest stay.
#[derive(Debug)]
struct OldestFirst;

impl Stage for OldestFirst {
    fn name(&self) -> &str {
        "oldest_first"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if !draft.is_due(budget) {
            return;
        }
        for index in 0..draft.exchanges().len() {
            let is_complete = draft.exchanges()[index].kind == ExchangeKind::Complete;
            if is_complete && draft.tokens() > budget.target {
                draft.drop_exchange(index); // Refused if it is pinned or too new.
            }
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Page {
    number: u32,
}

#[tokio::main]
async fn main() -> Result<(), plimsoll::Error> {
    let pages = (1..=12).map(|number| Turn::call("read", serde_json::json!({ "number": number })));
    let model = ScriptedProvider::new(pages.chain([Turn::say("It is a log book.")]));
    let read = tool("read", "Reads a page.", |page: Page| async move {
        let line = format!("Page {}: wind from the east, sea calm. ", page.number);
        Ok::<_, ToolError>(line.repeat(60))
    });
    let agent = Agent::builder(model)
        .tool(read)
        .window(Window::Known(Tokens(8_000)))
        // Behind it the stages of a preset, for what yours leaves over.
        .policy(Policy::evict(Default::default()).with_stage(Arc::new(OldestFirst)))
        .observer(|seen: &SessionEvent| {
            if let Event::PlanApplied(applied) = &seen.event {
                println!(
                    "{}: {} to {}",
                    applied.plan.stages.join(", "),
                    applied.tokens_before,
                    applied.tokens_after
                );
            }
        })
        .build()?;
    println!("{}", agent.run("What is in the book?").await?.text);
    Ok(())
}
