//! [`MessagesEvents`]: the events of a streamed reply, and whole responses. Deviations of other servers
//! are repaired; the model's output is not changed.

use plimsoll_context::{Part, Reply, StopReason};
use serde_json::value::RawValue;

use super::read_block;
use super::stream_block::{BlockKind, MessagesBlock};
use super::usage::WireUsage;
use crate::decoder::{self, ReplyEvents, StreamDecoder};
use crate::error::WireError;
use crate::object::Object;
use crate::open_reply::{OpenContent, OpenReply};
use crate::raw::{RawObject, parse};

/// A reply while it arrives.
pub type MessagesStreamState = decoder::StreamState<MessagesEvents, MessagesBlock>;

/// Reads the events of a reply.
#[derive(Debug, Clone, Default)]
pub struct MessagesEvents {
    usage: WireUsage,
}

/// Reads a whole response.
///
/// # Errors
///
/// [`WireError::Provider`] if it is an error, whatever its status was, and
/// [`WireError::NotJson`], [`WireError::Expected`], [`WireError::TooLarge`] or
/// [`WireError::TooManyParts`].
pub fn read_reply(body: &str) -> Result<Reply, WireError> {
    MessagesStreamState::new().read_whole(body)
}

impl ReplyEvents<MessagesBlock> for MessagesEvents {
    fn event(&mut self, data: &str, reply: &mut OpenReply<MessagesBlock>) -> Result<(), WireError> {
        let event: RawObject<'_> = parse(data)?;
        refuse_error(&event, data)?;
        let index = event.number("index").unwrap_or_default();
        match event.text("type").as_str() {
            "message_start" => {
                if let Some(message) = event.get("message") {
                    self.head(&parse(message)?, reply)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    start(index, block, reply)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta") {
                    more(index, &parse(delta)?, reply)?;
                }
            }
            "message_delta" => {
                self.used(&event, reply)?;
                if let Some(delta) = event.get("delta") {
                    stopped(&parse(delta)?, reply);
                }
            }
            "content_block_stop" => {
                if let Some(at) = newest(index, reply) {
                    tell_hosted(at, reply);
                }
            }
            "message_stop" => reply.end(),
            // A ping or an unknown event.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str, reply: &mut OpenReply<MessagesBlock>) -> Result<(), WireError> {
        let message: RawObject<'_> = parse(body)?;
        refuse_error(&message, body)?;
        let content = message.get("content");
        let content = content.filter(|content| content.starts_with('['));
        let Some(content) = content else {
            return Err(WireError::expected("content", "a list of blocks", None));
        };
        self.head(&message, reply)?;
        stopped(&message, reply);
        let blocks: Vec<&RawValue> = parse(content)?;
        for (index, block) in (0_u64..).zip(blocks) {
            let at = start(index, block.get(), reply)?;
            tell_hosted(at, reply);
        }
        reply.end();
        Ok(())
    }

    fn parts(&self, reply: &OpenReply<MessagesBlock>, stop: StopReason) -> Vec<Part> {
        let blocks = reply.blocks().iter();
        blocks.flat_map(|block| block.parts(stop)).collect()
    }
}

impl MessagesEvents {
    fn head(
        &mut self,
        message: &RawObject<'_>,
        reply: &mut OpenReply<MessagesBlock>,
    ) -> Result<(), WireError> {
        let model = Some(message.text("model")).filter(|model| !model.is_empty());
        reply.model = model.or(reply.model.take());
        self.used(message, reply)
    }

