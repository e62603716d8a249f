//! [`Converse`]: the events of Bedrock's ConverseStream into a reply. A reasoning block keeps what
//! signs it, and the model that it came from. Not the framing; the library takes that off.

use std::collections::BTreeMap;

use plimsoll_context::{
    CallId, Delta, Opaque, Part, Reply, StopReason, Thinking, Tokens, ToolCall, Usage,
};
use plimsoll_wire::WireError;
use serde_json::{Value, json};

use super::api::Maker;
use super::names::ORIGIN_BEDROCK;
use super::ollama::{self, count};

/// A reply of Converse while it arrives.
#[derive(Debug)]
pub(super) struct Converse {
    /// By the index of the API, which is that of the content.
    blocks: BTreeMap<u64, Block>,
    stop: Option<String>,
    pub(super) usage: Option<Usage>,
    model: String,
    /// Whether this maker's input counts hold what was read from and written to a cache.
    counts: Counts,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Call(ToolCall),
    Reasoning(Reasoning),
}

#[derive(Debug, Default)]
struct Reasoning {
    text: String,
    signature: String,
    redacted: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// As the API's documentation has it.
    Fresh,
    /// Seen of OpenAI's models, in streams: everything.
    All,
}

impl Converse {
    pub(super) fn new(maker: &Maker, model: &str) -> Self {
        Self {
            blocks: BTreeMap::new(),
            stop: None,
            usage: None,
            model: model.to_owned(),
            counts: match maker {
                Maker::OpenAi => Counts::All,
                Maker::Anthropic(_) | Maker::Amazon | Maker::Another => Counts::Fresh,
            },
        }
    }

    pub(super) fn push(
        &mut self,
        event: Option<&str>,
        data: &str,
    ) -> Result<Vec<Delta>, WireError> {
        let event = event.unwrap_or_default();
        let payload = match data.is_empty() {
            true => Value::Null,
            false => ollama::json(data)?,
        };
        let mut deltas = Vec::new();
        match event {
            "contentBlockStart" => self.start(&payload, &mut deltas),
            "contentBlockDelta" => self.delta(&payload, &mut deltas),
            "messageStop" => {
                let reason = payload.get("stopReason").and_then(Value::as_str);
                self.stop = Some(reason.unwrap_or_default().to_owned());
            }
            "metadata" => {
                let usage = payload.get("usage");
                self.usage = usage.and_then(|usage| usage_of(usage, self.counts));
            }
            // An exception has a name of another kind, which the library keeps to itself.
            "" if payload.is_object() => return Err(WireError::Provider { body: data.into() }),
            _ => {}
        }
        Ok(deltas)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) fn finish(self) -> Result<Reply, WireError> {
        let mut blocks = self.blocks.values();
        let called = blocks.any(|block| matches!(block, Block::Call(_)));
        let (stop, whole) = match self.stop.as_deref() {
            None => (StopReason::Other, false),
            Some(reason @ ("malformed_tool_use" | "malformed_model_output")) if !called => {
                return Err(WireError::Expected {
                    place: "messageStop".into(),
                    expected: "a tool call that can be read".into(),
                    got: reason.to_owned(),
                });
            }
            Some("tool_use") => (StopReason::ToolCalls, true),
            Some("end_turn" | "stop_sequence") if called => (StopReason::ToolCalls, true),
            Some("end_turn" | "stop_sequence") => (StopReason::Stop, true),
            Some("max_tokens") => (StopReason::Length, true),
            Some("model_context_window_exceeded") => (StopReason::Window, true),
            Some("guardrail_intervened" | "content_filtered") => (StopReason::ContentFilter, true),
            Some(_) => (StopReason::Other, true),
        };
        let model = self.model;
        let parts = self.blocks.into_values();
        let parts = parts.filter_map(|block| block.part(&model)).collect();
        let reply = Reply {
            parts,
            stop,
            usage: self.usage,
            model: None,
        };
        match whole {
            true => Ok(reply),
            false => Err(WireError::Cut {
                partial: Box::new(reply),
            }),
        }
    }

    fn start(&mut self, payload: &Value, deltas: &mut Vec<Delta>) {
        let Some(call) = payload.pointer("/start/toolUse") else {
            return;
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
        self.blocks.insert(index(payload), Block::Call(call));
    }

    fn delta(&mut self, payload: &Value, deltas: &mut Vec<Delta>) {
        let text = |path: &str| payload.pointer(path).and_then(Value::as_str);
        let index = index(payload);
        if let Some(text) = text("/delta/text") {
            let block = self.blocks.entry(index);
            if let Block::Text(said) = block.or_insert_with(|| Block::Text(String::new())) {
                said.push_str(text);
            }
            deltas.push(Delta::Text { text: text.into() });
        } else if let Some(text) = text("/delta/toolUse/input") {
            if let Some(Block::Call(call)) = self.blocks.get_mut(&index) {
                call.arguments.push_str(text);
                deltas.push(Delta::CallArguments {
                    call: call.id.clone(),
                    text: text.into(),
                });
            }
        } else if payload.pointer("/delta/reasoningContent").is_some() {
            let block = self.blocks.entry(index);
            let block = block.or_insert_with(|| Block::Reasoning(Reasoning::default()));
            let Block::Reasoning(reasoning) = block else {
                return;
            };
            if let Some(text) = text("/delta/reasoningContent/text") {
                reasoning.text.push_str(text);
                deltas.push(Delta::Thinking { text: text.into() });
            }
            let signature = text("/delta/reasoningContent/signature");
            reasoning.signature.push_str(signature.unwrap_or_default());
            let redacted = text("/delta/reasoningContent/redactedContent");
            reasoning.redacted.push_str(redacted.unwrap_or_default());
        }
    }
}

impl Block {
    fn part(self, model: &str) -> Option<Part> {
        match self {
            Self::Text(text) => (!text.is_empty()).then(|| Part::text(text)),
            Self::Call(mut call) => {
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
    fn part(self, model: &str) -> Option<Part> {
        let Self {
            text,
            signature,
            redacted,
        } = self;
        let data = if !redacted.is_empty() {
            Some(json!({"model": model, "redactedContent": redacted}))
        } else if !signature.is_empty() {
            Some(json!({"model": model, "signature": signature}))
        } else if text.is_empty() {
            return None;
        } else {
            None
        };
        Some(Part::Thinking(Thinking {
            text,
            opaque: data.map(|data| Opaque {
                origin: ORIGIN_BEDROCK.into(),
                data: data.to_string(),
            }),
        }))
    }
}

fn index(payload: &Value) -> u64 {
    count(payload, "contentBlockIndex").unwrap_or_default()
}

fn usage_of(usage: &Value, counts: Counts) -> Option<Usage> {
    let input = count(usage, "inputTokens")?;
    let read = count(usage, "cacheReadInputTokens").unwrap_or_default();
    let write = count(usage, "cacheWriteInputTokens").unwrap_or_default();
    let cached = read.saturating_add(write);
    let fresh = match counts {
        Counts::All if input >= cached => input - cached,
        Counts::All | Counts::Fresh => input,
    };
    Some(Usage {
        input: Tokens(fresh),
        output: Tokens(count(usage, "outputTokens").unwrap_or_default()),
        reasoning: Tokens::ZERO,
        cache_read: Tokens(read),
        cache_write: Tokens(write),
        ..Usage::default()
    })
}
