//! [`MessagesStreamState`]: the events of a streamed reply, and whole responses. Deviations of other servers
//! are repaired; the model's output is not changed.

use plimsoll_context::{Part, Reply, StopReason};
use serde_json::value::RawValue;

use super::read_block;
use super::stream_block::MessagesBlock;
use super::usage::WireUsage;
use crate::decoder::{self, ReplyEvents, StreamDecoder};
use crate::error::WireError;
use crate::object::Object;
use crate::open_reply::OpenContent;
use crate::raw::{RawObject, parse};

/// A reply while it arrives.
pub type MessagesStreamState = decoder::StreamState<MessagesEvents, MessagesBlock>;

/// The state of a reply besides its blocks.
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

impl ReplyEvents for MessagesStreamState {
    fn event(&mut self, data: &str) -> Result<(), WireError> {
        let event: RawObject<'_> = parse(data)?;
        refuse_error(&event, data)?;
        let index = event.number("index").unwrap_or_default();
        match event.text("type").as_str() {
            "message_start" => {
                if let Some(message) = event.get("message") {
                    self.head(&parse(message)?)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.start(index, block)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.more(index, &parse(delta)?)?;
                }
            }
            "message_delta" => {
                self.used(&event)?;
                if let Some(delta) = event.get("delta") {
                    self.stopped(&parse(delta)?);
                }
            }
            "content_block_stop" => {
                if let Some(at) = self.newest(index) {
                    self.tell_hosted(at);
                }
            }
            "message_stop" => self.reply.end(),
            // A ping or an unknown event.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), WireError> {
        let message: RawObject<'_> = parse(body)?;
        refuse_error(&message, body)?;
        let content = message.get("content");
        let content = content.filter(|content| content.starts_with('['));
        let Some(content) = content else {
            return Err(WireError::expected("content", "a list of blocks", None));
        };
        self.head(&message)?;
        self.stopped(&message);
        let blocks: Vec<&RawValue> = parse(content)?;
        for (index, block) in (0_u64..).zip(blocks) {
            let at = self.start(index, block.get())?;
            self.tell_hosted(at);
        }
        self.reply.end();
        Ok(())
    }

    fn parts(&self, stop: StopReason) -> Vec<Part> {
        let blocks = self.reply.blocks().iter();
        blocks.filter_map(|block| block.whole(stop)).collect()
    }
}

impl MessagesStreamState {
    fn head(&mut self, message: &RawObject<'_>) -> Result<(), WireError> {
        let model = Some(message.text("model")).filter(|model| !model.is_empty());
        self.reply.model = model.or(self.reply.model.take());
        self.used(message)
    }

    fn used(&mut self, event: &RawObject<'_>) -> Result<(), WireError> {
        if let Some(usage) = event.get("usage").filter(|usage| usage.starts_with('{')) {
            self.events.usage.take(parse(usage)?);
            self.reply.used(self.events.usage.normalized());
        }
        Ok(())
    }

    fn stopped(&mut self, delta: &RawObject<'_>) {
        if let Some(reason) = delta.some_text("stop_reason") {
            self.reply.stopped(stop_reason(&reason));
        }
    }

    /// Opens a block and returns its place.
    fn start(&mut self, index: u64, raw: &str) -> Result<usize, WireError> {
        let reply = &mut self.reply;
        reply.charge(raw.len())?;
        let object: RawObject<'_> = parse(raw)?;
        let field = |key: &str| object.text(key);
        let mut state = MessagesBlock {
            index,
            start: raw.to_owned(),
            ..MessagesBlock::default()
        };
        let content = match field("type").as_str() {
            "text" => OpenContent::text(),
            "thinking" => {
                state.pieces = field("signature");
                OpenContent::thinking()
            }
            "tool_use" => {
                let id = reply.call_id(&field("id"), "");
                OpenContent::call(id, &field("name"))
            }
            _ => OpenContent::opaque(),
        };
        let at = reply.open(content, state)?;
        match reply.block_mut(at).map(|block| &mut block.content) {
            Some(OpenContent::Text(_)) => reply.push(at, &field("text")),
            Some(OpenContent::Thinking(_)) => reply.push(at, &field("thinking")),
            Some(OpenContent::Call(open)) => {
                open.call.opaque = read_block::further_keys(&object);
                reply.tell_call(at);
                match object.get("input").unwrap_or_default() {
                    // The input may be complete, or its pieces follow.
                    whole @ ("{}" | "null") => reply.begin_arguments(at, whole),
                    whole => reply.push(at, whole),
                }
            }
            _ => {}
        }
        Ok(at)
    }

    /// Reports a complete block of one of the provider's own tools to observers.
    fn tell_hosted(&mut self, at: usize) {
        let block = self.reply.blocks().get(at);
        let part = block.and_then(|block| block.whole(StopReason::Other));
        self.reply.tell_hosted(at, part.as_slice());
    }

    /// Returns the place of the newest block with an index, which is the one that grows.
    fn newest(&self, index: u64) -> Option<usize> {
        let mut blocks = self.reply.blocks().iter();
        blocks.rposition(|block| block.state.index == index)
    }

    fn more(&mut self, index: u64, delta: &RawObject<'_>) -> Result<(), WireError> {
        let kind = delta.text("type");
        let (key, of) = match kind.as_str() {
            "text_delta" => ("text", "text"),
            "thinking_delta" => ("thinking", "thinking"),
            "signature_delta" => ("signature", "thinking"),
            "input_json_delta" => ("partial_json", "tool_use"),
            _ => return Ok(()),
        };
        let raw = delta.get(key).unwrap_or("null");
        self.reply.charge(raw.len())?;
        let more = serde_json::from_str::<String>(raw).unwrap_or_default();
        let at = match self.newest(index) {
            Some(at) => at,
            // Some servers do not begin blocks.
            None => self.start(index, &Object::of(of).end())?,
        };
        let block = self.reply.block_mut(at);
        let Some(block) = block.filter(|_| !more.is_empty()) else {
            return Ok(());
        };
        let grew = std::mem::replace(&mut block.state.grew, true);
        match (&block.content, key) {
            (OpenContent::Call(_), "partial_json") => {
                if !grew {
                    self.reply.begin_arguments(at, "");
                }
                self.reply.push(at, &more);
            }
            (OpenContent::Text(_), "text") | (OpenContent::Thinking(_), "thinking") => {
                self.reply.push(at, &more);
            }
            (OpenContent::Thinking(_), "signature")
            | (OpenContent::Opaque { .. }, "partial_json") => block.state.pieces.push_str(&more),
            _ => {}
        }
        Ok(())
    }
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
