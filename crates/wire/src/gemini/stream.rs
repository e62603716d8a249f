//! [`StreamState`]: the events of `streamGenerateContent` as a reply. A thought signature keeps the part
//! that it came with.

use plimsoll_context::{
    Bytes, CallId, Delta, File, Image, Opaque, Part, Reply, Source, StopReason, Thinking, Tokens,
    ToolCall, Usage,
};
use serde_json::Value;

use super::ORIGIN;
use super::signed::{TextSignature, kept_by_call};
use super::write::own_id;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::openai_chat::{MAX_PARTS, MAX_REPLY};
use crate::raw::parse;

/// The ends of a reply in which the model wrote no readable call. A retry may help.
const MALFORMED: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
];
/// The ends of a reply that the provider's filters cut.
const FILTERED: [&str; 8] = [
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
];

/// A reply while it arrives.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    parts: Vec<Part>,
    /// Signatures of the text that is being written.
    signatures: Vec<TextSignature>,
    /// Why the reply ended.
    finish: Option<String>,
    /// Why the request was not answered at all.
    blocked: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    /// The calls of the transcript and of this reply.
    calls: usize,
    bytes: usize,
}

impl StreamDecoder for StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let data = data.trim();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let event = parse(data)?;
        self.take(&event)
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }

    fn partial(&self) -> Reply {
        self.reply(StopReason::Other)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(&self) -> Result<Reply, WireError> {
        let called = { self.parts.iter() }.any(|part| matches!(part, Part::ToolCall(_)));
        let stop = match (self.finish.as_deref(), &self.blocked) {
            (Some(reason), _) if MALFORMED.contains(&reason) && !called => {
                return Err(WireError::Expected {
                    place: "candidates[0]".into(),
                    expected: "a tool call that can be read".into(),
                    got: reason.to_owned(),
                });
            }
            (Some("STOP"), _) if called => StopReason::ToolCalls,
            (Some("STOP"), _) => StopReason::Stop,
            (Some("MAX_TOKENS"), _) => StopReason::Length,
            (Some(reason), _) if FILTERED.contains(&reason) => StopReason::ContentFilter,
            (None, Some(_)) => StopReason::ContentFilter,
            (Some(_), _) => StopReason::Other,
            (None, None) => {
                let partial = Box::new(self.partial());
                return Err(WireError::Cut { partial });
            }
        };
        Ok(self.reply(stop))
    }

    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError> {
        let body: Value = parse(body)?;
        // A server that ignores `alt=sse` sends the events as a list.
        match &body {
            Value::Array(events) => {
                for event in events {
                    self.take(event)?;
                }
            }
            event => {
                self.take(event)?;
            }
        }
        self.finish()
    }
}

impl StreamState {
    /// Creates the state of a reply to a transcript with this many calls. Calls without an id are
    /// counted from there.
    #[must_use]
    pub fn new(calls: usize) -> Self {
        Self {
            calls,
            ..Self::default()
        }
    }

    fn reply(&self, stop: StopReason) -> Reply {
        let mut ended = self.clone();
        ended.end_text();
        Reply {
            parts: ended.parts,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        }
    }

