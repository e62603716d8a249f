//! Sends the messages of a session again to a client that loads it, except for runs that were
//! undone.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallStatus,
};
use plimsoll::machine::Entry;
use plimsoll::model::Source;
use plimsoll::{Message, Part};

use super::calls::{self, Calls};
use super::outbox::Outbox;

/// Sends all messages, as fast as the client reads.
pub(super) async fn replay(log: &[Entry], outbox: &Outbox, calls: &Calls) {
    for message in messages(log) {
        outbox.space().await;
        match message {
            Message::User { parts } => {
                for block in parts.iter().filter_map(block) {
                    outbox.send(SessionUpdate::UserMessageChunk(ContentChunk::new(block)));
                }
            }
            Message::Assistant { parts } => {
                end_calls(outbox, calls);
                for part in parts {
                    send_part(part, outbox, calls);
                }
            }
            Message::ToolResult(result) => {
                outbox.send(calls.close(&result.call, result.is_error, &message.text()));
            }
            Message::System { .. } | Message::Notice { .. } | Message::Summary { .. } => {}
        }
    }
    end_calls(outbox, calls);
}

/// Ends the calls that have no result.
fn end_calls(outbox: &Outbox, calls: &Calls) {
    for id in calls.next_message() {
        outbox.send(calls::ended(id, true, ""));
    }
}

fn send_part(part: &Part, outbox: &Outbox, calls: &Calls) {
    match part {
        Part::Text { text } => outbox.say(text),
        Part::Thinking(thinking) if !thinking.text.is_empty() => outbox.think(&thinking.text),
        Part::ToolCall(call) => {
            let of = calls.describe_past(&call.name, &call.arguments);
            outbox.send(calls.update(&call.id, of, ToolCallStatus::Pending));
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
