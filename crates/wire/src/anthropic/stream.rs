//! [`StreamState`]: the events of a streamed reply put together into one. Knows nothing of
//! server-sent events: it is given the text of each `data:` field. Repairs what servers do
//! differently, never what the model wrote.

use plimsoll_context::{CallId, Delta, Part, Reply, StopReason, Usage};
use serde_json::value::RawValue;

use super::read_block;
use super::stream_block::{Block, Kind};
use super::usage::WireUsage;
use crate::call_ids::fnv1a;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::hosted;
use crate::openai_chat::{MAX_PARTS, MAX_REPLY};
use crate::raw::{RawObject, parse};

/// A reply while it arrives.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    model: Option<String>,
    blocks: Vec<Block>,
    usage: WireUsage,
    stop: Option<StopReason>,
    done: Done,
    bytes: usize,
}

/// Whether the end mark came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Done {
    #[default]
    NotYet,
    Marked,
}

/// Reads a whole response.
///
/// # Errors
///
/// [`WireError::Provider`] if it is an error, whatever its status was, and
/// [`WireError::NotJson`], [`WireError::Expected`], [`WireError::TooLarge`] or
/// [`WireError::TooManyParts`].
pub fn read_reply(body: &str) -> Result<Reply, WireError> {
    let mut state = StreamState::new();
    state.whole(body)?;
    state.finish()
}

impl StreamDecoder for StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let data = data.trim();
        // The mark of another wire, which some gateways send here too.
        if data.is_empty() || data == "[DONE]" || self.done == Done::Marked {
            return Ok(Vec::new());
        }
        let event: RawObject<'_> = parse(data)?;
        refuse_error(&event, data)?;
        let mut deltas = Vec::new();
        match kind(&event).as_str() {
            "message_start" => {
                if let Some(message) = event.get("message") {
                    self.head(&parse(message)?)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.get("content_block") {
                    self.start(index(&event), block, &mut deltas)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.get("delta") {
                    self.delta(index(&event), &parse(delta)?, &mut deltas)?;
                }
            }
            "message_delta" => {
                self.used(&event)?;
                if let Some(delta) = event.get("delta") {
                    self.stopped(&parse(delta)?);
                }
            }
            "content_block_stop" => self.tell_hosted(index(&event), &mut deltas),
            "message_stop" => self.done = Done::Marked,
            // A ping or an event that is not known yet.
            _ => {}
        }
        Ok(deltas)
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some() || self.done == Done::Marked
    }

    fn is_complete(&self) -> bool {
        self.done == Done::Marked
    }

    fn partial(&self) -> Reply {
        self.reply(self.stop.unwrap_or(StopReason::Other))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage.normalized()
    }

    fn finish(&self) -> Result<Reply, WireError> {
        if !self.has_ended() {
            let partial = Box::new(self.partial());
            return Err(WireError::Cut { partial });
        }
        let mut blocks = self.blocks.iter();
        let calls = blocks.any(|block| matches!(block.kind, Kind::Call { .. }));
        let stop = match (self.stop, calls) {
            (Some(StopReason::ToolCalls) | None, false) => StopReason::Stop,
            // Some servers say that a turn ends which calls tools.
            (Some(StopReason::Stop) | None, true) => StopReason::ToolCalls,
            (Some(stop), _) => stop,
        };
        Ok(self.reply(stop))
    }

    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError> {
        read_reply(body)
    }
}

impl StreamState {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a whole response and says what is in it.
    ///
    /// # Errors
    ///
    /// Those of [`read_reply`].
    pub fn whole(&mut self, body: &str) -> Result<Vec<Delta>, WireError> {
        let message: RawObject<'_> = parse(body)?;
        refuse_error(&message, body)?;
        let content = message.get("content");
        let content = content.filter(|content| content.starts_with('['));
        let Some(content) = content else {
            return Err(WireError::expected("content", "a list of blocks", None));
        };
        self.head(&message)?;
        self.stopped(&message);
        let mut deltas = Vec::new();
        let blocks: Vec<&RawValue> = parse(content)?;
        for (index, block) in (0_u64..).zip(blocks) {
            self.start(index, block.get(), &mut deltas)?;
            self.tell_hosted(index, &mut deltas);
        }
        self.done = Done::Marked;
        Ok(deltas)
    }

