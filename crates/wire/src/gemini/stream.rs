//! [`GeminiEvents`]: the events of `streamGenerateContent`, and the bodies of `generateContent`. A
//! thought signature is stored in the call that it came with. Those of texts are not kept: the API does not
//! require them.

use plimsoll_context::{File, Image, Opaque, Part, Source, StopReason, Tokens, Usage};
use serde_json::Value;

use super::ORIGIN;
use super::write::{kept_by_call, own_id};
use crate::decoder::{self, ReplyEvents};
use crate::error::WireError;
use crate::open_reply::{OpenContent, OpenReply};
use crate::raw::parse;

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

/// Reads the events of a reply.
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

impl ReplyEvents<ArrivedPart> for GeminiEvents {
    fn event(&mut self, data: &str, reply: &mut OpenReply<ArrivedPart>) -> Result<(), WireError> {
        self.take(&parse(data)?, reply)
    }

    fn whole(&mut self, body: &str, reply: &mut OpenReply<ArrivedPart>) -> Result<(), WireError> {
        // A server that ignores `alt=sse` sends the events as a list.
        match &parse(body)? {
            Value::Array(events) => events.iter().try_for_each(|event| self.take(event, reply)),
            event => self.take(event, reply),
        }
    }

    fn parts(&self, reply: &OpenReply<ArrivedPart>, stop: StopReason) -> Vec<Part> {
        let blocks = reply.blocks().iter();
        let parts = blocks.filter_map(|block| block.state.clone().or_else(|| block.part(stop)));
        parts.collect()
    }
}

impl GeminiEvents {
    fn take(&mut self, event: &Value, reply: &mut OpenReply<ArrivedPart>) -> Result<(), WireError> {
        if event.get("error").is_some() {
            let body = event.to_string();
            return Err(WireError::Provider { body });
        }
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if let Some(model) = text("/modelVersion") {
            reply.model = Some(model.to_owned());
        }
        reply.used(event.get("usageMetadata").and_then(usage));
        let parts = event.pointer("/candidates/0/content/parts");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            self.part(part, reply)?;
        }
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

    fn part(&mut self, part: &Value, reply: &mut OpenReply<ArrivedPart>) -> Result<(), WireError> {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(call) = part.get("functionCall") {
            let signature = text("thoughtSignature").filter(|signature| !signature.is_empty());
            self.call(call, signature, reply)
        } else if let Some(text) = text("text") {
            let content = if is_thought {
                OpenContent::thinking()
            } else {
                OpenContent::text()
            };
            add_text(content, text, reply)
        } else if let Some(media) = part.get("inlineData").and_then(media) {
            add(media, part.to_string().len(), reply)
        } else {
            let (origin, data) = (ORIGIN.into(), part.to_string());
            let length = data.len();
            add(Part::Opaque(Opaque { origin, data }), length, reply)
        }
    }

    fn call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        reply: &mut OpenReply<ArrivedPart>,
    ) -> Result<(), WireError> {
        let text = |key: &str| call.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        let id = text("id").filter(|id| !id.is_empty()).map(str::to_owned);
        let id = id.unwrap_or_else(|| own_id(name, self.calls));
        self.calls = self.calls.saturating_add(1);
        let arguments = call.get("args").filter(|args| !args.is_null());
        let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
        reply.charge(name.len() + signature.map_or(0, str::len))?;
        let content = OpenContent::call(reply.call_id(&id, ""), name);
        let at = reply.open(content, None)?;
        if let Some(OpenContent::Call(open)) = reply.block_mut(at).map(|block| &mut block.content) {
            open.call.opaque = signature.map(kept_by_call);
        }
        reply.tell_call(at);
        reply.write(at, &arguments)
    }
}

/// Adds text to the last block if it is of this kind, or to a new one.
fn add_text(
    content: OpenContent,
    text: &str,
    reply: &mut OpenReply<ArrivedPart>,
) -> Result<(), WireError> {
    if text.is_empty() {
        return Ok(());
    }
    let last = reply.blocks().len().checked_sub(1);
    let last = last.filter(|last| {
        let block = reply.blocks().get(*last);
        block.is_some_and(|block| block.content.is_like(&content))
    });
    let at = match last {
        Some(at) => at,
        None => reply.open(content, None)?,
    };
    reply.write(at, text)
}

/// Adds a part that arrived whole.
fn add(part: Part, bytes: usize, reply: &mut OpenReply<ArrivedPart>) -> Result<(), WireError> {
    reply.charge(bytes)?;
    reply.open(OpenContent::opaque(), Some(part))?;
    Ok(())
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
