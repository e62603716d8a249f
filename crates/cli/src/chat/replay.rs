//! Shows the last messages of a session again when a chat continues it.

use plimsoll::machine::State;
use plimsoll::{Message, Part};

use crate::terminal::Terminal;
use crate::terminal::text::{clean, counted};

/// Maximum number of messages that are shown.
const SHOWN: usize = 20;

/// Shows the last messages of a session: questions and answers, and the names of called tools.
pub(super) fn replay(terminal: &Terminal, state: &State) {
    let items = state.transcript().items();
    let skipped = items.len().saturating_sub(SHOWN);
    if skipped > 0 {
        let earlier = counted(skipped, "earlier message");
        terminal.note(&terminal.dim(&format!("… {earlier}: plimsoll sessions show")));
    }
    for item in items.iter().skip(skipped) {
        match &*item.message {
            Message::User { .. } => {
                terminal.note(&format!("> {}", clean(&item.message.text())));
            }
            Message::Assistant { parts } => {
                let text = item.message.text();
                if !text.trim().is_empty() {
                    terminal.stream(&text);
                    terminal.end_text();
                }
                let called = parts.iter().filter_map(|part| match part {
                    Part::ToolCall(call) => Some(clean(&call.name)),
                    _ => None,
                });
                let called: Vec<String> = called.collect();
                if !called.is_empty() {
                    terminal.note(&terminal.dim(&format!("· {}", called.join(", "))));
                }
            }
            Message::Summary { .. } => {
                terminal.note(&terminal.dim("· the messages before are summarized"));
            }
            _ => {}
        }
    }
}
