//! [`Gemini`]: the frames of `streamGenerateContent` into a reply. A thought signature keeps the
//! part that it came with (`signed.rs`). Not the requests; the library writes those.

use plimsoll_context::{
    CallId, Delta, File, Image, Opaque, Part, Reply, Source, StopReason, Thinking, Tokens,
    ToolCall, Usage,
};
use plimsoll_wire::WireError;
use serde_json::Value;

use super::names::ORIGIN_GEMINI;
use super::ollama::{count, json};
use super::signed::{Mark, call_mark};

/// Ends that say that the model wrote no call that could be read; asking again may help.
const MALFORMED: [&str; 5] = [
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
];

/// A reply of Gemini while it arrives.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    parts: Vec<Part>,
    /// Signatures of the text that is being written.
    marks: Vec<Mark>,
    /// Why it ended.
    finish: Option<String>,
    /// Why the request was not answered at all.
    blocked: Option<String>,
    pub(super) usage: Option<Usage>,
    model: Option<String>,
    /// Calls of the history and of this reply.
    calls: usize,
}

impl Gemini {
    pub(super) fn new(calls: usize) -> Self {
        Self {
            calls,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let frame = json(data)?;
        if frame.get("error").is_some() {
            return Err(WireError::Provider { body: data.into() });
        }
        if let Some(model) = frame.get("modelVersion").and_then(Value::as_str) {
            self.model = Some(model.to_owned());
        }
        if let Some(usage) = frame.get("usageMetadata").and_then(usage) {
            self.usage = Some(usage);
        }
        let blocked = frame.pointer("/promptFeedback/blockReason");
        if let Some(blocked) = blocked.and_then(Value::as_str) {
            self.blocked = Some(blocked.to_owned());
        }
        let mut deltas = Vec::new();
        let parts = frame.pointer("/candidates/0/content/parts");
        for part in parts.and_then(Value::as_array).into_iter().flatten() {
            self.part(part, &mut deltas);
        }
        let finish = frame.pointer("/candidates/0/finishReason");
        if let Some(finish) = finish.and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(deltas)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }

    pub(super) fn finish(mut self) -> Result<Reply, WireError> {
        self.end_text();
        let called = self.called();
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
            (
                Some(
                    "SAFETY"
                    | "RECITATION"
                    | "BLOCKLIST"
                    | "PROHIBITED_CONTENT"
                    | "SPII"
                    | "IMAGE_SAFETY"
                    | "IMAGE_PROHIBITED_CONTENT"
                    | "IMAGE_RECITATION",
                ),
                _,
            )
            | (None, Some(_)) => StopReason::ContentFilter,
            (Some(_), _) => StopReason::Other,
            (None, None) => {
                let partial = self.reply(StopReason::Other);
                return Err(WireError::Cut {
                    partial: Box::new(partial),
                });
            }
        };
        Ok(self.reply(stop))
    }

    fn reply(self, stop: StopReason) -> Reply {
        Reply {
            parts: self.parts,
            stop,
            usage: self.usage,
            model: self.model,
        }
    }

    fn called(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, Part::ToolCall(_)))
    }

    fn part(&mut self, part: &Value, deltas: &mut Vec<Delta>) {
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let signature = text("thoughtSignature").filter(|signature| !signature.is_empty());
        let thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(call) = part.get("functionCall") {
            self.end_text();
            self.call(call, signature, deltas);
        } else if let (true, Some(text)) = (thought, text("text")) {
            self.end_text();
            self.think(text, deltas);
        } else if let Some(data) = part.get("inlineData").and_then(media) {
            self.end_text();
            self.parts.push(data);
        } else if signature.is_some() || text("text").is_some() {
            self.say(text("text").unwrap_or_default(), signature, deltas);
        } else {
            self.end_text();
            self.parts.push(Part::Opaque(Opaque {
                origin: ORIGIN_GEMINI.into(),
                data: part.to_string(),
            }));
        }
    }

    fn say(&mut self, text: &str, signature: Option<&str>, deltas: &mut Vec<Delta>) {
        let from = match self.parts.last_mut() {
            Some(Part::Text { text: said }) => {
                let from = said.len();
                said.push_str(text);
                from
            }
            _ if text.is_empty() && signature.is_none() => return,
            _ => {
                self.parts.push(Part::text(text));
                0
            }
        };
        if let Some(signature) = signature {
            self.marks.push(Mark {
                signature: signature.to_owned(),
                from,
                to: from + text.len(),
            });
        }
        if !text.is_empty() {
            deltas.push(Delta::Text { text: text.into() });
        }
    }

    /// The text before this has ended: its signatures follow it.
    fn end_text(&mut self) {
        let marks = std::mem::take(&mut self.marks);
        if let Some(Part::Text { text }) = self.parts.last()
            && text.is_empty()
        {
            self.parts.pop();
        }
        let marks = marks.into_iter().map(|mark| Part::Thinking(mark.part()));
        self.parts.extend(marks);
    }

    fn think(&mut self, text: &str, deltas: &mut Vec<Delta>) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Thinking(Thinking {
                text: thought,
                opaque: None,
            })) => thought.push_str(text),
            _ => self.parts.push(Part::Thinking(Thinking {
                text: text.to_owned(),
                opaque: None,
            })),
        }
        deltas.push(Delta::Thinking { text: text.into() });
    }

    fn call(&mut self, call: &Value, signature: Option<&str>, deltas: &mut Vec<Delta>) {
        let text = |key: &str| call.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default().to_owned();
        let id = text("id").filter(|id| !id.is_empty()).map(str::to_owned);
        // The library knows ids of this form for made up, and does not send them back.
        let id = CallId(id.unwrap_or_else(|| format!("call#{name}#{}", self.calls)));
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
        self.parts.push(Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            opaque: signature.map(call_mark),
        }));
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

/// What was read from a cache is part of the prompt; thoughts are not part of the candidates.
fn usage(usage: &Value) -> Option<Usage> {
    let prompt = count(usage, "promptTokenCount")?;
    let tool = count(usage, "toolUsePromptTokenCount").unwrap_or_default();
    let prompt = prompt.saturating_add(tool);
    let read = count(usage, "cachedContentTokenCount").unwrap_or_default();
    let reasoning = count(usage, "thoughtsTokenCount").unwrap_or_default();
    let written = count(usage, "candidatesTokenCount").unwrap_or_default();
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
