//! Shows the last messages of a session again when a chat continues it.

use plimsoll::Message;
use plimsoll::machine::State;

use crate::terminal::Terminal;
use crate::terminal::style::{DIM, paint};
use crate::terminal::text::{clean, counted};

/// Maximum number of messages that are shown.
const SHOWN: usize = 20;

/// Shows the last messages of a session: questions and answers.
pub(super) fn replay(terminal: &Terminal, state: &State) {
    let items = state.transcript().items();
    let skipped = items.len().saturating_sub(SHOWN);
    if skipped > 0 {
        let earlier = counted(skipped, "earlier message");
        terminal.note(&paint(DIM, &format!("… {earlier}: plimsoll sessions show")));
    }
    for item in items.iter().skip(skipped) {
        match &*item.message {
            Message::User { .. } => {
                terminal.note(&format!("> {}", clean(&item.message.text())));
            }
            Message::Assistant { .. } => {
                let text = item.message.text();
                if !text.trim().is_empty() {
                    terminal.stream(&text);
                    terminal.end_text();
                }
            }
            Message::Summary { .. } => {
                terminal.note(&paint(DIM, "· the messages before are summarized"));
            }
            _ => {}
        }
    }
}
