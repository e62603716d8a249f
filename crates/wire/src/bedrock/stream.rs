//! [`StreamState`]: the events of `ConverseStream` as a reply. A reasoning block keeps its signature and
//! the model that it came from.
//!
//! Each event is the JSON object `{"NAME": PAYLOAD}`. The transport takes off the binary framing and
//! reports exceptions.

use std::collections::BTreeMap;

use plimsoll_context::{
    Bytes, CallId, Delta, Opaque, Part, Reply, StopReason, Thinking, Tokens, ToolCall, Usage,
};
use serde_json::{Map, Value, json};

use super::ORIGIN;
use super::profile::Maker;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::openai_chat::{MAX_PARTS, MAX_REPLY};
use crate::raw::parse;

/// A reply while it arrives.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    /// By the index that the API gives them.
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    usage: Option<Usage>,
    model: String,
    /// Whether the input includes the tokens read from and written to the cache: seen of OpenAI's models,
    /// against the API's documentation.
    input_includes_cache: bool,
    bytes: usize,
}

#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Call(ToolCall),
    Reasoning(Reasoning),
}

#[derive(Debug, Clone, Default)]
struct Reasoning {
    text: String,
    signature: String,
    redacted: String,
}

impl StreamDecoder for StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let event: Map<String, Value> = parse(data)?;
        let mut deltas = Vec::new();
        for (name, payload) in &event {
            match name.as_str() {
                "contentBlockStart" => self.start(payload, &mut deltas)?,
                "contentBlockDelta" => self.delta(payload, &mut deltas)?,
                "messageStop" => self.stopped(payload),
                "metadata" => self.used(payload),
                _ => {}
            }
        }
        Ok(deltas)
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn partial(&self) -> Reply {
        self.reply(StopReason::Other)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(&self) -> Result<Reply, WireError> {
        let mut blocks = self.blocks.values();
        let called = blocks.any(|block| matches!(block, Block::Call(_)));
        let stop = match self.stop.as_deref() {
            None => {
                let partial = Box::new(self.partial());
                return Err(WireError::Cut { partial });
            }
            Some(reason @ ("malformed_tool_use" | "malformed_model_output")) if !called => {
                return Err(WireError::Expected {
                    place: "messageStop".into(),
                    expected: "a tool call that can be read".into(),
                    got: reason.to_owned(),
                });
            }
            Some("tool_use") => StopReason::ToolCalls,
            Some("end_turn" | "stop_sequence") if called => StopReason::ToolCalls,
            Some("end_turn" | "stop_sequence") => StopReason::Stop,
            Some("max_tokens") => StopReason::Length,
            Some("model_context_window_exceeded") => StopReason::Window,
            Some("guardrail_intervened" | "content_filtered") => StopReason::ContentFilter,
            Some(_) => StopReason::Other,
        };
        Ok(self.reply(stop))
    }

    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError> {
        let body: Value = parse(body)?;
        let content = body.pointer("/output/message/content");
        let Some(content) = content.and_then(Value::as_array) else {
            let body = body.to_string();
            return Err(WireError::Provider { body });
        };
        let mut deltas = Vec::new();
        for (index, block) in content.iter().enumerate() {
            let delta = match (block.get("toolUse"), block.get("reasoningContent")) {
                (Some(call), _) => {
                    let start = json!({"contentBlockIndex": index, "start": {"toolUse": call}});
                    self.start(&start, &mut deltas)?;
                    let input = call.get("input").unwrap_or(&Value::Null).to_string();
                    json!({"toolUse": {"input": input}})
                }
                (_, Some(reasoning)) => {
                    let text = reasoning.get("reasoningText");
                    json!({"reasoningContent": text.unwrap_or(reasoning)})
                }
                _ => block.clone(),
            };
            let delta = json!({"contentBlockIndex": index, "delta": delta});
            self.delta(&delta, &mut deltas)?;
        }
        self.stopped(&body);
        self.used(&body);
        self.finish()
    }
}

impl StreamState {
    /// Creates the state of a reply of a model, by its id.
    #[must_use]
    pub fn new(model: &str, maker: &Maker) -> Self {
        Self {
            model: model.to_owned(),
            input_includes_cache: *maker == Maker::OpenAi,
            ..Self::default()
        }
    }

    fn reply(&self, stop: StopReason) -> Reply {
        let parts = self.blocks.values();
        Reply {
            parts: parts.filter_map(|block| block.part(&self.model)).collect(),
            stop,
            usage: self.usage,
            model: None,
        }
    }

    fn stopped(&mut self, payload: &Value) {
        let reason = payload.get("stopReason").and_then(Value::as_str);
        self.stop = Some(reason.unwrap_or_default().to_owned());
    }

    fn used(&mut self, payload: &Value) {
        let usage = payload.get("usage");
        self.usage = usage.and_then(|usage| usage_of(usage, self.input_includes_cache));
    }

