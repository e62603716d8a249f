//! [`ChatStreamState`]: the chunks of a streamed reply, and whole responses. Deviations of other servers are
//! repaired; the model's output is not changed.

use plimsoll_context::{Part, Reply, StopReason};
use serde_json::Value;

use super::details::{self, DETAILS};
use super::parts::{CUSTOM, ORIGIN};
use super::pieces::{self, CallPiece, CallState, Keys, Response, count, object, objects, text};
use super::usage::usage;
use crate::decoder::{self, ReplyEvents, StreamDecoder};
use crate::error::WireError;
use crate::open_reply::OpenContent;
use crate::raw::{self, parse};

/// A reply while it arrives.
pub type ChatStreamState = decoder::StreamState<ChatEvents, CallState>;

/// The state of a reply besides the model's output.
#[derive(Debug, Clone, Default)]
pub struct ChatEvents {
    response: String,
    details: Vec<Value>,
}

/// Reads a whole response.
///
/// # Errors
///
/// [`WireError::Provider`] if it is an error, whatever its status was, and
/// [`WireError::NotJson`], [`WireError::Expected`], [`WireError::TooLarge`] or
/// [`WireError::TooManyParts`].
pub fn read_reply(body: &str) -> Result<Reply, WireError> {
    ChatStreamState::new().read_whole(body)
}

impl ReplyEvents for ChatStreamState {
    const DONE_ENDS: bool = true;

    fn event(&mut self, data: &str) -> Result<(), WireError> {
        let chunk: Response = parse(data)?;
        refuse_error(&chunk.keys, data)?;
        self.take(&chunk.keys, false)
    }

    fn whole(&mut self, body: &str) -> Result<(), WireError> {
        let Response { keys } = parse(body)?;
        refuse_error(&keys, body)?;
        if objects(&keys, "choices").is_empty() {
            return Err(WireError::expected("choices", "a list of one", None));
        }
        self.take(&keys, true)?;
        self.reply.end();
        Ok(())
    }

    /// Returns thinking, then text, then calls: the order in which the protocol can send them back.
    fn parts(&self, stop: StopReason) -> Vec<Part> {
        let blocks = self.reply.blocks().iter();
        let mut parts: Vec<Part> = blocks.filter_map(|block| block.part(stop)).collect();
        parts.sort_by_key(|part| match part {
            Part::Thinking(_) => 0,
            Part::Text { .. } => 1,
            _ => 2,
        });
        let thoughts = parts.partition_point(|part| matches!(part, Part::Thinking(_)));
        // Details without an answer or a call are useless.
        if parts.len() > thoughts && !self.events.details.is_empty() {
            let details = Value::Array(self.events.details.clone());
            parts.insert(thoughts, details::part(DETAILS, details));
        }
        parts
    }
}

impl ChatStreamState {
    /// Takes a chunk, or a whole response.
    fn take(&mut self, chunk: &Keys, is_whole: bool) -> Result<(), WireError> {
        if self.events.response.is_empty() {
            self.events.response = text(chunk, "id").unwrap_or_default();
        }
        if self.reply.model.is_none() {
            self.reply.model = text(chunk, "model").filter(|model| !model.is_empty());
        }
        let mut choices = objects(chunk, "choices").into_iter();
        let first = choices.find(|choice| count(choice.get("index")).is_none_or(|at| at == 0));
        if let Some(choice) = first {
            if let Some(message) = message_of(choice) {
                self.message(message, calls(choice, is_whole))?;
            }
            let reason = text(choice, "finish_reason").unwrap_or_default();
            if !reason.is_empty() {
                self.reply.stopped(stop_reason(&reason));
            }
        }
        let groq = object(chunk, "x_groq").and_then(|groq| groq.get("usage"));
        let inner = first.and_then(|choice| choice.get("usage"));
        let reported = [chunk.get("usage"), groq, inner].into_iter().flatten();
        // Servers that report usage in every chunk report the total so far.
        let reported = reported.filter_map(Value::as_object).next();
        self.reply
            .used(reported.and_then(|reported| usage(reported, &[])));
        Ok(())
    }

