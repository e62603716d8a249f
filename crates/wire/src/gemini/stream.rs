//! [`GeminiStreamState`]: the events of `streamGenerateContent`, and the bodies of `generateContent`. A
//! thought signature is stored in the call that it came with. Those of texts are not kept: the API does not
//! require them.

use plimsoll_context::{File, Image, Part, Source, StopReason, Tokens, ToolCall, Usage};
use serde_json::Value;

use super::ORIGIN;
use super::write::{kept_by_call, own_id};
use crate::decoder::{self, ReplyEvents};
use crate::error::WireError;
use crate::open_reply::OpenContent;
use crate::raw::{self, parse};
use crate::value::text;

/// The finish reasons for calls that are not readable. A retry may help.
const MALFORMED: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
];
/// The finish reasons for replies that the provider's filters cut.
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
pub type GeminiStreamState = decoder::StreamState<GeminiEvents, ArrivedPart>;

/// The part of a block that arrived whole. `None` for texts, thoughts and calls.
type ArrivedPart = Option<Part>;

/// The state of a reply besides its parts.
#[derive(Debug, Clone)]
pub struct GeminiEvents {
    /// The number of calls in the transcript and in this reply.
    calls: usize,
}

impl GeminiStreamState {
    /// Creates the state of a reply to a transcript with this many calls. Calls without an id are
    /// numbered from there.
    #[must_use]
    pub fn new(calls: usize) -> Self {
        Self::of(GeminiEvents { calls })
    }
}

impl ReplyEvents for GeminiStreamState {
    fn event(&mut self, data: &str) -> Result<(), WireError> {
        self.take(&parse(data)?)
    }

    fn whole(&mut self, body: &str) -> Result<(), WireError> {
        // A server that ignores `alt=sse` sends the events as a list.
        match &parse(body)? {
            Value::Array(events) => events.iter().try_for_each(|event| self.take(event)),
            event => self.take(event),
        }
    }

    fn parts(&self, stop: StopReason) -> Vec<Part> {
        let blocks = self.reply.blocks().iter();
        let parts = blocks.filter_map(|block| block.state.clone().or_else(|| block.part(stop)));
        parts.collect()
    }
}

impl GeminiStreamState {
    fn take(&mut self, event: &Value) -> Result<(), WireError> {
        if event.get("error").is_some() {
            let body = event.to_string();
            return Err(WireError::Provider { body });
        }
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if let Some(model) = text("/modelVersion") {
            self.reply.model = Some(model.to_owned());
        }
        self.reply.used(event.get("usageMetadata").and_then(usage));
        let parts = event.pointer("/candidates/0/content/parts");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            self.part(part)?;
        }
        let reply = &mut self.reply;
        match text("/candidates/0/finishReason") {
            Some(reason) if MALFORMED.contains(&reason) => {
                reply.stopped_unreadable("candidates[0]", reason);
            }
            Some("STOP") => reply.stopped(StopReason::Stop),
            Some("MAX_TOKENS") => reply.stopped(StopReason::Length),
            Some(reason) if FILTERED.contains(&reason) => reply.stopped(StopReason::ContentFilter),
            Some(_) => reply.stopped(StopReason::Other),
            // The API refused to answer the request.
            None if text("/promptFeedback/blockReason").is_some() && !reply.has_stopped() => {
                reply.stopped(StopReason::ContentFilter);
            }
            None => {}
        }
        Ok(())
    }

    fn part(&mut self, part: &Value) -> Result<(), WireError> {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(call) = part.get("functionCall") {
            return self.call(call, text(part, "thoughtSignature"));
        }
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            let content = if is_thought {
                OpenContent::thinking()
            } else {
                OpenContent::text()
            };
            // Text continues the last block if that is of its kind.
            let blocks = self.reply.blocks();
            let last = blocks.last();
            let last = last.filter(|last| last.content.is_like(&content));
            let last = last.map(|_| blocks.len() - 1);
            return self.reply.write_or_open(last, content, text);
        }
        let json = part.to_string();
        self.reply.charge(json.len())?;
        let whole = part.get("inlineData").and_then(media);
        let whole = whole.unwrap_or_else(|| Part::Opaque(raw::opaque(ORIGIN, json)));
        self.reply.open(OpenContent::opaque(), Some(whole))?;
        Ok(())
    }

    fn call(&mut self, call: &Value, signature: &str) -> Result<(), WireError> {
        let name = text(call, "name");
        let id = match text(call, "id") {
            "" => own_id(name, self.events.calls),
            id => id.to_owned(),
        };
        self.events.calls = self.events.calls.saturating_add(1);
        let arguments = call.get("args").filter(|args| !args.is_null());
        let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
        let reply = &mut self.reply;
        reply.charge(name.len() + signature.len())?;
        let content = OpenContent::from(ToolCall {
            id: reply.call_id(&id, ""),
            name: name.to_owned(),
            arguments: String::new(),
            opaque: (!signature.is_empty()).then(|| kept_by_call(signature)),
        });
        let at = reply.open(content, None)?;
        reply.tell_call(at);
        reply.write(at, &arguments)
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
    Some(if is_image {
        Part::Image(Image {
            source,
            size: None,
            detail: None,
        })
    } else {
        Part::File(File { name: None, source })
    })
}

/// Returns the usage. The prompt includes cached tokens; the candidates do not include thoughts.
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