    fn start(&mut self, payload: &Value, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let Some(call) = payload.pointer("/start/toolUse") else {
            return Ok(());
        };
        let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default();
        let call = ToolCall {
            id: CallId(text("toolUseId").to_owned()),
            name: text("name").to_owned(),
            arguments: String::new(),
            opaque: None,
        };
        deltas.push(Delta::CallStarted {
            call: call.id.clone(),
            name: call.name.clone(),
        });
        self.charge(call.id.0.len() + call.name.len())?;
        self.block(index(payload), || Block::Call(call))?;
        Ok(())
    }

    fn delta(&mut self, payload: &Value, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let text = |path: &str| payload.pointer(path).and_then(Value::as_str);
        let index = index(payload);
        if let Some(text) = text("/delta/text") {
            self.charge(text.len())?;
            if let Block::Text(said) = self.block(index, || Block::Text(String::new()))? {
                said.push_str(text);
            }
            deltas.push(Delta::Text { text: text.into() });
        } else if let Some(text) = text("/delta/toolUse/input") {
            self.charge(text.len())?;
            if let Some(Block::Call(call)) = self.blocks.get_mut(&index) {
                call.arguments.push_str(text);
                deltas.push(Delta::CallArguments {
                    call: call.id.clone(),
                    text: text.into(),
                });
            }
        } else if payload.pointer("/delta/reasoningContent").is_some() {
            let of =
                |key: &str| text(&format!("/delta/reasoningContent/{key}")).unwrap_or_default();
            let (said, signature, redacted) = (of("text"), of("signature"), of("redactedContent"));
            self.charge(said.len() + signature.len() + redacted.len())?;
            let new = || Block::Reasoning(Reasoning::default());
            if let Block::Reasoning(reasoning) = self.block(index, new)? {
                reasoning.text.push_str(said);
                reasoning.signature.push_str(signature);
                reasoning.redacted.push_str(redacted);
            }
            if !said.is_empty() {
                deltas.push(Delta::Thinking { text: said.into() });
            }
        }
        Ok(())
    }

    /// Returns the block with this index, a new one if there is none.
    fn block(&mut self, index: u64, new: impl FnOnce() -> Block) -> Result<&mut Block, WireError> {
        if !self.blocks.contains_key(&index) && self.blocks.len() >= MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        Ok(self.blocks.entry(index).or_insert_with(new))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        match Bytes(self.bytes as u64) > MAX_REPLY {
            true => Err(WireError::TooLarge { limit: MAX_REPLY }),
            false => Ok(()),
        }
    }
}

impl Block {
    fn part(&self, model: &str) -> Option<Part> {
        match self {
            Self::Text(text) => (!text.is_empty()).then(|| Part::text(text)),
            Self::Call(call) => {
                let mut call = call.clone();
                if call.arguments.is_empty() {
                    call.arguments.push_str("{}");
                }
                Some(Part::ToolCall(call))
            }
            Self::Reasoning(reasoning) => reasoning.part(model),
        }
    }
}

impl Reasoning {
    fn part(&self, model: &str) -> Option<Part> {
        let data = if !self.redacted.is_empty() {
            Some(json!({"model": model, "redactedContent": self.redacted}))
        } else if !self.signature.is_empty() {
            Some(json!({"model": model, "signature": self.signature}))
        } else if self.text.is_empty() {
            return None;
        } else {
            None
        };
        Some(Part::Thinking(Thinking {
            text: self.text.clone(),
            opaque: data.map(|data| Opaque {
                origin: ORIGIN.into(),
                data: data.to_string(),
            }),
        }))
    }
}

fn index(payload: &Value) -> u64 {
    let index = payload.get("contentBlockIndex").and_then(Value::as_u64);
    index.unwrap_or_default()
}

fn usage_of(usage: &Value, input_includes_cache: bool) -> Option<Usage> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let input = count("inputTokens")?;
    let read = count("cacheReadInputTokens").unwrap_or_default();
    let write = count("cacheWriteInputTokens").unwrap_or_default();
    let cached = read.saturating_add(write);
    let fresh = match input.checked_sub(cached) {
        Some(fresh) if input_includes_cache => fresh,
        _ => input,
    };
    Some(Usage {
        input: Tokens(fresh),
        output: Tokens(count("outputTokens").unwrap_or_default()),
        reasoning: Tokens::ZERO,
        cache_read: Tokens(read),
        cache_write: Tokens(write),
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_event_is_a_panic(text in ".{0,200}", name in "[a-zA-Z]{1,16}", index in 0u64..) {
            let mut state = StreamState::new("m", &Maker::Other);
            let _ = state.push(&text);
            for event in ["contentBlockStart", "contentBlockDelta", "messageStop", "metadata"] {
                let payload = json!({"contentBlockIndex": index, "delta": {(&name): 1},
                    "start": {"toolUse": {(&name): 1}}, "usage": {"inputTokens": index}});
                let _ = state.push(&json!({(event): payload}).to_string());
            }
            let _ = state.finish();
            let _ = state.read_whole(&text);
        }
    }
}
