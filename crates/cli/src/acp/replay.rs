//! Sends the messages of a session again to a client that loads it, except for runs that were
//! undone.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionId, SessionUpdate, ToolCallStatus,
};
use plimsoll::machine::Entry;
use plimsoll::model::Source;
use plimsoll::{Message, Part};

use super::calls::{self, Calls};
use super::transport::{Outbox, TextKind};

/// Sends all messages, as fast as the client reads.
pub(super) async fn replay(log: &[Entry], session: &SessionId, outbox: &Outbox, calls: &Calls) {
    for message in messages(log) {
        outbox.room().await;
        match message {
            Message::User { parts } => {
                for block in parts.iter().filter_map(block) {
                    let chunk = ContentChunk::new(block);
                    outbox.update(session, SessionUpdate::UserMessageChunk(chunk));
                }
            }
            Message::Assistant { parts } => {
                for id in calls.next_message() {
                    let ended = calls::ended(id, true, None);
                    outbox.update(session, SessionUpdate::ToolCallUpdate(ended));
                }
                for part in parts {
                    send_part(part, session, outbox, calls);
                }
            }
            Message::ToolResult(result) => {
                let (id, has_diff) = calls.close(&result.call);
                let text = message.text();
                let shown = (result.is_error || !has_diff).then_some(text.as_str());
                let ended = calls::ended(id, result.is_error, shown);
                outbox.update(session, SessionUpdate::ToolCallUpdate(ended));
            }
            Message::System { .. } | Message::Notice { .. } | Message::Summary { .. } => {}
        }
    }
    for id in calls.end_all() {
        let ended = calls::ended(id, true, None);
        outbox.update(session, SessionUpdate::ToolCallUpdate(ended));
    }
}

fn send_part(part: &Part, session: &SessionId, outbox: &Outbox, calls: &Calls) {
    match part {
        Part::Text { text } => outbox.text(session, TextKind::Agent, text),
        Part::Thinking(thinking) if !thinking.text.is_empty() => {
            outbox.text(session, TextKind::Thought, &thinking.text);
        }
        Part::ToolCall(call) => {
            let of = calls.describe_past(&call.name, &call.arguments);
            if let calls::CallUpdate::New(call) =
                calls.update_of(&call.id, &of, ToolCallStatus::Pending)
            {
                outbox.update(session, SessionUpdate::ToolCall(call));
            }
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
