//! The ids of calls in a rendered request.

use plimsoll_context::{Message, Part};

/// Gives every call an id of its own, as the wire does.
pub(crate) fn with_unique_ids(messages: &mut [Message]) {
    let mut batch = 0;
    for message in messages {
        match message {
            Message::Assistant { parts } => {
                batch += 1;
                for part in parts {
                    if let Part::ToolCall(call) = part {
                        call.id.0 = format!("{}_{batch}", call.id.0);
                    }
                }
            }
            Message::ToolResult(result) => result.call.0 = format!("{}_{batch}", result.call.0),
            _ => {}
        }
    }
}