    fn used(
        &mut self,
        event: &RawObject<'_>,
        reply: &mut OpenReply<MessagesBlock>,
    ) -> Result<(), WireError> {
        if let Some(usage) = event.get("usage").filter(|usage| usage.starts_with('{')) {
            self.usage.take(parse(usage)?);
            reply.used(self.usage.normalized());
        }
        Ok(())
    }
}

fn stopped(delta: &RawObject<'_>, reply: &mut OpenReply<MessagesBlock>) {
    let reason = delta.get("stop_reason");
    if let Some(Ok(reason)) = reason.map(serde_json::from_str::<String>) {
        reply.stopped(stop_reason(&reason));
    }
}

/// Opens a block and returns its place.
fn start(index: u64, raw: &str, reply: &mut OpenReply<MessagesBlock>) -> Result<usize, WireError> {
    reply.charge(raw.len())?;
    let object: RawObject<'_> = parse(raw)?;
    let field = |key: &str| object.text(key);
    let (content, kind) = match object.text("type").as_str() {
        "text" => (OpenContent::text(), BlockKind::Text),
        "thinking" => {
            let (signature, grew) = (field("signature"), false);
            (
                OpenContent::thinking(),
                BlockKind::Thinking { signature, grew },
            )
        }
        "tool_use" => {
            let id = reply.call_id(&field("id"), "");
            let content = OpenContent::call(id, &field("name"));
            (content, BlockKind::Call { is_whole: true })
        }
        "redacted_thinking" => (OpenContent::opaque(), BlockKind::Redacted),
        _ => {
            let pieces = String::new();
            (OpenContent::opaque(), BlockKind::Other { pieces })
        }
    };
    let state = MessagesBlock {
        index,
        start: raw.to_owned(),
        kind,
    };
    let at = reply.open(content, state)?;
    match reply.block_mut(at).map(|block| &mut block.content) {
        Some(OpenContent::Text(_)) => reply.push(at, &field("text")),
        Some(OpenContent::Thinking(_)) => reply.push(at, &field("thinking")),
        Some(OpenContent::Call(open)) => {
            open.call.opaque = read_block::further_keys(&object);
            reply.tell_call(at);
            let whole = object.get("input").unwrap_or_default();
            match whole {
                // The input may be complete, or its pieces follow.
                "{}" | "null" => reply.begin_arguments(at, whole),
                whole => reply.push(at, whole),
            }
        }
        _ => {}
    }
    Ok(at)
}

/// Reports a complete block of one of the provider's own tools to observers.
fn tell_hosted(at: usize, reply: &mut OpenReply<MessagesBlock>) {
    let block = reply.blocks().get(at);
    if let Some(block) = block.filter(|block| matches!(block.state.kind, BlockKind::Other { .. })) {
        let parts = block.parts(StopReason::Other);
        reply.tell_hosted(at, &parts);
    }
}

/// Returns the place of the newest block with an index, which is the one that grows.
fn newest(index: u64, reply: &OpenReply<MessagesBlock>) -> Option<usize> {
    let mut blocks = reply.blocks().iter();
    blocks.rposition(|block| block.state.index == index)
}

fn more(
    index: u64,
    delta: &RawObject<'_>,
    reply: &mut OpenReply<MessagesBlock>,
) -> Result<(), WireError> {
    let kind = delta.text("type");
    let (key, of) = match kind.as_str() {
        "text_delta" => ("text", "text"),
        "thinking_delta" => ("thinking", "thinking"),
        "signature_delta" => ("signature", "thinking"),
        "input_json_delta" => ("partial_json", "tool_use"),
        _ => return Ok(()),
    };
    let raw = delta.get(key).unwrap_or("null");
    reply.charge(raw.len())?;
    let more = serde_json::from_str::<String>(raw).unwrap_or_default();
    let at = match newest(index, reply) {
        Some(at) => at,
        // Some servers do not begin blocks.
        None => start(index, &Object::of(of).end(), reply)?,
    };
    let Some(block) = reply.block_mut(at) else {
        return Ok(());
    };
    match (&mut block.state.kind, key) {
        (BlockKind::Text, "text") => reply.push(at, &more),
        (BlockKind::Thinking { grew, .. }, "thinking") => {
            *grew = true;
            reply.push(at, &more);
        }
        (BlockKind::Thinking { signature, grew }, "signature") => {
            *grew = true;
            signature.push_str(&more);
        }
        (BlockKind::Call { is_whole }, "partial_json") => {
            if !more.is_empty() && std::mem::take(is_whole) {
                reply.begin_arguments(at, "");
            }
            reply.push(at, &more);
        }
        (BlockKind::Other { pieces }, "partial_json") => pieces.push_str(&more),
        _ => {}
    }
    Ok(())
}

/// Returns an error if the body or an event contains one. Some servers report errors with status 200,
/// or in the middle of a stream.
fn refuse_error(event: &RawObject<'_>, body: &str) -> Result<(), WireError> {
    if event.given("error").is_some() || event.text("type") == "error" {
        return Err(WireError::Provider { body: body.into() });
    }
    Ok(())
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::Stop,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::Window,
        "refusal" => StopReason::ContentFilter,
        "pause_turn" => StopReason::Paused,
        _ => StopReason::Other,
    }
}
