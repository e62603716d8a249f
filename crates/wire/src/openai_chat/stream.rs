//! [`StreamState`]: the chunks of a streamed reply put together into one. Knows nothing of
//! server-sent events: it is given the text of each `data:` field. Repairs what servers do
//! differently, never what the model wrote.

use plimsoll_context::{
    Bytes, CallId, Delta, Opaque, Part, Reply, StopReason, Thinking, ToolCall, Usage,
};
use serde_json::{Map, Value};

use super::details::{self, DETAILS};
use super::parts::{CUSTOM, ORIGIN};
use super::pieces::{CallPieces, Found};
use super::response::{CallPiece, Choice, FunctionPiece, Response, Said};
use crate::call_ids::fnv1a;
use crate::decoder::StreamDecoder;
use crate::error::WireError;
use crate::raw::parse;

/// What one reply may hold: over ten times what the longest answers of today take, so that only
/// a server gone astray reaches it.
pub const MAX_REPLY: Bytes = Bytes(16 * 1024 * 1024);
/// How many tool calls, blocks or items one reply may hold.
pub const MAX_PARTS: usize = 1_024;
/// The text that ends a stream.
const DONE: &str = "[DONE]";

/// A reply while it arrives.
#[derive(Debug, Clone, Default)]
pub struct StreamState {
    response: String,
    model: Option<String>,
    text: String,
    thinking: String,
    calls: CallPieces,
    details: Vec<Value>,
    usage: Option<Usage>,
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
    let mut response: Response = parse(body)?;
    refuse_error(&response, body)?;
    if response.choices.is_empty() {
        return Err(WireError::expected("choices", "a list of one", None));
    }
    for choice in &mut response.choices {
        if let Some(message) = &mut choice.message {
            // Each call of a whole message stands for itself, whether or not it has an index.
            for (index, call) in message.tool_calls.iter_mut().enumerate() {
                call.index = Some(index as u64);
            }
        }
    }
    let mut state = StreamState::default();
    state.take(response)?;
    state.done = Done::Marked;
    state.finish()
}

