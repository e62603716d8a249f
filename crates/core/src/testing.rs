//! [`ScriptedProvider`]: a model for tests that follows a script. [`check_store`] tests a store.
//!
//! The model rejects the same requests as a real API, with the same messages. It makes no network
//! requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, ToolChoice};
use plimsoll_context::{
    Bpe, CacheRetention, CallId, Delta, HostedTool, Memo, Part, Reply, StopReason, TokenCounter,
    Tokens, ToolCall, Usage,
};
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{self, Dialect};
use serde_json::Value;

use crate::error::lock;
use crate::hooks::check_pairs;
use crate::provider::Provider;

mod store_check;

pub use store_check::check_store;

/// A model that follows a script. Clones share the script and the recorded requests.
#[derive(Clone)]
pub struct ScriptedProvider {
    inner: Arc<Mutex<ScriptState>>,
    counter: Arc<dyn TokenCounter>,
    window: Option<Tokens>,
}

/// The model's behavior in one call.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Answers with this text.
    Say(String),
    /// Calls tools with these names and arguments (JSON text, valid or not).
    Call(Vec<(String, String)>),
    /// Fails.
    Fail(Failure),
    /// Returns exactly this reply.
    Reply(Reply),
    /// Never answers.
    Hang,
}

#[derive(Debug, Default)]
struct ScriptState {
    script: VecDeque<Turn>,
    repeat: Option<Turn>,
    requests: Vec<Value>,
    calls: u64,
}

impl Turn {
    /// Answers with this text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::Say(text.into())
    }

    /// Calls one tool with arguments as JSON.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::Call(vec![(name.to_owned(), arguments.to_string())])
    }

    /// Calls several tools at once.
    pub fn calls<const N: usize>(calls: [(&str, Value); N]) -> Self {
        let calls = calls.map(|(name, arguments)| (name.to_owned(), arguments.to_string()));
        Self::Call(calls.into())
    }
}

