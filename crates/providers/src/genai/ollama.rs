//! [`Ollama`]: the lines of Ollama's own `/api/chat` into a reply. Not Ollama's Chat Completions;
//! those are our own wire.

use plimsoll_context::{CallId, Delta, Part, Reply, StopReason, Thinking, Tokens, ToolCall, Usage};
use plimsoll_wire::WireError;
use serde_json::Value;

/// A reply of Ollama while it arrives.
#[derive(Debug, Default)]
pub(super) struct Ollama {
    parts: Vec<Part>,
    stop: Option<String>,
    pub(super) usage: Option<Usage>,
    model: Option<String>,
    /// Calls of the history and of this reply.
    calls: usize,
}

impl Ollama {
    pub(super) fn new(calls: usize) -> Self {
        Self {
            calls,
            ..Self::default()
        }
    }

    /// A frame is one line, or what the end of the bytes left of it.
    pub(super) fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let mut deltas = Vec::new();
        for line in data.lines().filter(|line| !line.trim().is_empty()) {
            self.line(line, &mut deltas)?;
        }
        Ok(deltas)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    pub(super) fn finish(self) -> Result<Reply, WireError> {
        let mut parts = self.parts.iter();
        let called = parts.any(|part| matches!(part, Part::ToolCall(_)));
        let (stop, whole) = match self.stop.as_deref() {
            None => (StopReason::Other, false),
            Some("stop" | "") if called => (StopReason::ToolCalls, true),
            Some("stop" | "") => (StopReason::Stop, true),
            Some("length") => (StopReason::Length, true),
            Some(_) => (StopReason::Other, true),
        };
        let reply = Reply {
            parts: self.parts,
            stop,
            usage: self.usage,
            model: self.model,
        };
        match whole {
            true => Ok(reply),
            false => Err(WireError::Cut {
                partial: Box::new(reply),
            }),
        }
    }

    fn line(&mut self, line: &str, deltas: &mut Vec<Delta>) -> Result<(), WireError> {
        let line_json = json(line)?;
        if line_json.get("error").is_some() {
            return Err(WireError::Provider { body: line.into() });
        }
        if let Some(model) = line_json.get("model").and_then(Value::as_str) {
            self.model = Some(model.to_owned());
        }
        let said = |key: &str| {
            let text = line_json.get("message")?.get(key)?.as_str()?;
            (!text.is_empty()).then_some(text)
        };
        if let Some(text) = said("thinking") {
            self.think(text);
            deltas.push(Delta::Thinking { text: text.into() });
        }
        if let Some(text) = said("content") {
            self.say(text);
            deltas.push(Delta::Text { text: text.into() });
        }
        let calls = line_json.pointer("/message/tool_calls");
        for call in calls.and_then(Value::as_array).into_iter().flatten() {
            self.call(call, deltas);
        }
        if line_json.get("done").and_then(Value::as_bool) == Some(true) {
            let reason = line_json.get("done_reason").and_then(Value::as_str);
            self.stop = Some(reason.unwrap_or_default().to_owned());
            self.usage = usage(&line_json);
        }
        Ok(())
    }

    fn think(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Thinking(thinking)) => thinking.text.push_str(text),
            _ => self.parts.push(Part::Thinking(Thinking {
                text: text.to_owned(),
                opaque: None,
            })),
        }
    }

    fn say(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text { text: said }) => said.push_str(text),
            _ => self.parts.push(Part::text(text)),
        }
    }

    fn call(&mut self, call: &Value, deltas: &mut Vec<Delta>) {
        let name = call.pointer("/function/name").and_then(Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        let id = call.get("id").and_then(Value::as_str);
        let id = id.filter(|id| !id.is_empty()).map(str::to_owned);
        let id = CallId(id.unwrap_or_else(|| format!("call_{}", self.calls)));
        self.calls = self.calls.saturating_add(1);
        let arguments = match call.pointer("/function/arguments") {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments) => arguments.to_string(),
        };
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
            opaque: None,
        }));
    }
}

/// What was read from a cache is part of what was evaluated.
fn usage(line: &Value) -> Option<Usage> {
    let (prompt, written) = (count(line, "prompt_eval_count"), count(line, "eval_count"));
    if prompt.is_none() && written.is_none() {
        return None;
    }
    let prompt = prompt.unwrap_or_default();
    let read = count(line, "prompt_eval_cached_count").unwrap_or_default();
    let read = read.min(prompt);
    Some(Usage {
        input: Tokens(prompt - read),
        output: Tokens(written.unwrap_or_default()),
        reasoning: Tokens::ZERO,
        cache_read: Tokens(read),
        cache_write: Tokens::ZERO,
        ..Usage::default()
    })
}

/// A frame as JSON.
pub(super) fn json(text: &str) -> Result<Value, WireError> {
    serde_json::from_str(text).map_err(|error| WireError::NotJson {
        reason: error.to_string(),
    })
}

/// A number of tokens.
pub(super) fn count(of: &Value, key: &str) -> Option<u64> {
    of.get(key)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_hold_everything_at_once() {
        let mut answer = Ollama::new(3);
        let line = r#"{"model":"q","message":{"thinking":"hm","content":"so","tool_calls":[{"function":{"name":"a","arguments":{"x":1}}},{"id":"i","function":{"name":"b"}}]},"done":true,"done_reason":"stop","prompt_eval_count":10,"prompt_eval_cached_count":6,"eval_count":20}"#;
        assert_eq!(answer.push(line).unwrap().len(), 6);
        let reply = answer.finish().unwrap();
        assert_eq!(reply.stop, StopReason::ToolCalls);
        let calls = reply.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some((call.id.0.as_str(), call.arguments.as_str())),
            _ => None,
        });
        let calls: Vec<_> = calls.collect();
        assert_eq!(calls, [("call_3", "{\"x\":1}"), ("i", "{}")]);
        let usage = reply.usage.unwrap();
        assert_eq!((usage.input, usage.cache_read), (Tokens(4), Tokens(6)));
    }
}
