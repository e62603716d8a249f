//! Prepares log entries for display on another machine: arguments and results of tools are
//! shortened, and internal entries are left out. The log keeps everything.

use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, Message, Part, head_tail};

/// Maximum size of each text and each argument of a tool.
const TEXT: Bytes = Bytes(4 * 1024);
/// Maximum size of each text of the user or the model.
const SAID: Bytes = Bytes(1024 * 1024);

/// Returns the entry for display, or `None` if it is not shown.
pub(crate) fn shown(mut entry: Entry) -> Option<Entry> {
    match &mut entry {
        Entry::RunStarted { system, config, .. } => {
            *system = "".into();
            *config = None;
        }
        Entry::Message { message, .. }
        | Entry::Reply { message, .. }
        | Entry::PartialReply { message, .. } => shorten(Arc::make_mut(message), SAID),
        Entry::ToolResult { message, .. } => shorten(Arc::make_mut(message), TEXT),
        Entry::Accepted { .. }
        | Entry::Queued { .. }
        | Entry::Undelivered { .. }
        | Entry::ToolStarted { .. }
        | Entry::Summarized { .. }
        | Entry::RunEnded { .. } => {}
        _ => return None,
    }
    Some(entry)
}

fn shorten(message: &mut Message, most: Bytes) {
    match message {
        Message::ToolResult(result) => cut(&mut result.parts, most),
        Message::Assistant { parts } | Message::User { parts } => cut(parts, most),
        _ => {}
    }
}

/// Keeps only texts and tool calls, shortened.
fn cut(parts: &mut Vec<Part>, most: Bytes) {
    parts.retain(|part| matches!(part, Part::Text { .. } | Part::ToolCall(_)));
    for part in parts {
        let (text, most) = match part {
            Part::Text { text } => (text, most),
            Part::ToolCall(call) => {
                call.opaque = None;
                (&mut call.arguments, TEXT)
            }
            _ => continue,
        };
        if let Some(short) = head_tail(text, most) {
            *text = short;
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_context::{CallId, ToolResult};

    use super::*;

    #[test]
    fn what_tools_say_is_shortened_and_plans_are_not_shown() {
        let result = Message::ToolResult(ToolResult {
            call: CallId("c".to_owned()),
            parts: vec![Part::text("x".repeat(1_000_000))],
            is_error: false,
        });
        let entry = Entry::ToolResult {
            message: Arc::new(result),
            spent: Default::default(),
        };
        let json = serde_json::to_string(&shown(entry)).unwrap_or_default();
        assert!((1_000..6_000).contains(&json.len()), "{}", json.len());
        assert_eq!(shown(Entry::Opened { format: 1 }), None);
    }
}
