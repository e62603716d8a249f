//! The server side of OpenAI Chat Completions: counting, refusals and answers. The rules for
//! requests are in the module `rules`.

mod refuse;

use std::sync::LazyLock;

use crate::rules::Fault;
use crate::rules::openai_chat::{TABLE, error_body, refusal, validate};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::{Api, Header, PendingReply, RequestKind, Size, list};
use crate::encode::{AnswerPart, TurnPart, turn_parts};
use crate::frames::{Frames, Values};
use crate::pieces::{RequestPiece, weigh};
use crate::rules::table::Words;
use crate::turn::Turn;

/// The tokens of a message in addition to its text.
const FRAME: Tokens = Tokens(4);

/// The form of the answers.
pub(crate) static FRAMES: LazyLock<Frames> =
    LazyLock::new(|| Frames::parse(include_str!("../answers/chat.txt")));

/// A server of Chat Completions with the strictness of this dialect.
#[derive(Debug)]
pub(crate) struct Chat(pub(crate) Dialect);

impl Api for Chat {
    fn fault(&self, _: Header<'_>, request: &Value, _: RequestKind) -> Option<Fault> {
        validate(request, &self.0).into_iter().next()
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault, &self.0)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
        let tools = request.get("tools").map(Value::to_string);
        let tools = tools.map(|text| RequestPiece::new(&text, counter.text(&text) + FRAME));
        let messages = list(request, "messages").iter();
        let messages = messages.map(|message| {
            let tokens = weight(message, counter) + FRAME;
            RequestPiece::new(&message.to_string(), tokens)
        });
        tools.into_iter().chain(messages).collect()
    }

    fn output(&self, request: &Value) -> Option<Tokens> {
        let keys = ["max_completion_tokens", "max_tokens"];
        let limit = keys.iter().find_map(|key| request.get(key)?.as_u64());
        limit.map(Tokens).filter(|_| refuse::counts_output(&self.0))
    }

    fn words(&self) -> &'static Words {
        &TABLE
    }

    fn error(&self, status: u16, kind: &str, _: Option<&str>, message: &str) -> HttpAnswer {
        HttpAnswer::new(status, error_body(kind, None, None, message))
    }

    fn too_long(&self, size: Size) -> HttpAnswer {
        refuse::too_long(size, &self.0)
    }

    fn too_many(&self, _: &Value, requested: Tokens, limit: Tokens) -> HttpAnswer {
        refuse::too_many(requested, limit)
    }

    fn frames(&self) -> &'static Frames {
        &FRAMES
    }

    fn parts(&self, turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart> {
        let number = reply.number;
        let parts = turn_parts(turn, turn.think.as_deref());
        let parts = parts.into_iter().filter_map(|part| match part {
            TurnPart::Thought(text) => Some(AnswerPart::text("thought", text, json!({}))),
            TurnPart::Text { text, .. } => Some(AnswerPart::text("text", text, json!({}))),
            TurnPart::Call(at, call) => {
                let id = call.id.clone();
                let id = id.unwrap_or_else(|| self.call_id(number, at as u64));
                let values = json!({"id": id, "name": call.name, "call": at});
                Some(AnswerPart::text("call", &call.text(), values))
            }
            TurnPart::Block(_) => None,
        });
        parts.collect()
    }

    fn ended(&self, turn: &Turn, _: &PendingReply<'_>, output: &[Value]) -> Value {
        let has_calls = !output.is_empty();
        let usual = if has_calls { "tool_calls" } else { "stop" };
        // One field has the text before the calls and the one after them.
        let texts = [turn.say.as_deref(), turn.say_after.as_deref()];
        let is_there = texts.iter().any(Option::is_some);
        json!({
            "stop": turn.stop.as_deref().unwrap_or(usual),
            "content": is_there.then(|| texts.into_iter().flatten().collect::<String>()),
            "thought": turn.think,
            "calls": has_calls.then_some(output),
        })
    }

    /// Puts deltas into chunks.
    fn stream(&self, deltas: Vec<Value>, begun: &Values<'_>, ended: &Values<'_>) -> Vec<Value> {
        let has_usage = begun.get("request.stream_options.include_usage") == true;
        let frame = if has_usage { "chunk+usage" } else { "chunk" };
        let chunk = |values: &Values<'_>, delta: &Value| {
            FRAMES.one(frame, &values.with(json!({ "delta": delta })))
        };
        let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(begun, delta)).collect();
        chunks.push(chunk(ended, &json!({})));
        chunks.extend(has_usage.then(|| FRAMES.one("usage-chunk", ended)));
        chunks.push("[DONE]".into());
        chunks
    }

    /// OpenRouter adds its source.
    fn failed_frame(&self, _: u16, _: &Value) -> &'static str {
        match self.0.name.as_str() {
            "openrouter" => "failed-openrouter",
            _ => "failed",
        }
    }
}

impl Chat {
    fn call_id(&self, number: u64, at: u64) -> String {
        match self.0.call_ids {
            CallIdForm::NineAlphanumeric => {
                let unique = number.saturating_mul(1_000).saturating_add(at);
                format!("c{:08}", unique % 100_000_000)
            }
            _ => format!("call_{number}_{at}"),
        }
    }
}

/// Returns the number of tokens in a message.
fn weight(message: &Value, counter: &dyn TokenCounter) -> Tokens {
    let of = |key: &str| weigh(message.get(key).unwrap_or(&Value::Null), counter);
    let calls = list(message, "tool_calls").iter();
    let calls = calls.filter_map(|call| call.get("function"));
    let calls: Tokens = calls
        .flat_map(|function| [function.get("name"), function.get("arguments")])
        .flatten()
        .map(|text| weigh(text, counter))
        .sum();
    of("content") + of("reasoning_content") + calls
}