    fn message(&mut self, message: &Keys, calls: Vec<CallPiece>) -> Result<(), WireError> {
        // If one chunk has both keys, they contain the same text.
        let mut reasoning = ["reasoning_content", "reasoning"].iter();
        let reasoning = reasoning.find_map(|key| {
            let text = message.get(*key)?.as_str();
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        });
        let more = match message.get(DETAILS) {
            Some(Value::Array(more)) => more.clone(),
            _ => Vec::new(),
        };
        let reasoning = reasoning.unwrap_or_else(|| details::readable(&more));
        self.write(OpenContent::thinking(), &reasoning)?;
        for detail in &more {
            self.reply.charge(detail.to_string().len())?;
        }
        details::take(&mut self.events.details, more);
        match message.get("content") {
            Some(Value::String(text)) => self.write(OpenContent::text(), text)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.content_part(part)?;
                }
            }
            _ => {}
        }
        let refusal = text(message, "refusal").unwrap_or_default();
        self.write(OpenContent::text(), &refusal)?;
        calls.into_iter().try_for_each(|piece| self.call(piece))
    }

    /// Reads a part of a list, as Mistral's reasoning models write it: `text` or `thinking`.
    fn content_part(&mut self, part: &Value) -> Result<(), WireError> {
        if part.get("type").is_none_or(|kind| kind != "thinking") {
            return self.write(OpenContent::text(), text_in(part).unwrap_or_default());
        }
        let text = match part.get("thinking") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(inner)) => inner.iter().filter_map(text_in).collect(),
            _ => String::new(),
        };
        self.write(OpenContent::thinking(), &text)
    }

    /// Appends to the one block of this kind.
    fn write(&mut self, content: OpenContent, more: &str) -> Result<(), WireError> {
        let mut blocks = self.reply.blocks().iter();
        let at = blocks.position(|block| block.content.is_like(&content));
        self.reply.write_or_open(at, content, more)
    }

    fn call(&mut self, piece: CallPiece) -> Result<(), WireError> {
        let reply = &mut self.reply;
        reply.charge(piece.name.len() + piece.arguments.len())?;
        let at = match pieces::find(reply.blocks(), &piece) {
            Some(at) => at,
            None => {
                let given = piece.id.as_deref().unwrap_or_default();
                let content = OpenContent::call(reply.call_id(given, &self.events.response), "");
                let state = CallState {
                    index: piece.index,
                    server_id: piece.id,
                };
                reply.open(content, state)?
            }
        };
        let block = reply.block_mut(at).map(|block| &mut block.content);
        let Some(OpenContent::Call(open)) = block else {
            return Ok(());
        };
        let call = &mut open.call;
        if call.opaque.is_none() && !piece.extra.is_empty() {
            let extra = Value::Object(piece.extra);
            open.is_text = extra.get("type").is_some_and(|kind| kind == CUSTOM);
            call.opaque = Some(raw::opaque(ORIGIN, extra.to_string()));
        }
        if call.name.is_empty() {
            call.name = piece.name;
        }
        // Some servers send an empty object before the arguments.
        if call.arguments == "{}" && piece.arguments.starts_with('{') {
            call.arguments.clear();
        }
        if !call.name.is_empty() {
            reply.tell_call(at);
        }
        reply.push(at, &piece.arguments);
        Ok(())
    }
}

/// Returns the piece of a message in a chunk, or the message of a whole response.
fn message_of(choice: &Keys) -> Option<&Keys> {
    object(choice, "delta").or_else(|| object(choice, "message"))
}

/// Returns the calls in a choice. In a whole message, each call is a separate one, with or without an
/// index.
fn calls(choice: &Keys, is_whole: bool) -> Vec<CallPiece> {
    let is_whole = is_whole && object(choice, "delta").is_none();
    let calls = message_of(choice).map(|message| objects(message, "tool_calls"));
    let calls = calls.unwrap_or_default().into_iter().map(CallPiece::of);
    let numbered = (0..).zip(calls).map(|(number, call)| CallPiece {
        index: if is_whole { Some(number) } else { call.index },
        ..call
    });
    numbered.collect()
}

fn text_in(part: &Value) -> Option<&str> {
    part.get("text").and_then(Value::as_str)
}

/// Returns an error if the response contains one. Some servers report errors with status 200, or in the
/// middle of a stream.
fn refuse_error(response: &Keys, body: &str) -> Result<(), WireError> {
    let choices = objects(response, "choices");
    let is_reply = !choices.is_empty()
        || object(response, "usage").is_some()
        || text(response, "id").is_some();
    let is_bare = !is_reply
        && ["message", "detail"]
            .iter()
            .any(|key| response.contains_key(*key));
    // MiniMax reports errors like this, with status 200.
    let code = object(response, "base_resp").and_then(|base| base.get("status_code")?.as_i64());
    let is_refused = code.is_some_and(|code| code != 0);
    let mut all = choices.into_iter().chain([response]);
    if is_bare || is_refused || all.any(|keys| keys.get("error").is_some_and(is_told)) {
        return Err(WireError::Provider { body: body.into() });
    }
    Ok(())
}

/// Checks whether the value of an error says anything.
fn is_told(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        _ => true,
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" | "eos" | "end_turn" => StopReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::Window,
        "content_filter" | "sensitive" => StopReason::ContentFilter,
        _ => StopReason::Other,
    }
}
