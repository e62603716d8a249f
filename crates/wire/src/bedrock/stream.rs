//! [`ConverseStreamState`]: the events of `ConverseStream`, and the bodies of `Converse`. A reasoning block
//! keeps its signature and the id of its model.
//!
//! Each event is the JSON object `{"NAME": PAYLOAD}`. The transport takes off the binary framing and
//! reports exceptions.

use plimsoll_context::{Opaque, Part, StopReason, Thinking, Tokens, Usage};
use serde_json::{Map, Value, json};

use super::{Maker, ORIGIN};
use crate::decoder::{self, ReplyEvents};
use crate::error::WireError;
use crate::open_reply::{OpenBlock, OpenContent};
use crate::raw::{self, parse};
use crate::value::text;

/// A reply while it arrives.
pub type ConverseStreamState = decoder::StreamState<ConverseEvents, ConverseBlock>;

/// The state of a reply besides its blocks.
#[derive(Debug, Clone)]
pub struct ConverseEvents {
    model: String,
    /// Whether the input includes the tokens read from and written to the cache. OpenAI's models report
    /// it so, contrary to the API's documentation.
    input_includes_cache: bool,
}

/// The state of a block besides the model's output.
#[derive(Debug, Clone, Default)]
pub struct ConverseBlock {
    /// The index in the API's events.
    index: u64,
    signature: String,
    redacted: String,
}

impl ConverseStreamState {
    /// Creates the state of a reply of a model, by its id.
    #[must_use]
    pub fn new(model: &str, maker: &Maker) -> Self {
        Self::of(ConverseEvents {
            model: model.to_owned(),
            input_includes_cache: *maker == Maker::OpenAi,
        })
    }
}

impl ReplyEvents for ConverseStreamState {
    fn event(&mut self, data: &str) -> Result<(), WireError> {
        let event: Map<String, Value> = parse(data)?;
        for (name, payload) in &event {
            match name.as_str() {
                "contentBlockStart" => {
                    if let Some(call) = payload.pointer("/start/toolUse") {
                        self.start(index(payload), call)?;
                    }
                }
                "contentBlockDelta" => {
                    if let Some(delta) = payload.get("delta") {
                        self.more(index(payload), delta)?;
                    }
                }
                "messageStop" => self.stopped(payload),
                "metadata" => self.used(payload),
                _ => {}
            }
        }
        Ok(())
    }

    fn whole(&mut self, body: &str) -> Result<(), WireError> {
        let body: Value = parse(body)?;
        let content = body.pointer("/output/message/content");
        let Some(content) = content.and_then(Value::as_array) else {
            let body = body.to_string();
            return Err(WireError::Provider { body });
        };
        for (index, block) in (0_u64..).zip(content) {
            if let Some(call) = block.get("toolUse") {
                self.start(index, call)?;
                let input = call.get("input").unwrap_or(&Value::Null).to_string();
                self.more(index, &json!({"toolUse": {"input": input}}))?;
            } else if let Some(reasoning) = block.get("reasoningContent") {
                let text = reasoning.get("reasoningText").unwrap_or(reasoning);
                self.more(index, &json!({"reasoningContent": text}))?;
            } else {
                self.more(index, block)?;
            }
        }
        self.stopped(&body);
        self.used(&body);
        Ok(())
    }

    fn parts(&self, stop: StopReason) -> Vec<Part> {
        let blocks = self.reply.blocks().iter();
        let parts = blocks.filter_map(|block| match block.opaque(&self.events.model) {
            Some(opaque) => Some(Part::Thinking(Thinking {
                text: block.text().to_owned(),
                opaque: Some(opaque),
            })),
            None => block.part(stop),
        });
        parts.collect()
    }
}

impl OpenBlock<ConverseBlock> {
    /// Returns the data that is sent back with the reasoning.
    fn opaque(&self, model: &str) -> Option<Opaque> {
        let data = if !self.state.redacted.is_empty() {
            json!({"model": model, "redactedContent": self.state.redacted})
        } else if !self.state.signature.is_empty() {
            json!({"model": model, "signature": self.state.signature})
        } else {
            return None;
        };
        Some(raw::opaque(ORIGIN, data.to_string()))
    }
}

impl ConverseStreamState {
    fn used(&mut self, payload: &Value) {
        let usage = payload.get("usage");
        let includes_cache = self.events.input_includes_cache;
        self.reply
            .used(usage.and_then(|usage| usage_of(usage, includes_cache)));
    }

