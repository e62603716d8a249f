//! Sends the messages of a session again to a client that loads it, except for runs that were
//! undone.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallStatus,
};
use plimsoll::machine::Entry;
use plimsoll::model::Source;
use plimsoll::session::run_records;
use plimsoll::{Message, Part};

use super::updates::Updates;

/// Sends all messages, as fast as the client reads.
pub(super) async fn replay(log: &[Entry], updates: &Updates) {
    for message in messages(log) {
        updates.outbox.space().await;
        match message {
            Message::User { parts } => {
                for block in parts.iter().filter_map(block) {
                    let chunk = SessionUpdate::UserMessageChunk(ContentChunk::new(block));
                    updates.outbox.send(chunk);
                }
            }
            Message::Assistant { parts } => {
                updates.next_message("");
                for part in parts {
                    send_part(part, updates);
                }
            }
            Message::ToolResult(result) => {
                updates.close(&result.call, result.is_error, &message.text());
            }
            Message::System { .. } | Message::Notice { .. } | Message::Summary { .. } => {}
        }
    }
    updates.next_message("");
}

fn send_part(part: &Part, updates: &Updates) {
    match part {
        Part::Text { text } => updates.outbox.say(text),
        Part::Thinking(thinking) if !thinking.text.is_empty() => {
            updates.outbox.think(&thinking.text)
        }
        Part::ToolCall(call) => {
            let of = updates.describe_past(&call.name, &call.arguments);
            updates.show(&call.id, of, ToolCallStatus::Pending);
        }
        _ => {}
    }
}

/// Returns the messages of a log, without runs that were undone.
fn messages(log: &[Entry]) -> impl Iterator<Item = &Message> {
    let mut undone = run_records("", log);
    undone.retain(|run| run.rolled_back);
    let is_undone = move |number| {
        let mut undone = undone.iter();
        undone.any(|run| (run.first..=run.last).contains(&number))
    };
    let kept = (1..)
        .zip(log)
        .filter(move |(number, _)| !is_undone(*number));
    kept.filter_map(|(_, entry)| match entry {
        Entry::Message { message, .. }
        | Entry::Reply { message, .. }
        | Entry::PartialReply { message, .. }
        | Entry::ToolResult { message, .. } => Some(message.as_ref()),
        _ => None,
    })
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