impl StreamDecoder for StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let data = data.trim();
        if data.is_empty() || self.done == Done::Marked {
            return Ok(Vec::new());
        }
        if data == DONE {
            self.done = Done::Marked;
            return Ok(Vec::new());
        }
        let chunk: Response = parse(data)?;
        refuse_error(&chunk, data)?;
        self.take(chunk)
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some() || self.done == Done::Marked
    }

    fn partial(&self) -> Reply {
        self.reply(self.stop.unwrap_or(StopReason::Other))
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn finish(&self) -> Result<Reply, WireError> {
        if !self.has_ended() {
            let partial = Box::new(self.partial());
            return Err(WireError::Cut { partial });
        }
        let stop = match (self.stop, self.calls.is_empty()) {
            // Some servers say `stop` for a turn that calls tools, or say nothing.
            (Some(StopReason::Stop) | None, false) => StopReason::ToolCalls,
            (Some(StopReason::ToolCalls) | None, true) => StopReason::Stop,
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

    /// Thinking, then text, then calls: the order that this wire can give back.
    fn reply(&self, stop: StopReason) -> Reply {
        let mut parts = Vec::new();
        if !self.thinking.is_empty() {
            parts.push(Part::Thinking(Thinking {
                text: self.thinking.clone(),
                opaque: None,
            }));
        }
        // With nothing that they led to, they are of no use.
        let silent = self.text.is_empty() && self.calls.is_empty();
        if !silent && !self.details.is_empty() {
            let details = Value::Array(self.details.clone());
            parts.push(details::part(DETAILS, details));
        }
        if !self.text.is_empty() {
            parts.push(Part::text(self.text.clone()));
        }
        for call in self.calls.iter() {
            // No arguments at all is how some servers write none; a cut call stays cut.
            let none = call.arguments.trim().is_empty()
                && stop == StopReason::ToolCalls
                && !call.is_text();
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(call.id.clone()),
                name: call.name.clone(),
                arguments: if none {
                    "{}".into()
                } else {
                    call.arguments.clone()
                },
                opaque: (!call.extra.is_empty()).then(|| Opaque {
                    origin: ORIGIN.into(),
                    data: Value::Object(call.extra.clone()).to_string(),
                }),
            }));
        }
        Reply {
            parts,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        }
    }

    fn take(&mut self, chunk: Response) -> Result<Vec<Delta>, WireError> {
        if self.response.is_empty() {
            self.response = chunk.id.unwrap_or_default();
        }
        if self.model.is_none() {
            self.model = chunk.model.filter(|model| !model.is_empty());
        }
        let groq = chunk.extra.get("x_groq").and_then(|groq| groq.get("usage"));
        let groq = groq.and_then(|usage| serde_json::from_value(usage.clone()).ok());
        let mut usage = chunk.usage.or(groq);
        let mut deltas = Vec::new();
        let mut choices = chunk.choices.into_iter();
        let first = choices.find(|choice| choice.index.is_none_or(|index| index == 0));
        if let Some(Choice {
            index,
            message,
            delta,
            finish_reason,
            usage: inner,
            ..
        }) = first
        {
            if let Some(mut said) = delta.or(message) {
                if index.is_none() && said.tool_calls.is_empty() {
                    said.tool_calls = other_calls(choices);
                }
                self.said(said, &mut deltas)?;
            }
            if let Some(reason) = finish_reason.filter(|reason| !reason.is_empty()) {
                self.stop = Some(stop_reason(&reason));
            }
            usage = usage.or(inner);
        }
        // Servers that report usage in every chunk report the sum so far.
        if let Some(usage) = usage.and_then(|usage| usage.normalized()) {
            self.usage = Some(usage);
        }
        Ok(deltas)
    }

    fn said(&mut self, said: Said, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        // Both keys in one chunk say the same twice.
        let reasoning = [said.reasoning_content, said.reasoning];
        let reasoning = reasoning
            .into_iter()
            .flatten()
            .find_map(|value| match value {
                Value::String(text) if !text.is_empty() => Some(text),
                _ => None,
            });
        let mut extra = said.extra;
        let more = match extra.remove(DETAILS) {
            Some(Value::Array(more)) => more,
            _ => Vec::new(),
        };
        let reasoning = reasoning.unwrap_or_else(|| details::readable(&more));
        self.thinking(reasoning, deltas)?;
        for detail in &more {
            self.charge(detail.to_string().len())?;
        }
        details::take(&mut self.details, more);
        match said.content {
            Some(Value::String(text)) => self.text(text, deltas)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    self.content_part(part, deltas)?;
                }
            }
            _ => {}
        }
        if let Some(text) = said.refusal {
            self.text(text, deltas)?;
        }
        for piece in said.tool_calls {
            self.call(piece, deltas)?;
        }
        if let Some(function) = said.legacy_call {
            let piece = CallPiece {
                index: Some(0),
                function: Some(function),
                ..CallPiece::default()
            };
            self.call(piece, deltas)?;
        }
        Ok(())
    }

    /// Mistral's reasoning models write a list of `text` and `thinking` parts.
    fn content_part(&mut self, part: Value, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        match part.get("type").and_then(Value::as_str) {
            Some("thinking") => {
                let text = match part.get("thinking") {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Array(inner)) => inner.iter().filter_map(text_in).collect(),
                    _ => String::new(),
                };
                self.thinking(text, deltas)
            }
            _ => match text_in(&part) {
                Some(text) => self.text(text.to_owned(), deltas),
                None => Ok(()),
            },
        }
    }

    fn text(&mut self, text: String, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if text.is_empty() {
            return Ok(());
        }
        self.charge(text.len())?;
        self.text.push_str(&text);
        deltas.push(Delta::Text { text });
        Ok(())
    }

    fn thinking(&mut self, text: String, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        if text.is_empty() {
            return Ok(());
        }
        self.charge(text.len())?;
        self.thinking.push_str(&text);
        deltas.push(Delta::Thinking { text });
        Ok(())
    }

    fn call(&mut self, piece: CallPiece, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let CallPiece {
            index,
            id,
            function,
            custom,
            mut extra,
        } = piece;
        extra.remove("type");
        let function = match custom {
            Some(custom) => {
                extra.insert("type".into(), CUSTOM.into());
                FunctionPiece {
                    name: custom.name,
                    arguments: custom.input.map(Value::String),
                }
            }
            None => function.unwrap_or_default(),
        };
        let name = function.name.unwrap_or_default();
        let arguments = match function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            // Some servers send the object itself.
            Some(other) => other.to_string(),
        };
        self.charge(name.len() + arguments.len())?;
        let id = id.filter(|id| !id.is_empty());
        let found = self.calls.find(index, id.as_deref(), &name, &arguments);
        let (at, name) = match found {
            Found::Open(at) => (at, name),
            Found::New | Found::Again(_) => {
                if self.calls.len() >= MAX_PARTS {
                    return Err(WireError::TooManyParts { limit: MAX_PARTS });
                }
                let name = match found {
                    Found::Again(named) => named,
                    _ => name,
                };
                let own = id.clone().unwrap_or_else(|| self.spare_id(&name));
                (self.calls.open(index, id, own), name)
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        if call.extra.is_empty() {
            call.extra = extra.into_iter().collect::<Map<_, _>>();
        }
        call.told_of(&name, &arguments);
        if call.take_name(&name) {
            deltas.push(Delta::CallStarted {
                call: CallId(call.id.clone()),
                name: call.name.clone(),
            });
        }
        let text = call.take_arguments(&arguments);
        if !text.is_empty() {
            deltas.push(Delta::CallArguments {
                call: CallId(call.id.clone()),
                text,
            });
        }
        Ok(())
    }

    /// An id for a call whose server gives none: the same for the same stream, and different
    /// for a different one as far as the stream shows it.
    fn spare_id(&self, name: &str) -> String {
        let number = self.calls.len();
        let seen = format!(
            "{}\n{}\n{}\n{name}",
            self.response, self.thinking, self.text
        );
        format!("call_{:016x}_{number}", fnv1a(seen.as_bytes(), 0))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes as u64 > MAX_REPLY.0 {
            return Err(WireError::TooLarge { limit: MAX_REPLY });
        }
        Ok(())
    }
}