    /// Whether nothing has arrived, not even who answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.model.is_none()
    }

    fn reply(&self, stop: StopReason) -> Reply {
        let mut parts = Vec::new();
        for block in &self.blocks {
            block.parts(stop, &mut parts);
        }
        Reply {
            parts,
            stop,
            usage: self.usage.normalized(),
            model: self.model.clone(),
        }
    }

    fn head(&mut self, message: &RawObject<'_>) -> Result<(), WireError> {
        let model = message.get("model").map(serde_json::from_str::<String>);
        if let Some(Ok(model)) = model
            && !model.is_empty()
        {
            self.model = Some(model);
        }
        self.used(message)
    }

    fn used(&mut self, event: &RawObject<'_>) -> Result<(), WireError> {
        if let Some(usage) = event.get("usage").filter(|usage| usage.starts_with('{')) {
            let usage: WireUsage = parse(usage)?;
            self.usage = std::mem::take(&mut self.usage).with_later(usage);
        }
        Ok(())
    }

    fn stopped(&mut self, delta: &RawObject<'_>) {
        let reason = delta.get("stop_reason");
        if let Some(Ok(reason)) = reason.map(serde_json::from_str::<String>) {
            self.stop = Some(stop_reason(&reason));
        }
    }

    fn start(&mut self, index: u64, raw: &str, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        self.charge(raw.len())?;
        if self.blocks.len() >= MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        let object: RawObject<'_> = parse(raw)?;
        let text = |key: &str| {
            let text = object.get(key).map(serde_json::from_str::<String>);
            text.and_then(Result::ok).unwrap_or_default()
        };
        let kind = match kind(&object).as_str() {
            "text" => {
                say(deltas, text("text"));
                Kind::Text {
                    text: text("text"),
                    citations: list(object.get("citations"))?,
                }
            }
            "thinking" => {
                think(deltas, text("thinking"));
                Kind::Thinking {
                    text: text("thinking"),
                    signature: text("signature"),
                    grew: false,
                }
            }
            "redacted_thinking" => Kind::Redacted,
            "tool_use" => {
                let (id, name) = (self.own_id(text("id")), text("name"));
                deltas.push(Delta::CallStarted {
                    call: CallId(id.clone()),
                    name: name.clone(),
                });
                let whole = object.get("input").unwrap_or_default();
                if !matches!(whole, "" | "{}" | "null") {
                    deltas.push(Delta::CallArguments {
                        call: CallId(id.clone()),
                        text: whole.to_owned(),
                    });
                }
                Kind::Call {
                    id,
                    name,
                    whole: whole.to_owned(),
                    pieces: String::new(),
                    further: read_block::further_keys(&object),
                }
            }
            "compaction" => Kind::Compaction {
                content: object.get("content").and_then(some_text),
                encrypted: object.get("encrypted_content").and_then(some_text),
            },
            _ => Kind::Other {
                pieces: String::new(),
            },
        };
        self.blocks.push(Block {
            index,
            began: raw.to_owned(),
            kind,
        });
        Ok(())
    }

    /// Tells what a block that is whole says of a tool of the provider's own.
    fn tell_hosted(&self, index: u64, deltas: &mut Vec<Delta>) {
        let mut blocks = self.blocks.iter().rev();
        let Some(block) = blocks.find(|block| block.index == index) else {
            return;
        };
        if !matches!(block.kind, Kind::Other { .. }) {
            return;
        }
        let mut parts = Vec::new();
        block.parts(StopReason::Other, &mut parts);
        for part in &parts {
            if let Part::Opaque(opaque) = part {
                deltas.extend(hosted::told(opaque));
            }
        }
    }

    /// Ids of calls are unique in their reply, whatever the server says; where it says nothing, the
    /// same reply gives the same ids.
    fn own_id(&self, id: String) -> String {
        let calls = self.blocks.iter().filter_map(|block| match &block.kind {
            Kind::Call { id, .. } => Some(id.as_str()),
            _ => None,
        });
        let taken: Vec<&str> = calls.collect();
        let mut id = id;
        if id.is_empty() {
            let said: String = self.blocks.iter().map(Block::said).collect();
            id = format!("toolu_{:016x}", fnv1a(said.as_bytes(), taken.len() as u64));
        }
        while taken.contains(&id.as_str()) {
            id.push('_');
        }
        id
    }

    fn delta(
        &mut self,
        index: u64,
        delta: &RawObject<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let kind = kind(delta);
        let (key, of) = match kind.as_str() {
            "text_delta" => ("text", "text"),
            "thinking_delta" => ("thinking", "thinking"),
            "signature_delta" => ("signature", "thinking"),
            "input_json_delta" => ("partial_json", "tool_use"),
            "citations_delta" => ("citation", "text"),
            "compaction_delta" => ("content", "compaction"),
            _ => return Ok(()),
        };
        let raw = delta.get(key).unwrap_or("null");
        let sealed = delta.get("encrypted_content").and_then(some_text);
        let sealed = sealed.filter(|_| of == "compaction");
        self.charge(
            raw.len()
                .saturating_add(sealed.as_ref().map_or(0, String::len)),
        )?;
        let more = serde_json::from_str::<String>(raw).unwrap_or_default();
        // Some servers begin no block.
        if !self.blocks.iter().any(|block| block.index == index) {
            self.start(index, &crate::object::Object::of(of).end(), deltas)?;
        }
        // The newest first: it is the one that grows.
        let mut blocks = self.blocks.iter_mut().rev();
        let Some(block) = blocks.find(|block| block.index == index) else {
            return Ok(());
        };
        match (&mut block.kind, key) {
            (Kind::Text { text, .. }, "text") => {
                text.push_str(&more);
                say(deltas, more);
            }
            (Kind::Text { citations, .. }, "citation") => citations.push(raw.to_owned()),
            (Kind::Thinking { text, grew, .. }, "thinking") => {
                *grew = true;
                text.push_str(&more);
                think(deltas, more);
            }
            (
                Kind::Thinking {
                    signature, grew, ..
                },
                "signature",
            ) => {
                *grew = true;
                signature.push_str(&more);
            }
            (Kind::Call { id, pieces, .. }, "partial_json") => {
                pieces.push_str(&more);
                if !more.is_empty() {
                    deltas.push(Delta::CallArguments {
                        call: CallId(id.clone()),
                        text: more,
                    });
                }
            }
            (Kind::Other { pieces }, "partial_json") => pieces.push_str(&more),
            (Kind::Compaction { content, encrypted }, "content") => {
                if raw != "null" {
                    content.get_or_insert_default().push_str(&more);
                }
                *encrypted = sealed.or(encrypted.take());
            }
            _ => {}
        }
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes as u64 > MAX_REPLY.0 {
            return Err(WireError::TooLarge { limit: MAX_REPLY });
        }
        Ok(())
    }
}

