//! Sends the messages of a session again to a client that loads it, except for runs that were
//! undone.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallStatus,
};
use plimsoll::machine::Entry;
use plimsoll::model::Source;
use plimsoll::{Message, Part};

use super::calls::Calls;

/// Sends all messages, as fast as the client reads.
pub(super) async fn replay(log: &[Entry], calls: &Calls) {
    for message in messages(log) {
        calls.outbox.space().await;
        match message {
            Message::User { parts } => {
                for block in parts.iter().filter_map(block) {
                    let chunk = SessionUpdate::UserMessageChunk(ContentChunk::new(block));
                    calls.outbox.send(chunk);
                }
            }
            Message::Assistant { parts } => {
                calls.next_message("");
                for part in parts {
                    send_part(part, calls);
                }
            }
            Message::ToolResult(result) => {
                calls.close(&result.call, result.is_error, &message.text());
            }
            Message::System { .. } | Message::Notice { .. } | Message::Summary { .. } => {}
        }
    }
    calls.next_message("");
}

fn send_part(part: &Part, calls: &Calls) {
    match part {
        Part::Text { text } => calls.outbox.say(text),
        Part::Thinking(thinking) if !thinking.text.is_empty() => calls.outbox.think(&thinking.text),
        Part::ToolCall(call) => {
            let of = calls.describe_past(&call.name, &call.arguments);
            calls.show(&call.id, of, ToolCallStatus::Pending);
        }
        _ => {}
    }
}

/// Returns the messages of a log, without runs that were undone.
fn messages(log: &[Entry]) -> Vec<&Message> {
    let mut messages: Vec<&Message> = Vec::new();
    // The number of messages at the beginning of each run.
    let mut begun: Vec<(u64, usize)> = Vec::new();
    for entry in log {
        match entry {
            // A run that is continued has begun before.
            Entry::RunStarted { run, .. } if begun.iter().all(|(other, _)| other != run) => {
                begun.push((*run, messages.len()));
            }
            Entry::RolledBack { run } => {
                if let Some((_, count)) = begun.iter().find(|(other, _)| other == run) {
                    messages.truncate(*count);
                }
                begun.retain(|(other, _)| other < run);
            }
            Entry::Message { message, .. }
            | Entry::Reply { message, .. }
            | Entry::PartialReply { message, .. }
            | Entry::ToolResult { message, .. } => messages.push(message),
            _ => {}
        }
    }
    messages
}

fn block(part: &Part) -> Option<ContentBlock> {
    match part {
        Part::Text { text } => Some(ContentBlock::from(text.as_str())),
        Part::Image(image) => match &image.source {
            Source::Data { media_type, base64 } => Some(ContentBlock::Image(ImageContent::new(
                base64.as_str(),
                media_type.as_str(),
            ))),
            Source::Url { url } => Some(ContentBlock::from(url.as_str())),
        },
        _ => None,
    }
}