impl ScriptedProvider {
    /// Creates a model that follows this script. Calls beyond its end are rejected.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = Turn>) -> Self {
        let inner = ScriptState {
            script: script.into_iter().collect(),
            ..ScriptState::default()
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            counter: Arc::new(Memo::new(Bpe::o200k())),
            window: None,
        }
    }

    /// Repeats this turn after the end of the script.
    #[must_use]
    pub fn then_always(self, turn: Turn) -> Self {
        lock(&self.inner).repeat = Some(turn);
        self
    }

    /// Rejects requests of more than this many tokens (o200k), as llama.cpp does, and reports this
    /// window.
    #[must_use]
    pub fn with_window(mut self, window: Tokens) -> Self {
        self.window = Some(window);
        self
    }

    /// Returns all accepted and rejected requests so far, as the provider received them.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.inner).requests.clone()
    }

    /// Counts the tokens (o200k) of names, texts, arguments and schemas in a request, without any
    /// overhead.
    #[must_use]
    pub fn weigh(&self, request: &Value) -> Tokens {
        let text = |value: &Value| match value {
            Value::Null => Tokens::ZERO,
            Value::String(text) => self.counter.text(text),
            other => self.counter.text(&other.to_string()),
        };
        let message = |message: &Value| {
            let calls = list(message, "tool_calls").filter_map(|call| call.get("function"));
            let calls = calls.flat_map(|call| [call.get("name"), call.get("arguments")]);
            let calls: Tokens = calls.flatten().map(text).sum();
            message.get("content").map_or(Tokens::ZERO, text) + calls
        };
        let tools = list(request, "tools").filter_map(|tool| tool.get("function"));
        list(request, "messages").map(message).sum::<Tokens>() + tools.map(text).sum::<Tokens>()
    }

    fn render(&self, request: &Request) -> Result<Value, Failure> {
        let input = RenderInput {
            model: "scripted",
            system: Some(&*request.system).filter(|text| !text.is_empty()),
            tools: &request.tools,
            tool_choice: match request.tool_choice {
                ToolChoice::Auto => plimsoll_wire::ToolChoice::Auto,
                ToolChoice::None => plimsoll_wire::ToolChoice::None,
            },
            max_output: request.max_output.map(|tokens| tokens.0),
            context: request.dynamic_context.as_deref(),
            cache: Some(&request.cache),
            ..RenderInput::default()
        };
        let messages = request.messages.iter().map(AsRef::as_ref);
        let garbled = |error: &dyn std::fmt::Display| Failure::Garbled {
            message: error.to_string(),
        };
        let rendered =
            openai_chat::render(&input, messages, &Dialect::openai()).map_err(|e| garbled(&e))?;
        serde_json::from_slice(&rendered.body).map_err(|e| garbled(&e))
    }

    /// Checks whether calls and results are paired, and whether the request fits the window.
    fn judge(&self, request: &Request, rendered: &Value) -> Result<Tokens, Failure> {
        check_pairs(request.messages.iter()).map_err(|message| Failure::Refused {
            status: Some(400),
            message,
        })?;
        let used = self.weigh(rendered);
        match self.window {
            Some(window) if used >= window => Err(Failure::Overflow {
                used: Some(used),
                window: Some(window),
                message: format!(
                    "request ({used} tokens) exceeds the available context size ({window} tokens), try increasing it"
                ),
            }),
            _ => Ok(used),
        }
    }

    async fn reply(&self, turn: Turn, used: Tokens, number: u64) -> Result<Reply, Failure> {
        let call = |(index, (name, arguments)): (usize, (String, String))| {
            Part::ToolCall(ToolCall {
                id: CallId(format!("call_{number}_{index}")),
                name,
                arguments,
                opaque: None,
            })
        };
        let (parts, stop) = match turn {
            Turn::Say(text) => (vec![Part::text(text)], StopReason::Stop),
            Turn::Call(calls) => {
                let calls = calls.into_iter().enumerate().map(call).collect();
                (calls, StopReason::ToolCalls)
            }
            Turn::Fail(failure) => return Err(failure),
            Turn::Reply(reply) => return Ok(reply),
            Turn::Hang => std::future::pending().await,
        };
        let output = parts.iter().map(|part| self.counter.part(part)).sum();
        let usage = Usage {
            input: used,
            output,
            ..Usage::default()
        };
        Ok(Reply {
            parts,
            stop,
            usage: Some(usage),
            model: None,
        })
    }
}

fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    let items = object.get(key).and_then(Value::as_array);
    items.into_iter().flatten()
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn model(&self) -> &str {
        "scripted/model"
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let rendered = self.render(request)?;
        let judged = self.judge(request, &rendered);
        lock(&self.inner).requests.push(rendered);
        let used = judged?;
        let (turn, number) = {
            let mut inner = lock(&self.inner);
            inner.calls += 1;
            let turn = inner.script.pop_front();
            (turn.or_else(|| inner.repeat.clone()), inner.calls)
        };
        let turn = turn.ok_or_else(|| Failure::Refused {
            status: None,
            message: "the script has no turn left for this call".to_owned(),
        })?;
        let reply = self.reply(turn, used, number).await?;
        for part in &reply.parts {
            match part {
                Part::Text { text } => deltas(Delta::Text { text: text.clone() }),
                Part::ToolCall(call) => {
                    deltas(Delta::CallStarted {
                        call: call.id.clone(),
                        name: call.name.clone(),
                    });
                }
                _ => {}
            }
        }
        Ok(reply)
    }

    /// Accepts every cache lifetime, since it has no cache.
    fn keeps(&self, _: CacheRetention) -> bool {
        true
    }

    /// Accepts all provider tools.
    fn hosted_tool_faults(&self, _: &[HostedTool]) -> Vec<String> {
        Vec::new()
    }

    async fn window(&self) -> Option<Tokens> {
        self.window
    }
}