/// The calls in the first choice that has any: some servers put the text of one reply into one choice
/// and its calls into another, and number neither.
fn other_calls(choices: impl Iterator<Item = Choice>) -> Vec<CallPiece> {
    let unnumbered = choices.filter(|choice| choice.index.is_none());
    let said = unnumbered.filter_map(|choice| choice.delta.or(choice.message));
    let mut calls = said.map(|said| said.tool_calls);
    calls.find(|calls| !calls.is_empty()).unwrap_or_default()
}

fn text_in(part: &Value) -> Option<&str> {
    part.get("text").and_then(Value::as_str)
}

/// Some servers answer 200 and say in the body, or in the middle of the stream, that it failed.
fn refuse_error(response: &Response, body: &str) -> Result<(), WireError> {
    let kind = response.extra.get("object").and_then(Value::as_str);
    let bare = response.choices.is_empty()
        && response.usage.is_none()
        && response.id.is_none()
        && ["message", "detail"]
            .iter()
            .any(|key| response.extra.contains_key(*key));
    let in_choice = response
        .choices
        .iter()
        .any(|choice| choice.extra.get("error").is_some_and(is_told));
    // MiniMax's way of saying so, with 200.
    let base = response.extra.get("base_resp");
    let code = base.and_then(|base| base.get("status_code"));
    let refused = code.and_then(Value::as_i64).is_some_and(|code| code != 0);
    // Beside a reply, an error that says nothing is none.
    let at_top = response
        .error
        .as_ref()
        .is_some_and(|error| is_told(error) || (!error.is_null() && response.choices.is_empty()));
    if at_top || in_choice || bare || refused || kind == Some("error") {
        return Err(WireError::Provider { body: body.into() });
    }
    Ok(())
}

fn is_told(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
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