fn say(deltas: &mut Vec<Delta>, text: String) {
    if !text.is_empty() {
        deltas.push(Delta::Text { text });
    }
}

fn think(deltas: &mut Vec<Delta>, text: String) {
    if !text.is_empty() {
        deltas.push(Delta::Thinking { text });
    }
}

fn some_text(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

fn list(raw: Option<&str>) -> Result<Vec<String>, WireError> {
    let Some(raw) = raw.filter(|raw| raw.starts_with('[')) else {
        return Ok(Vec::new());
    };
    let list: Vec<&RawValue> = parse(raw)?;
    Ok(list.into_iter().map(|raw| raw.get().to_owned()).collect())
}

fn kind(object: &RawObject<'_>) -> String {
    let kind = object.get("type").map(serde_json::from_str);
    kind.and_then(Result::ok).unwrap_or_default()
}

fn index(event: &RawObject<'_>) -> u64 {
    let index = event.get("index").map(str::parse);
    index.and_then(Result::ok).unwrap_or_default()
}

/// Some servers answer 200 and say in the body, or in the middle of the stream, that it failed.
fn refuse_error(event: &RawObject<'_>, body: &str) -> Result<(), WireError> {
    let said = event.get("error").is_some_and(|error| error != "null");
    if said || kind(event) == "error" {
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
        // After either, what was said goes back as it is, and the model goes on.
        "pause_turn" | "compaction" => StopReason::Paused,
        _ => StopReason::Other,
    }
}
