//! A stage of your own that clears old tool results, as the context edit of Anthropic's API does:
//! above a number of tokens, all results but the newest three become a placeholder.
//!
//! `cargo run -p plimsoll-examples --bin clear_tool_uses`

use std::sync::Arc;

use plimsoll::context::Budget;
use plimsoll::policy::{Draft, Policy, Stage, Trigger};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, Message, Part, Tokens, ToolError, ToolResult, Window, tool};

#[derive(Debug)]
struct ClearToolUses {
    above: Tokens,
    keep: usize,
}

impl Stage for ClearToolUses {
    fn name(&self) -> &str {
        "clear_tool_uses"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if draft.tokens() + budget.overhead <= self.above {
            return;
        }
        let mut results = Vec::new();
        for at in 0..draft.items().len() {
            if let Some((Message::ToolResult(result), _)) = draft.current(at) {
                let parts = vec![Part::text("[tool result cleared]")];
                let cleared = ToolResult {
                    parts,
                    ..result.clone()
                };
                results.push((at, Message::ToolResult(cleared)));
            }
        }
        let old = results.len().saturating_sub(self.keep);
        for (at, cleared) in results.into_iter().take(old) {
            draft.shrink(at, cleared); // Refused if it is pinned or not smaller.
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
    let clear = ClearToolUses {
        above: Tokens(3_000),
        keep: 3,
    };
    let agent = Agent::builder(model.clone())
        .tool(read)
        .window(Window::Known(Tokens(8_000)))
        .policy(Policy::new(vec![Arc::new(clear)]))
        .build()?;
    println!("{}", agent.run("What is in the book?").await?.text);
    let last = model.requests().pop().unwrap_or_default().to_string();
    println!(
        "{} results were cleared",
        last.matches("[tool result cleared]").count()
    );
    Ok(())
}