    fn take(&mut self, event: &Value) -> Result<Vec<Delta>, WireError> {
        if event.get("error").is_some() {
            let body = event.to_string();
            return Err(WireError::Provider { body });
        }
        let text = |path: &str| event.pointer(path)?.as_str().map(str::to_owned);
        self.model = text("/modelVersion").or(self.model.take());
        self.usage = { event.get("usageMetadata") }
            .and_then(usage)
            .or(self.usage);
        self.blocked = text("/promptFeedback/blockReason").or(self.blocked.take());
        let mut deltas = Vec::new();
        let parts = event.pointer("/candidates/0/content/parts");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            self.part(part, &mut deltas)?;
        }
        self.finish = text("/candidates/0/finishReason").or(self.finish.take());
        Ok(deltas)
    }

    fn part(&mut self, part: &Value, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let signature = text("thoughtSignature").filter(|signature| !signature.is_empty());
        let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(call) = part.get("functionCall") {
            self.end_text();
            self.call(call, signature, deltas)?;
        } else if let (true, Some(text)) = (thought, text("text")) {
            self.end_text();
            self.think(text, deltas)?;
        } else if let Some(media) = part.get("inlineData").and_then(media) {
            self.end_text();
            self.add(media, part.to_string().len())?;
        } else if signature.is_some() || text("text").is_some() {
            self.say(text("text").unwrap_or_default(), signature, deltas)?;
        } else {
            self.end_text();
            let data = part.to_string();
            let length = data.len();
            let origin = ORIGIN.into();
            self.add(Part::Opaque(Opaque { origin, data }), length)?;
        }
        Ok(())
    }

    fn say(
        &mut self,
        text: &str,
        signature: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let from = match self.parts.last_mut() {
            Some(Part::Text { text: said }) => {
                let from = said.len();
                said.push_str(text);
                self.charge(text.len())?;
                from
            }
            _ if text.is_empty() && signature.is_none() => return Ok(()),
            _ => {
                self.add(Part::text(text), text.len())?;
                0
            }
        };
        if let Some(signature) = signature {
            self.charge(signature.len())?;
            self.signatures.push(TextSignature {
                signature: signature.to_owned(),
                from,
                to: from + text.len(),
            });
        }
        if !text.is_empty() {
            deltas.push(Delta::Text { text: text.into() });
        }
        Ok(())
    }

    /// Ends a text: its signatures follow it.
    fn end_text(&mut self) {
        if let Some(Part::Text { text }) = self.parts.last()
            && text.is_empty()
        {
            self.parts.pop();
        }
        let signatures = self.signatures.drain(..);
        self.parts.extend(signatures.map(TextSignature::into_part));
    }

    fn think(&mut self, text: &str, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if text.is_empty() {
            return Ok(());
        }
        match self.parts.last_mut() {
            Some(Part::Thinking(Thinking {
                text: thought,
                opaque: None,
            })) => {
                thought.push_str(text);
                self.charge(text.len())?;
            }
            _ => {
                let thinking = Thinking {
                    text: text.to_owned(),
                    opaque: None,
                };
                self.add(Part::Thinking(thinking), text.len())?;
            }
        }
        deltas.push(Delta::Thinking { text: text.into() });
        Ok(())
    }

    fn call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), WireError> {
        let text = |key: &str| call.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default().to_owned();
        let id = text("id").filter(|id| !id.is_empty()).map(str::to_owned);
        let id = CallId(id.unwrap_or_else(|| own_id(&name, self.calls)));
        self.calls = self.calls.saturating_add(1);
        let arguments = call.get("args").filter(|args| !args.is_null());
        let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
        deltas.push(Delta::CallStarted {
            call: id.clone(),
            name: name.clone(),
        });
        deltas.push(Delta::CallArguments {
            call: id.clone(),
            text: arguments.clone(),
        });
        let length = name.len() + arguments.len() + signature.map_or(0, str::len);
        let call = ToolCall {
            id,
            name,
            arguments,
            opaque: signature.map(kept_by_call),
        };
        self.add(Part::ToolCall(call), length)
    }

    fn add(&mut self, part: Part, bytes: usize) -> Result<(), WireError> {
        if self.parts.len() >= MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        self.charge(bytes)?;
        self.parts.push(part);
        Ok(())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        match Bytes(self.bytes as u64) > MAX_REPLY {
            true => Err(WireError::TooLarge { limit: MAX_REPLY }),
            false => Ok(()),
        }
    }
}

fn media(data: &Value) -> Option<Part> {
    let text = |key: &str| data.get(key)?.as_str().map(str::to_owned);
    let media_type = text("mimeType")?;
    let is_image = media_type.starts_with("image/");
    let source = Source::Data {
        media_type,
        base64: text("data")?,
    };
    Some(match is_image {
        true => Part::Image(Image {
            source,
            size: None,
            detail: None,
        }),
        false => Part::File(File { name: None, source }),
    })
}

/// Returns the usage. Cached tokens are a part of the prompt; thoughts are no part of the candidates.
fn usage(usage: &Value) -> Option<Usage> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let tool = count("toolUsePromptTokenCount").unwrap_or_default();
    let prompt = count("promptTokenCount")?.saturating_add(tool);
    let read = count("cachedContentTokenCount").unwrap_or_default();
    let reasoning = count("thoughtsTokenCount").unwrap_or_default();
    let written = count("candidatesTokenCount").unwrap_or_default();
    Some(Usage {
        input: Tokens(prompt.saturating_sub(read)),
        output: Tokens(written.saturating_add(reasoning)),
        reasoning: Tokens(reasoning),
        cache_read: Tokens(read.min(prompt)),
        cache_write: Tokens::ZERO,
        ..Usage::default()
    })
}

#[cfg(test)]
mod tests;