    fn stopped(&mut self, payload: &Value) {
        self.reply.stopped(match text(payload, "stopReason") {
            reason @ ("malformed_tool_use" | "malformed_model_output") => {
                return self.reply.stopped_unreadable("messageStop", reason);
            }
            "tool_use" => StopReason::ToolCalls,
            "end_turn" | "stop_sequence" => StopReason::Stop,
            "max_tokens" => StopReason::Length,
            "model_context_window_exceeded" => StopReason::Window,
            "guardrail_intervened" | "content_filtered" => StopReason::ContentFilter,
            _ => StopReason::Other,
        });
    }

    fn start(&mut self, index: u64, call: &Value) -> Result<(), WireError> {
        let (id, name) = (text(call, "toolUseId"), text(call, "name"));
        self.reply.charge(id.len() + name.len())?;
        let call = OpenContent::call(self.reply.call_id(id, ""), name);
        if let Some(at) = self.block(index, call)? {
            self.reply.tell_call(at);
        }
        Ok(())
    }

    fn more(&mut self, index: u64, delta: &Value) -> Result<(), WireError> {
        let piece = |path: &str| delta.pointer(path).and_then(Value::as_str);
        if let Some(text) = piece("/text") {
            if let Some(at) = self.block(index, OpenContent::text())? {
                self.reply.write(at, text)?;
            }
        } else if let Some(input) = piece("/toolUse/input") {
            // A call never begins with its arguments.
            let mut blocks = self.reply.blocks().iter();
            let is_call = |block: &OpenBlock<_>| block.call().is_some();
            let at = blocks.position(|block| block.state.index == index && is_call(block));
            at.map_or(Ok(()), |at| self.reply.write(at, input))?;
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            let of = |key: &str| text(reasoning, key);
            let (signature, redacted) = (of("signature"), of("redactedContent"));
            self.reply.charge(signature.len() + redacted.len())?;
            if let Some(at) = self.block(index, OpenContent::thinking())? {
                if let Some(block) = self.reply.block_mut(at) {
                    block.state.signature.push_str(signature);
                    block.state.redacted.push_str(redacted);
                }
                self.reply.write(at, of("text"))?;
            }
        }
        Ok(())
    }

    /// Returns the place of the block with this index, a new one if there is none. Returns `None` if the
    /// block is of another kind.
    fn block(&mut self, index: u64, content: OpenContent) -> Result<Option<usize>, WireError> {
        let mut blocks = self.reply.blocks().iter().enumerate();
        if let Some((at, block)) = blocks.find(|(_, block)| block.state.index == index) {
            return Ok(block.content.is_like(&content).then_some(at));
        }
        let state = ConverseBlock {
            index,
            ..ConverseBlock::default()
        };
        self.reply.open(content, state).map(Some)
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
    use crate::decoder::StreamDecoder;

    fn read(reason: &str, calls: &[&str]) -> plimsoll_context::Reply {
        let mut state = ConverseStreamState::new("m", &Maker::Other);
        for (index, id) in calls.iter().enumerate() {
            let start = json!({"toolUse": {"toolUseId": id, "name": "f"}});
            let start = json!({"contentBlockIndex": index, "start": start});
            let deltas = state.push(&json!({"contentBlockStart": start}).to_string());
            assert_eq!(deltas.unwrap().len(), 1);
        }
        let stop = json!({"messageStop": {"stopReason": reason}});
        state.push(&stop.to_string()).unwrap();
        state.finish().unwrap()
    }

    /// As on the other protocols.
    #[test]
    fn calls_without_arguments_are_whole_only_if_the_reply_is() {
        let calls = |reply: &plimsoll_context::Reply| -> Vec<(String, String)> {
            let calls = reply.parts.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some((call.id.0.clone(), call.arguments.clone())),
                _ => None,
            });
            calls.collect()
        };
        let whole = read("tool_use", &["x", "x"]);
        let row = |id: &str, arguments: &str| (id.to_owned(), arguments.to_owned());
        assert_eq!(calls(&whole), [row("x", "{}"), row("x_", "{}")]);
        let cut = read("max_tokens", &["x"]);
        assert_eq!(calls(&cut), [row("x", "")]);
        assert_eq!(cut.stop, StopReason::Length);
        assert_eq!(read("tool_use", &[]).stop, StopReason::Stop);
    }

    proptest::proptest! {
        #[test]
        fn no_event_is_a_panic(text in ".{0,200}", name in "[a-zA-Z]{1,16}", index in 0u64..) {
            let mut state = ConverseStreamState::new("m", &Maker::Other);
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
